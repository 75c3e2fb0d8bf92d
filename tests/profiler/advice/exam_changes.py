"""What is advised about the exam's cells, from traces that a GPU recorded of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.gpu.exam.loading import load_cells
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import analyse

DATA = Path(__file__).parents[2] / "data"
CELLS = {cell.name: cell for cell in load_cells()}


@cache
def changes_of(name: str, source: str | None = None) -> dict[str, Change]:
    """Give the changes of a cell by name, or those of another source for its trace."""
    file = f"{name}.json.gz"
    (path, *_) = [*DATA.glob(f"exam/h100/{file}"), *DATA.glob(f"exam_h100/{file}")]
    events, run = read_chrome_trace(str(path))
    profile = analyse(events, replace(run, source=source or CELLS[name].source))
    return {change.name: change for change in profile.changes}


def change_of(name: str, change: str) -> Change:
    """Give one change of a cell."""
    return changes_of(name)[change]
