"""Cells of the exam without a GPU, where a trace advises no edit: it is given."""

from __future__ import annotations

import msgspec

from tests.gpu.exam.loading import Cell, load_cells

#: whose expert's change gains on a CPU, too, and what makes them long beside what a
#: busy machine adds
_ON_CPU = {
    "rows_one_by_one": ("500", "10_000"),
    "systems_solved_one_by_one": ("200", "2_000"),
    "small_copies_in_a_loop": ("300", "20_000"),
}
_IMPORTS = """\
import gc, time, torch
import torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
dev = {!r}
if dev == "cpu":
    torch.set_num_threads(1)
"""
_ADVISE = """\
import msgspec
from warpbook.kernel.runs.recording import RunRecord
from warpbook_profiler.model.change import Change

if "_of_trace" not in globals():
    _of_trace = RunRecord.figures
def _advised(record, lines):
    source, (name, slow, fast) = record.run.source or "", _edit
    change = Change(
        name, f"Do {name}.", "", "predicted", None, None, None, 1.5, 3.0, "", "",
        code=source.replace(slow, fast), diff=f"-{slow}\\n+{fast}",
    )
    changes = (change,) if slow in source else ()
    return msgspec.structs.replace(_of_trace(record, lines), changes=changes)
RunRecord.figures = _advised
"""


def cpu_cells() -> tuple[Cell, ...]:
    return tuple(_longer(cell) for cell in load_cells() if cell.name in _ON_CPU)


def _longer(cell: Cell) -> Cell:
    texts = {
        name: getattr(cell, name).replace(*_ON_CPU[cell.name])
        for name in ("setup", "slow", "fast")
    }
    return msgspec.structs.replace(cell, **texts)


def setup_of(cell: Cell, device: str) -> str:
    """Give what is run before a cell, on a device of torch's."""
    return f"{_IMPORTS.format(device)}{cell.setup}\n"


def advice_for(cell: Cell) -> str:
    """Give code for a kernel that then advises the expert's change of a cell."""
    edit = cell.changes[0], cell.slow.strip(), cell.fast.strip()
    return f"{_ADVISE}_edit = {edit!r}\n"
