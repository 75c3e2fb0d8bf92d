"""What warpbook itself puts into a recording: where the cell begins, what is around it.

A trace that it saved holds them too, and is read as the recording was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.trace.columns import NONE, Columns

#: The first event of every capture, and again where a cell's code begins: without it
#: the events are somebody else's.
MARK = "warpbook: start of the cell"
#: Around the cell where allocations are recorded: torch forgets those of a GPU that
#: nothing is around.
AROUND = "warpbook: the cell"


def marked_ns(columns: Columns) -> int | None:
    """Tell when the cell began, or None where warpbook marked nothing."""
    marks = columns.end_ns[_are(columns, MARK)]
    return int(marks.max()) if len(marks) else None


def of_the_cell(columns: Columns, since_ns: int) -> Columns:
    """Leave out our marks, and what the profiler was set up with before them."""
    ours = _are(columns, MARK) | _are(columns, AROUND)
    return columns.where(~ours & (columns.start_ns >= since_ns))


def _are(columns: Columns, name: str) -> NDArray[np.bool_]:
    place = columns.names.index(name) if name in columns.names else NONE
    are: NDArray[np.bool_] = columns.name == place
    return are
