"""Results that a loop copies to the host: pinned memory, or one copy of all."""

from pathlib import Path

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.advice.words import advised
from warpbook_profiler.techniques.host.read_back import read_back

LARGE, SMALL = 16 << 20, 40 << 10
READS = "for x in xs:\n    kept.append(model(x).cpu())\n"
#: work of the host that no record is made of, as long as the kernels
PYTHON_NS = 200_000


def reads(
    source: str | None,
    size_bytes: int,
    count: int = 10,
    memory: str = "Pageable",
    operator: str = "aten::to",
    last_bytes: int | None = None,
) -> Cell:
    cell = Cell(source)
    for turn in range(count):
        cell.call("aten::mm", 200_000)
        size_bytes = last_bytes if last_bytes and turn == count - 1 else size_bytes
        with cell.operator(operator), cell.operator("aten::copy_"):
            cell.copy("DtoH", size_bytes, memory)
        cell.python(PYTHON_NS)
    cell.wait()
    return cell


def kept(copied_ns: int, count: int = 10) -> Cell:
    """Write the changed cell: copies that nobody waits for are work of the GPU."""
    cell = Cell()
    for _ in range(count):
        cell.call("aten::mm", 200_000)
        if copied_ns:
            cell.call("aten::copy_", copied_ns)
        cell.python(PYTHON_NS)
    cell.wait()
    return cell


def test_large_results_go_to_pinned_memory(tmp_path: Path) -> None:
    cell, fixed = reads(READS, LARGE), kept(LARGE // 50)
    change = changes_of(read_back, cell.evidence(tmp_path))["pinned-results"]
    assert (change.basis, change.line, change.operator) == ("not below", 2, "aten::to")
    assert change.low_ns is not None
    assert 0.7 * fixed.window_ns < change.low_ns <= fixed.window_ns
    assert fixed.window_ns < 0.5 * cell.window_ns
    assert "10 copies to the host carry 160 MiB" in change.evidence


def test_small_results_are_copied_at_once(tmp_path: Path) -> None:
    cell, fixed = reads(READS, SMALL), kept(0)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert (change.basis, change.line) == ("predicted", 2)
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns < cell.window_ns


def test_a_headline_names_the_line_to_change_once(tmp_path: Path) -> None:
    cell = reads(READS, SMALL)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    title = change.title.removesuffix(".")
    assert advised(change, "10 copies.") == f"{title} (line 2). {change.sentence}"
    cause = "cudaMemcpyAsync on line 2 (10 calls)."
    assert advised(change, cause) == f"{change.title} {change.sentence}"
    assert " (line 2). " in advised(change, "A call on line 25.")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("rows = [f(i, x).cpu().numpy() for i, x in pairs]", 1),
        ("for x in xs:\n    y = f(x)\n    host[0].copy_(y)", 3),
        ("while n:\n    n -= 1\n    z = g(n).to('cpu')", 3),
        ("for x in xs:\n    show(f(x).tolist())", 2),
        (None, None),
    ],
)
def test_a_read_is_found_in_its_cell(
    tmp_path: Path, source: str | None, line: int | None
) -> None:
    cell = reads(source, LARGE)
    change = changes_of(read_back, cell.evidence(tmp_path))["pinned-results"]
    assert change.line == line


@pytest.mark.parametrize(
    "cell",
    [
        reads(READS, LARGE, count=3),
        reads(READS, LARGE, memory="Pinned"),
        # a number, which `read-once` is about
        reads("for x in xs:\n    n += f(x).item()", 4, operator="aten::item"),
        # nothing that the cell calls can do it, or back on the GPU in the end
        reads("for x in xs:\n    (x.to(device) * 2).sum()", LARGE),
        reads("for x in xs:\n    y = f(x).cpu()\n    z = y.cuda()", LARGE),
    ],
)
def test_other_copies_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(read_back, cell.evidence(tmp_path))


def test_copies_that_come_back_are_no_results(tmp_path: Path) -> None:
    cell = reads(None, LARGE)
    with cell.operator("aten::to"):
        cell.copy("HtoD", LARGE)
    assert not changes_of(read_back, cell.evidence(tmp_path))


FILM = (
    "x, {} = x0, {}\nwith torch.no_grad(){}:\n    for w in ws:\n        x = x @ w\n"
    "        film.append(x.cpu())\nfilm = torch.stack(film)\n"
)


def test_a_list_that_begins_beside_another_name(tmp_path: Path) -> None:
    source = FILM.format("film", "[]", "")
    cell = reads(source, SMALL)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    setup = "x0, ws = torch.randn(4, 4), torch.randn(9, 4, 4)"
    assert agrees(change, source, setup, "x", "film", "w")


@pytest.mark.parametrize(
    "names", [("film", "seen", ""), ("other", "[]", ""), ("film", "[]", " as film")]
)
def test_a_list_that_may_hold_more_is_let_be(tmp_path: Path, names) -> None:
    cell = reads(FILM.format(*names), SMALL)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert not change.code


APPENDS = "kept = []\nfor x in xs:\n    kept.append({})\nkept = {}"
SETUP = (
    "import numpy as np\nfrom numpy import concatenate\n"
    "model = torch.nn.Linear(3, 3).requires_grad_(False)\n"
    "kept, xs = [], torch.randn(9, 8, 3).unbind()"
)


