"""The sources of the exam's cells, as far as they can be checked without a GPU."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

from tests.gpu.exam.loading import Cell, load_cells

CELLS = load_cells()
REFERENCE = Path(__file__).parents[3] / "docs/reference/changes.md"
#: what each kernel has before any cell
GIVEN = {"F", "dev", "nn", "time", "torch", *dir(builtins)}


def of_each_cell(test):
    return pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)(test)


def documented_changes() -> set[str]:
    """Give the names that the reference has a row for."""
    text = REFERENCE.read_text()
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall("`([^`]+)`", row.split("|")[1])}


def unbound(*sources: str) -> set[str]:
    """Give the names that are read and that nothing binds."""
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    bound, read = set(GIVEN), set()
    for node in nodes:
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
    return read - bound


@of_each_cell
def test_each_name_of_a_source_is_bound(cell: Cell) -> None:
    assert not unbound(cell.setup, cell.slow)
    assert not unbound(cell.setup, cell.slow, cell.fast_setup, cell.fast)


@of_each_cell
def test_the_changes_that_a_cell_expects_are_documented(cell: Cell) -> None:
    assert set(cell.changes) <= documented_changes()


@of_each_cell
def test_a_profiled_cell_ends_when_the_gpu_does(cell: Cell) -> None:
    last = ast.parse(cell.source).body[-1]
    assert ast.unparse(last) == "torch.cuda.synchronize()"


@of_each_cell
def test_only_a_cell_without_a_gain_is_its_own_fast_cell(cell: Cell) -> None:
    is_same = (cell.slow, "pass") == (cell.fast, cell.fast_setup)
    assert not is_same or cell.judged == "no gain"
