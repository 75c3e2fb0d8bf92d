"""Sketches of results that a loop reads, and of parts that a mask chooses."""

from __future__ import annotations

from pathlib import Path

from tests.profiler.advice.program import Cell
from tests.profiler.advice.program import changes_of as changes_by
from warpbook_profiler.techniques.host.waits import waits

LISTED = "kept = []\nfor x in xs:\n    kept.append({})"


def reads(source: str | None) -> Cell:
    cell = Cell(source)
    for _ in range(9):
        cell.call("aten::sum", 20_000)
        cell.item()
    return cell


def test_a_cast_is_no_read(tmp_path: Path) -> None:
    source = "for x in xs:\n    y = x.float() * float(3)\n    t += y.sum().item()"
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    assert change.line == 3 and "y.sum().item()" in change.evidence