@pytest.mark.parametrize(
    "source",
    [
        "kept = np.concatenate([model(x).argmax(1).cpu().numpy() for x in xs])",
        "kept = np.stack([x.exp().cpu().numpy() for x in xs], axis=1)",
        "kept = torch.cat([model(x).detach().cpu() for x in xs if x[0, 0] > 0], dim=1)",
        "def f(xs):\n    return np.array([x.cpu().numpy() for x in xs])\nkept = f(xs)",
        APPENDS.format("x.exp().cpu().numpy()", "np.concatenate(kept)"),
        APPENDS.format("x.amax(1).cpu()", "torch.stack(kept, dim=1)"),
        "for x in xs:\n    kept.extend(model(x).argmax(1).cpu().tolist())",
        "for x in xs:\n    kept += model(x).tolist()",
        "for x in xs[:0]:\n    kept += model(x).tolist()",
    ],
)
def test_results_are_joined_on_the_gpu(tmp_path: Path, source: str) -> None:
    cell = reads(source, SMALL)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert agrees(change, source, SETUP, "kept")


ROWS = "rows = []\nfor x in xs:\n    y = x.mean(1)\n    rows.append({})\n{}\n"


@pytest.mark.parametrize(
    ("source", "is_copied", "is_joined"),
    [
        (ROWS.format("y.cpu()", "rows = torch.stack(rows)"), False, True),
        (ROWS.format("y.cpu().numpy()", "rows = np.array(rows)"), False, True),
        # somebody looks at the list, too
        (ROWS.format("y.cpu()", "z = torch.stack(rows)"), False, False),
        (ROWS.format("y.cpu()", "n = len(rows)\nrows = torch.cat(rows)"), False, False),
        # memory that is written afterwards, or that is another one's
        (ROWS.format("y.cpu()", "    y.zero_()"), True, False),
        (ROWS.format("y.cpu()", "    z = y[:2]\n    z += 1"), True, False),
        (ROWS.format("y.cpu()", "    note(y)"), True, False),
        (ROWS.replace("x.mean(1)", "x[0]").format("y.cpu()", ""), True, False),
    ],
)
def test_new_results_are_kept_as_they_are(
    tmp_path: Path, source: str, is_copied: bool, is_joined: bool
) -> None:
    change = changes_of(read_back, reads(source, SMALL).evidence(tmp_path))
    code = change["stack-results"].code
    assert (".clone()" in code) == is_copied and ("for one in" in code) != is_joined
    # of a tensor of the host `.cpu()` is no copy
    assert is_copied or agrees(change["stack-results"], source, SETUP, "rows")


@pytest.mark.parametrize("tail", [".cpu()", ".cpu().numpy()", ".tolist()"])
def test_results_of_several_sizes_are_copied_at_once(tmp_path: Path, tail: str) -> None:
    join = "list" if tail == ".tolist()" else "np.concatenate"
    source = APPENDS.format(f"model(x){tail}", f"{join}(kept)")
    if join == "list":
        source = source.replace("append", "extend")
    cell = reads(source, SMALL, last_bytes=SMALL // 2)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    setup = f"{SETUP}\nxs = [x[: 8 - 3 * (at % 2)] for at, x in enumerate(xs)]"
    assert agrees(change, source, setup, "kept")


@pytest.mark.parametrize(
    "source",
    [
        "kept = concatenate([model(x).cpu().numpy() for x in xs])",
        "kept = np.vstack([model(x).cpu().numpy() for x in xs])",
        "kept = np.concatenate([f(model(x).cpu().numpy()) for x in xs])",
        "kept = np.concatenate([model(x).cpu().numpy() for x in xs], out=y)",
        "kept = torch.stack([model(x).cpu() for x in xs], 1)",
        "for x in xs:\n    kept += model(x).tolist()\n    print(len(kept))",
        "def show():\n    print(len(kept))\n"
        "for x in xs:\n    kept += model(x).tolist()\n    show()",
        "for x in xs:\n    kept = kept + model(x).tolist()",
        "for x in xs:\n    kept += model(x).cpu().numpy()",
    ],
)
def test_results_that_are_used_otherwise_are_let_be(
    tmp_path: Path, source: str
) -> None:
    cell = reads(source, SMALL)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert not change.code


@pytest.mark.parametrize(
    "source",
    [
        "ys = []\nfor x in xs:\n    ys.append(x.relu().cpu())\n",
        "ys = []\nfor x in xs:\n    ys.extend(x.relu().tolist())\n",
    ],
)
def test_results_of_two_dtypes_stay_what_they_are(tmp_path: Path, source: str) -> None:
    change = changes_of(read_back, reads(source, SMALL).evidence(tmp_path))
    for xs in ("[torch.ones(2), torch.ones(2).int()]", "[]", "list(torch.ones(3, 2))"):
        names = {"torch": torch}
        exec(f"xs = {xs}", names)
        before, after = dict(names), dict(names)
        exec(source, before)
        exec(change["stack-results"].code, after)
        kinds = [
            [(type(y), getattr(y, "dtype", None)) for y in one["ys"]]
            for one in (before, after)
        ]
        assert kinds[0] == kinds[1]
