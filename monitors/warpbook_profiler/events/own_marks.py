"""What warpbook itself puts into a recording: where the cell begins, what is around it.

A trace that it saved holds them too, and is read as the recording was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpbook_profiler.events.columns import NONE, Columns

#: The first two events of every capture, and again where a cell's code begins: without
#: it the events are somebody else's.
MARK = "warpbook: start of the cell"
#: Around the cell where allocations are recorded: torch forgets those of a GPU that
#: nothing is around.
AROUND = "warpbook: the cell"
#: In files with one mark: at most so much after it is IPython's, and before the first
#: record so much is the code's.
_COMPILED_NS, _BEFORE_CODE_NS = 500_000, 100_000


def marked_ns(columns: Columns) -> int | None:
    """Tell when the cell's code began, or None where warpbook marked nothing."""
    marks = columns.end_ns[_are(columns, MARK)]
    if not len(marks):
        return None
    marked = int(marks.max())
    if len(marks) > 1:
        return marked
    # older files: marked once, before IPython compiled the cell
    later = columns.start_ns[columns.start_ns > marked]
    begun = int(later.min()) - _BEFORE_CODE_NS if len(later) else marked
    return min(max(marked, begun), marked + _COMPILED_NS)


def of_the_cell(columns: Columns, since_ns: int) -> Columns:
    """Leave out our marks, and what the profiler was set up with before them."""
    ours = _are(columns, MARK) | _are(columns, AROUND)
    return columns.where(~ours & (columns.start_ns >= since_ns))


def _are(columns: Columns, name: str) -> NDArray[np.bool_]:
    place = columns.names.index(name) if name in columns.names else NONE
    are: NDArray[np.bool_] = columns.name == place
    return are
