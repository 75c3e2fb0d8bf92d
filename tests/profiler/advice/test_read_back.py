"""Results that a loop copies to the host: pinned memory, or one copy of all."""

import ast
from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
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
) -> Cell:
    cell = Cell(source)
    for _ in range(count):
        cell.call("aten::mm", 200_000)
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
    ast.parse(change.sketch)
    assert "for result, x in zip(results, xs):" in change.sketch
    assert "result.copy_(model(x), non_blocking=True)" in change.sketch


def test_small_results_are_copied_at_once(tmp_path: Path) -> None:
    cell, fixed = reads(READS, SMALL), kept(0)
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert (change.basis, change.line) == ("predicted", 2)
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns < cell.window_ns
    assert change.sketch.startswith("kept.append(model(x))  # in the loop")
    assert "torch.stack(kept).cpu()" in change.sketch


def test_results_that_differ_in_size_are_joined(tmp_path: Path) -> None:
    cell = Cell(READS)
    for number in range(1, 11):
        cell.call("aten::mm", 20_000)
        with cell.operator("aten::to"):
            cell.copy("DtoH", 400 * number)
        cell.python(PYTHON_NS)
    cell.wait()
    change = changes_of(read_back, cell.evidence(tmp_path))["stack-results"]
    assert "torch.cat(kept).cpu()" in change.sketch


@pytest.mark.parametrize(
    ("source", "line", "shows"),
    [
        ("rows = [f(i, x).cpu().numpy() for i, x in pairs]", 1, "f(i, x)"),
        ("for x in xs:\n    y = f(x)\n    host[0].copy_(y)", 3, "y"),
        ("while n:\n    n -= 1\n    z = g(n).to('cpu')", 3, "g(n)"),
        ("for x in xs:\n    show(f(x).tolist())", 2, "f(x)"),
        (None, None, "y"),
    ],
)
def test_a_result_is_named_as_its_cell_does(
    tmp_path: Path, source: str | None, line: int | None, shows: str
) -> None:
    cell = reads(source, LARGE)
    change = changes_of(read_back, cell.evidence(tmp_path))["pinned-results"]
    ast.parse(change.sketch)
    assert change.line == line
    assert f".copy_({shows}, non_blocking=True)" in change.sketch


@pytest.mark.parametrize(
    "source",
    [
        "for epoch in range(2):\n    for x in xs:\n        kept.append(f(x).cpu())",
        "for x in xs:\n    y = f(x)\n    kept.append(y.cpu())",
        "for x in xs:\n    if x is not None:\n        kept.append(x.cpu())",
        "kept = [x.cpu() for x in xs if x is not None]",
        "def keep(xs):\n    for x in xs:\n        kept.append(x.cpu())",
    ],
)
def test_a_loop_that_does_more_is_not_rewritten(tmp_path: Path, source: str) -> None:
    cell = reads(source, LARGE)
    change = changes_of(read_back, cell.evidence(tmp_path))["pinned-results"]
    ast.parse(change.sketch)
    assert "zip(" not in change.sketch
    assert "results[i].copy_(" in change.sketch


@pytest.mark.parametrize(
    "cell",
    [
        reads(READS, LARGE, count=3),
        reads(READS, LARGE, memory="Pinned"),
        # a number, which `read-once` is about
        reads("for x in xs:\n    n += f(x).item()", 4, operator="aten::item"),
        # not in this cell, or back on the GPU in the end
        reads("for x in xs:\n    step(x.to(device))", LARGE),
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
