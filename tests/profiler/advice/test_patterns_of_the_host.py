"""Rules for branches, waits, compilers and garbage that hold the host up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_operations import holds
from warpbook_profiler.techniques.host.branches import branches
from warpbook_profiler.techniques.host.compiling import compiling
from warpbook_profiler.techniques.host.garbage import garbage
from warpbook_profiler.techniques.host.waits_in_loop import waits_in_loop

MS = 1_000_000


def asks(source: str | None, reads: bool = True) -> Cell:
    cell = Cell(source)
    for _ in range(40):
        cell.call("aten::linalg_vector_norm", 40_000, dims=([65536], [], [], [], []))
        cell.call("aten::gt", 2_000, dims=([], []))
        if reads:
            with cell.operator("aten::is_nonzero"):
                cell.item()
        else:
            cell.call("aten::where", 2_000)
            cell.call("aten::reciprocal", 2_000)
        cell.call("aten::mul", 30_000, dims=([65536], []))
    cell.wait()
    return cell


IF = (
    "for x in xs:\n    n = x.norm()\n    if n > 2.0:\n        {step}\n"
    "    out.append(x)\n"
)


@pytest.mark.parametrize(
    "source",
    [
        IF.format(step="x = x * (2.0 / n)"),
        IF.format(step="x.mul_(2.0 / n)"),
        IF.format(step="x *= 2.0 / n"),
        IF.format(step="x = x + 1; x = x / n"),
        "for x in xs:\n    if x.abs().max() > 1: x -= 0.5\n    out.append(x)\n",
    ],
)
def test_a_branch_is_a_choice(tmp_path: Path, source: str) -> None:
    cell, fixed = asks(source), asks(None, reads=False)
    change = changes_of(branches, cell.evidence(tmp_path))["branch-on-gpu"]
    assert holds(change, fixed)
    setup = "xs = [k * torch.ones(4) / 4 for k in range(9)]; out = []"
    assert agrees(change, source, setup, "out")


def test_a_coin_for_each_is_a_choice_too(tmp_path: Path) -> None:
    source = "for x, coin in zip(xs, coins):\n    if coin: x = x.flip(0)\n"
    change = changes_of(branches, asks(source).evidence(tmp_path))["branch-on-gpu"]
    assert change.line == 2


@pytest.mark.parametrize(
    "source",
    [
        # the branch saves much work
        IF.format(step="x = x @ w @ w"),
        IF.format(step="x = repaired(x)"),
        # of Python's own
        "for i in range(9):\n    if i > 3:\n        x = x * 2\n",
        "for i, x in enumerate(xs):\n    if i: x = x * 2\n",
    ],
)
def test_other_branches_are_let_be(tmp_path: Path, source: str) -> None:
    assert not changes_of(branches, asks(source).evidence(tmp_path))


@pytest.mark.parametrize(
    "source",
    [
        IF.format(step="break"),
        "e = torch.ones(())\nwhile e > 0.1:\n    x = x * 0.9\n    e = x.norm()\n",
    ],
)
def test_a_loop_asks_less_often_when_to_end(tmp_path: Path, source: str) -> None:
    change = changes_of(branches, asks(source).evidence(tmp_path))["branch-on-gpu"]
    assert change.title.startswith("Test whether to stop every 8 iterations")
    assert change.code == ""


def test_masked_elements_need_no_question(tmp_path: Path) -> None:
    source = "for x in xs:\n    bad = x > 1\n    if bad.any():\n        x[bad] = 0.0\n"
    change = changes_of(branches, asks(source).evidence(tmp_path))["branch-on-gpu"]
    assert "    x[bad] = 0.0\n" in change.code
    assert agrees(change, source, "xs = [k * torch.ones(4) for k in range(3)]", "xs")


def waiting(source: str | None, name: str = "cudaStreamSynchronize") -> Cell:
    cell = Cell(source)
    for _ in range(30):
        for _ in range(4):
            cell.call("aten::sin", 12_000)
        if name:
            cell.wait(name)
    cell.wait("cudaDeviceSynchronize")
    return cell


SYNC = "for i in range(30):\n    x = x.sin()\n    {wait}\n"


@pytest.mark.parametrize("source", [SYNC.format(wait="torch.cuda.synchronize()"), None])
@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize"])
def test_a_wait_in_a_loop_is_left_out(
    tmp_path: Path, source: str | None, name: str
) -> None:
    change = changes_of(waits_in_loop, waiting(source, name).evidence(tmp_path))
    assert holds(change["sync-in-loop"], waiting(None, ""))
    if source:
        assert change["sync-in-loop"].code == "for i in range(30):\n    x = x.sin()\n"


@pytest.mark.parametrize(
    "wait",
    [
        "torch.cuda.synchronize(); t.append(time.perf_counter())",
        "end.record(); end.synchronize(); t.append(start.elapsed_time(end))",
    ],
)
def test_a_clock_needs_its_wait(tmp_path: Path, wait: str) -> None:
    cell = waiting(SYNC.format(wait=wait))
    assert not changes_of(waits_in_loop, cell.evidence(tmp_path))


def test_a_result_in_pinned_memory_needs_its_wait(tmp_path: Path) -> None:
    cell = Cell()
    for _ in range(9):
        cell.call("aten::sin", 12_000)
        cell.copy("DtoH", 4_096, "Pinned")
        cell.wait()
    assert not changes_of(waits_in_loop, cell.evidence(tmp_path))


def compiles(source: str | None, name: str) -> Cell:
    cell = Cell(source)
    for number in range(3):
        if number == 0:
            with cell.operator(name, category="user_annotation"):
                cell.python(200 * MS)
                with cell.operator(f"inner {name}", category="user_annotation"):
                    cell.python(100 * MS)
        cell.call("triton_poi_fused_add_0", 50_000)
    cell.wait()
    return cell


def test_what_is_compiled_in_the_cell_is_compiled_before(tmp_path: Path) -> None:
    name, fixed = "_compile.compile_inner (dynamo_timed)", Cell()
    for _ in range(3):
        fixed.call("triton_poi_fused_add_0", 50_000)
    fixed.wait()
    source = "@torch.compile\ndef f(x):\n    return x + 1\ny = f(x)\n"
    change = changes_of(compiling, compiles(source, name).evidence(tmp_path))
    assert holds(change["recompiles"], fixed)
    assert change["recompiles"].line == 1
    elsewhere = changes_of(compiling, compiles("y = f(x)", name).evidence(tmp_path))
    assert "dynamic=True" in elsewhere["recompiles"].title
    ran = compiles(source, "Torch-Compiled Region: 0/0")
    assert not changes_of(compiling, ran.evidence(tmp_path))


def collects(source: str | None, took: int = 20 * MS) -> tuple[Cell, list]:
    cell, spans = Cell(source), []
    for _ in range(5):
        cell.call("aten::mm", 90_000)
        spans.append((cell.host, took))
        cell.python(took)
    cell.wait()
    return cell, spans


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("for x in xs:\n    y = x\n    gc.collect()\n", "for x in xs:\n    y = x\n"),
        # switched off, it would stay off where the cell is interrupted
        ("y = [[i] for i in xs]", ""),
        (None, ""),
    ],
)
def test_garbage_is_collected_afterwards(
    tmp_path: Path, source: str | None, left: str
) -> None:
    cell, spans = collects(source)
    evidence = cell.evidence(tmp_path)
    begun_ns = evidence.run.start_ns
    assert not changes_of(garbage, evidence)
    run = replace(evidence.run, collections=tuple(spans))
    trace = replace(evidence.trace, run=run)
    change = changes_of(garbage, replace(evidence, trace=trace))["gc"]
    fixed, _ = collects(None, 0)
    assert begun_ns and holds(change, fixed)
    assert change.code == left
