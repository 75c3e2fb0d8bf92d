"""Sources that look like one that can be edited: the right edit, or none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.profiler.advice import exam_changes
from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_host_loops import grows
from tests.profiler.advice.test_patterns_of_the_host import IF, SYNC, asks, waiting
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.loops import row_loops
from warpbook_profiler.advice.code.read_code import gathered
from warpbook_profiler.advice.code.row_code import of_all_rows
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.techniques.host.branches import branches
from warpbook_profiler.techniques.host.growing_cat import growing_cat
from warpbook_profiler.techniques.host.row_by_row import row_by_row
from warpbook_profiler.techniques.host.waits_in_loop import waits_in_loop


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ("x[i] * (a + b)", "x[:9] * (a + b)"),
        ("x[i] * (a if c else b)", "x[:9] * (a if c else b)"),
        ("(y > 0) * x[i]", "(y > 0) * x[:9]"),
        ("x[i] @ (w + v)", "x[:9] @ (w + v)"),
        ("(x + y)[i] * 2", "(x + y)[:9] * 2"),
        ("x[i] / math.sqrt(d)", "x[:9] / math.sqrt(d)"),
        ("x[i].sum(-1)", "x[:9].sum(dim=-1)"),
        *(
            (value, "")
            for value in (
                *("x[i].sum(--1)", "x[i].max(-1)", "x[i] * next(it)", "x[i] + out"),
                *("x[i] + torch.rand(())", "x[i] * math.sqrt(lo.pop())"),
                *("x[i] / len(out)", "lo.pop()[i] * 2"),
            )
        ),
    ],
)
def test_operations_on_all_rows(value: str, whole: str) -> None:
    code = CellCode(f"for i in range(9):\n    out[i] = {value}")
    (loop,) = row_loops(code)
    expected = f"i = 8\nout[:9] = {whole}" if whole else ""
    assert of_all_rows(code, loop, 1, is_list=False) == expected


@pytest.mark.parametrize(
    ("other", "dtype", "is_edited"),
    [("w[i]", "float", False), ("w", "float", False), ("2.5", "double", True)],
)
def test_rows_beside_what_has_no_axis(
    tmp_path: Path, other: str, dtype: str, is_edited: bool
) -> None:
    cell = Cell(f"for i in range(40):\n    out[i] = x[i] * {other}")
    for _ in range(40):
        cell.views("aten::select")
        cell.call("aten::mul", 2_000, dims=([64], []))
        cell.events[-1]["args"]["Input type"] = ["float", dtype]
    cell.wait()
    code = changes_of(row_by_row, cell.evidence(tmp_path))["whole-tensor"].code
    assert bool(code) == is_edited


@pytest.mark.parametrize("method", ["replace", "delete", "before"])
def test_an_elif_stays(method: str) -> None:
    code = CellCode("if a:\n    x = 1\nelif b:\n    x = 2\ny = x")
    branch = next(one for one in ast.walk(code.tree) if getattr(one, "lineno", 0) == 3)
    edit = SourceEdit(code)
    getattr(edit, method)(branch, *["x = 3"][: method != "delete"])
    assert edit.source() == ""


@pytest.mark.parametrize(
    "source",
    [
        *(
            f"for x in xs:\n    if {test}:\n        x = x * 2\n"
            for test in (
                *("not ok.any()", "time.time() > t0", "random.random() > .5"),
                *("q.empty()", "isinstance(x, T)", "a: pass\n    elif x.sum() > 1"),
            )
        ),
        IF.format(step="x = x[:, :4]"),
        IF.format(step="x = x * w"),
        IF.format(step="count += 1"),
        "for x in xs:\n    if at.any():\n        x[at] = 0\n",
    ],
)
def test_a_branch_that_may_be_no_choice(tmp_path: Path, source: str) -> None:
    changes = changes_of(branches, asks(source).evidence(tmp_path))
    assert not any(change.code for change in changes.values())


@pytest.mark.parametrize(
    ("part", "kept"),
    [("x", "x.clone()"), ("x[None]", "x[None].clone()"), ("x * 2", "x * 2")]
    + [("x.add_(1)", "x.add_(1).clone()"), ("f(x)", "f(x).clone()")],
)
def test_parts_of_a_growth_are_copies(tmp_path: Path, part: str, kept: str) -> None:
    source = f"for i in range(40):\n    out = torch.cat([out, {part}])\n"
    change = changes_of(growing_cat, grows(source).evidence(tmp_path))["cat-once"]
    assert f"out_parts.append({kept})\n" in change.code


@pytest.mark.parametrize("join", ["vstack", "dstack"])
@pytest.mark.parametrize("turns", [0, 3])
def test_a_growth_without_turns_keeps_its_axes(
    tmp_path: Path, join: str, turns: int
) -> None:
    source = f"for i in range({turns}):\n    out = torch.{join}([out, rows[i] * 2])\n"
    change = changes_of(growing_cat, grows(source).evidence(tmp_path))["cat-once"]
    setup = "out, rows = torch.zeros(2), torch.randn(3, 2)"
    assert agrees(change, source, setup, "out")


def test_a_scaler_steps_no_schedule() -> None:
    source = "for x in xs:\n    scaler.step(o); sched.step()\n"
    changes = exam_changes.changes_of("adam_loop_over_tensors", source)
    assert changes["fused-optimizer"].code == ""


@pytest.mark.parametrize("is_stream", [False, True])
def test_waits_for_pinned_memory_and_streams(tmp_path: Path, is_stream: bool) -> None:
    cell = waiting(SYNC.format(wait="torch.cuda.synchronize()"))
    if is_stream:
        kernel = next(event for event in cell.events if event["cat"] == "kernel")
        kernel["tid"] = kernel["args"]["stream"] = 8
    else:
        cell.copy("HtoD", 4_096, "Pinned")
    assert not changes_of(waits_in_loop, cell.evidence(tmp_path))


def test_hostile_sources_are_let_be() -> None:
    assert not CellCode(f"x = 0x{'f' * 6_000}").is_known
    code = CellCode("t = 0.0\nfor x in xs:\n    t += float()\n")
    assert gathered(code, *code.calls("float")) == ""
    names = CellCode("a0 = f()\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(1200)))
    assert ValueFlow(names).uses(names.calls("f")[0].node) is None
