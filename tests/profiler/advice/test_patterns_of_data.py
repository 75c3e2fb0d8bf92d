"""Rules for what comes to the GPU: made there, at once, and beside other work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_operations import holds
from warpbook_profiler.techniques.data.lists import lists
from warpbook_profiler.techniques.data.made_on_host import made_on_host
from warpbook_profiler.techniques.data.pinned_waits import pinned_waits
from warpbook_profiler.techniques.host.transfers import transfers

MS = 1_000_000


def moved(
    cell: Cell, size_bytes: int, memory: str = "Pageable", dtype: str = "long int"
) -> None:
    both = [size_bytes // 8], [size_bytes // 8], []
    with cell.operator("aten::to"), cell.operator("aten::copy_", both, dtype):
        cell.copy("HtoD", size_bytes, memory)
        cell.wait()


def makes(source: str | None, *fills: str, between: str = "") -> Cell:
    cell = Cell(source)
    for _ in range(4):
        for name in fills:
            with cell.operator(name):
                cell.python(5 * MS)
        if between:
            with cell.operator(between):
                cell.python(MS)
        moved(cell, 32 << 20)
        cell.call("aten::add", 30_000, dims=([1 << 23], [1 << 23], []))
    cell.wait()
    return cell


FILLS = "for _ in range(4):\n    y = x + {made}\n"


@pytest.mark.parametrize(
    ("source", "fills"),
    [
        (FILLS.format(made="torch.ones(8).to(x.device)"), ("aten::ones",)),
        (
            "for _ in range(4):\n    at = torch.arange(8)\n    y = x + at.to(dev)\n",
            ("aten::arange",),
        ),
        (
            FILLS.format(made="(torch.ones(8, 8).tril().long() * 2).to(dev).sum(0)"),
            ("aten::ones", "aten::tril", "aten::to", "aten::mul"),
        ),
        (FILLS.format(made="noise(x)"), ("aten::empty", "aten::normal_")),
        (None, ("aten::randn", "aten::mul")),
    ],
)
def test_what_the_cpu_fills_is_made_on_the_gpu(
    tmp_path: Path, source: str | None, fills: tuple[str, ...]
) -> None:
    cell, fixed = makes(source, *fills), Cell()
    for _ in range(4):
        fixed.call("aten::fill_", 9_000)
        fixed.call("aten::add", 30_000)
    fixed.wait()
    change = changes_of(made_on_host, cell.evidence(tmp_path))["make-on-gpu"]
    assert change.low_ns is not None
    assert change.low_ns <= 1.25 * fixed.window_ns < cell.window_ns / 20
    if source and "noise" not in source:
        assert "device=" in change.code
        assert agrees(change, source, "x = torch.zeros(8)", "y")
    else:
        # other numbers, or not in this cell
        assert change.code == ""


@pytest.mark.parametrize("window", ["hann", "hamming", "kaiser"])
def test_windows_are_made_on_the_gpu_by_hand(tmp_path: Path, window: str) -> None:
    """Their last bits are others there, so no edit is sure; pinning is no advice."""
    source = (
        f"for x in xs:\n    edge = torch.{window}_window(len(x))\n"
        "    taper = torch.outer(edge, edge).to(dev)\n    y = x * taper\n"
    )
    fills = f"aten::{window}_window", "aten::outer"
    evidence = makes(source, *fills).evidence(tmp_path)
    change = changes_of(made_on_host, evidence)["make-on-gpu"]
    assert change.line == 2 and not change.code
    assert not changes_of(transfers, evidence)


@pytest.mark.parametrize(
    "cell",
    [
        # the host has use for it
        makes(
            "at = torch.randperm(9)\nrows = data[at]\ny = at.to(dev)", "aten::randperm"
        ),
        # what is copied is other than what was filled
        makes(None, "aten::randperm", between="aten::index"),
        makes("g = torch.randn(9, generator=g)\ny = z.to(dev)", "aten::index"),
    ],
)
def test_what_the_host_needs_stays_there(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(made_on_host, cell.evidence(tmp_path))


ROWS = (
    "for row in rows:\n    ids = torch.tensor(row).to(dev)\n    out.append(ids * 2)\n"
)


def becomes(source: str | None, count: int = 60, size_bytes: int = 2_048) -> Cell:
    cell = Cell(source)
    for number in range(count):
        cell.python(8_000)
        cell.views("aten::lift_fresh", "aten::detach_")
        moved(cell, size_bytes + 8 * (number % 2) * (size_bytes > 2_048))
        cell.call("aten::mul", 3_000, dims=([256], []))
    cell.wait()
    return cell


@pytest.mark.parametrize("source", [ROWS, "run(rows)", None])
def test_lists_become_one_tensor(tmp_path: Path, source: str | None) -> None:
    cell, fixed = becomes(source), Cell()
    fixed.python(60 * 8_000)
    moved(fixed, 60 * 2_048)
    for _ in range(60):
        # a view of a row
        fixed.python(1_000)
        fixed.call("aten::mul", 3_000)
    fixed.wait()
    change = changes_of(lists, cell.evidence(tmp_path))["tensor-once"]
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns
    # the copies are gone, whatever the host does instead
    assert change.high_ns < 0.9 * cell.window_ns
    if source == ROWS:
        setup = "rows = [[i, 2 * i, 3] for i in range(60)]; out = []"
        assert agrees(change, ROWS, setup, "out", "ids", "row")


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(60):\n    r = rows[i]\n    x = torch.tensor(r, device=dev)\n",
        "xs = [torch.as_tensor(row).to(dev) for row in rows]",
    ],
)
def test_lists_that_are_there_before_the_loop(tmp_path: Path, source: str) -> None:
    assert "tensor-once" in changes_of(lists, becomes(source).evidence(tmp_path))


def test_lists_by_their_index_become_one_tensor(tmp_path: Path) -> None:
    source = "for i in range(60):\n    out.append(torch.tensor(rows[i], device=dev))\n"
    change = changes_of(lists, becomes(source).evidence(tmp_path))["tensor-once"]
    assert "tensors = torch.tensor(rows[:60], device=dev)" in change.code
    setup = "rows = [[i, 2 * i] for i in range(60)]; out = []"
    assert agrees(change, source, setup, "out")


@pytest.mark.parametrize("lengths", ["", " + [5] * (i % 4)"])
@pytest.mark.parametrize(
    "source",
    [
        ROWS,
        "for row, w in zip(rows, ws):\n"
        "    out.append(torch.tensor(row, device=dev) * w)\n",
        "for i, row in enumerate(rows):\n"
        "    out.append(torch.tensor(row).to(dev).sum() + i)\n",
        "out = [torch.tensor(row, device=dev) for row, w in zip(rows, ws)]\n",
        "def f(them):\n    return sum(torch.tensor(x).to(dev).sum() for x in them)\n"
        "out = f(rows)\n",
        "for i, pair in zip(ws, pairs):\n"
        "    a, b = torch.tensor(pair, device=dev).T\n    out.append(a * b)\n",
        "for one in held:\n    out.append(torch.tensor(one['row'], device=dev))\n",
    ],
)
def test_lists_of_several_lengths_become_one_tensor(
    tmp_path: Path, source: str, lengths: str
) -> None:
    cell = becomes(source, size_bytes=4_096 if lengths else 2_048)
    change = changes_of(lists, cell.evidence(tmp_path))["tensor-once"]
    setup = (
        f"rows = [[i, 2 * i, 3]{lengths} for i in range(60)]\n"
        "pairs, ws, out = [[(a, a + 1) for a in row] for row in rows], range(60), []\n"
        "held = [{'row': row, 'n': 1} for row in rows]\n"
    )
    assert agrees(change, source, setup, "out")
    assert ".split(" in change.code if lengths else ".split(" not in change.code


@pytest.mark.parametrize(
    ("listed", "is_whole"),
    [
        ("[torch.tensor(one['row'], device=dev) for one in held]", True),
        ("[torch.tensor(one.row).to(dev) for one in objects]", True),
        ("[torch.tensor(row, device=dev) for row, w in zip(rows, ws)]", True),
        ("[torch.tensor(row, device=dev) * 2 for row in rows]", False),
    ],
)
def test_stacked_lists_become_one_tensor(
    tmp_path: Path, listed: str, is_whole: bool
) -> None:
    source = f"out = torch.stack({listed})\n"
    change = changes_of(lists, becomes(source).evidence(tmp_path))["tensor-once"]
    setup = (
        "from types import SimpleNamespace\nrows = [[i, 2, 3] for i in range(60)]\n"
        "held, ws = [{'row': row} for row in rows], range(60)\n"
        "objects = [SimpleNamespace(row=row) for row in rows]\n"
    )
    assert agrees(change, source, setup, "out")
    assert ("stack" not in change.code) is is_whole


@pytest.mark.parametrize(
    "source",
    [
        "for row in made():\n    x = torch.tensor(row, device=dev)\n",
        "for row in rows:\n    x = torch.tensor(row, device=dev)\n    row.pop()\n",
        "for row, d in zip(rows, ds):\n    x = torch.tensor(row, device=d)\n",
        "for row in rows:\n    x = torch.tensor(row, device=dev)\n    rows.pop()\n",
        "for row in rows:\n    x = torch.tensor(row, device=dev)\n    if y: break\n",
        "x = y or [torch.tensor(row, device=dev) for row in rows]\n",
        "x = [torch.tensor(i, device=dev) for row in rows for i in row]\n",
        "x = {k: torch.tensor(row, device=dev) for k, row in zip(ks, rows)}\n",
        "for row in rows:\n    x = torch.tensor(row, device=dev, requires_grad=True)\n",
        # what turns leave out may be floats among whole numbers
        "for row, w in zip(rows, ws):\n    if w:\n        x = torch.tensor(row)\n",
        "for row, w in zip(rows, ws):\n    x = torch.tensor(row) if w else None\n",
        "for row, w in zip(rows, ws):\n    if w: continue\n    x = torch.tensor(row)\n",
        "for row in rows:\n    try: x = torch.tensor(row)\n    except E: pass\n",
        "x = [torch.tensor(row) for row, w in zip(rows, ws) if w]\n",
        "x = torch.stack([torch.tensor(row) for row, w in zip(rows, ws) if w])\n",
        # the device of each turn, and arrays, which no split() takes apart
        "for d in devices:\n    x = torch.tensor(held['row'], device=d)\n",
        "for row in rows:\n    x = torch.from_numpy(np.asarray(row)).to(dev)\n",
        # writes to views of one tensor count for all of them
        "for row in rows:\n    x = torch.tensor(row, device=dev)\n    x *= w\n",
    ],
)
@pytest.mark.parametrize("size_bytes", [2_048, 4_096])
def test_lists_that_are_used_otherwise_have_no_edit(
    tmp_path: Path, source: str, size_bytes: int
) -> None:
    cell = becomes(source, size_bytes=size_bytes)
    change = changes_of(lists, cell.evidence(tmp_path)).get("tensor-once")
    assert change is None or not change.code


def test_an_empty_list_among_whole_numbers_stays_of_floats(tmp_path: Path) -> None:
    cell = becomes(ROWS, size_bytes=4_096)
    cell.views("aten::lift_fresh", "aten::detach_", "aten::to")
    change = changes_of(lists, cell.evidence(tmp_path))["tensor-once"]
    assert not change.code


def test_lists_of_several_dtypes_have_no_edit(tmp_path: Path) -> None:
    cell = becomes(ROWS)
    cell.kernel(3_000)
    for dtype in ("long int", "float"):
        cell.views("aten::lift_fresh", "aten::detach_")
        moved(cell, 2_048, dtype=dtype)
    change = changes_of(lists, cell.evidence(tmp_path))["tensor-once"]
    assert not change.code


@pytest.mark.parametrize(
    "cell",
    [
        becomes(ROWS, count=5),
        # each list is what the turn before it gave
        becomes(
            "for _ in range(60):\n    t = torch.tensor(ids).to(dev)\n    ids = f(t)\n"
        ),
    ],
)
def test_other_lists_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(lists, cell.evidence(tmp_path))


def pinned(source: str | None, waits: bool = True, fills: bool = False) -> Cell:
    cell = Cell(source)
    for _ in range(20):
        if fills:
            with cell.operator("aten::copy_"):
                cell.python(100_000)
        with cell.operator("aten::copy_"):
            cell.copy("HtoD", 4 << 20, "Pinned")
            if waits:
                cell.wait()
        for _ in range(6):
            cell.call("aten::add", 6_000, dims=([1 << 20], [1 << 20], []))
    cell.wait()
    return cell


PARTS = "for part in parts:\n    place.copy_(part)\n    t = t + place\n"


@pytest.mark.parametrize(
    "source", [PARTS, PARTS.replace("copy_(part)", "copy_(part, )")]
)
def test_copies_from_pinned_memory_need_no_wait(tmp_path: Path, source: str) -> None:
    cell, fixed = pinned(source), pinned(None, waits=False)
    change = changes_of(pinned_waits, cell.evidence(tmp_path))["non-blocking"]
    assert holds(change, fixed)
    assert "copy_(part, non_blocking=True)" in change.code
    setup = "parts = [torch.ones(4), torch.zeros(4)]; place = t = torch.ones(4)"
    assert agrees(change, source, setup, "t", "place")


@pytest.mark.parametrize(
    "cell",
    [
        pinned(PARTS, waits=False),
        # the memory is written again, as the trace or the source tells
        pinned(None, fills=True),
        pinned("for b in data:\n    s[:] = b\n    x = s.to(dev)\n"),
    ],
)
def test_a_buffer_filled_again_needs_its_wait(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(pinned_waits, cell.evidence(tmp_path))
