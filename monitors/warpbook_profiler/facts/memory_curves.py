"""How much torch's allocator held over time, from its recorded allocations."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.allocations import Allocations
from warpbook_profiler.events.columns import NONE, Bools
from warpbook_profiler.events.run import Run
from warpbook_profiler.model.pictures import MemoryCurve

#: of all GPUs' curves together
MAX_POINTS = 2000
#: kept of each bucket: the least, the most, and the most reserved
_KEPT = 3
_PATH_STEP = " > "
_MAX_PATH_LENGTH = 600


def memory_curves(run: Run) -> tuple[MemoryCurve, ...]:
    """Draw each GPU's curve in few points, which hold its peak."""
    recorded = [allocation for allocation in run.allocations if len(allocation.at_ns)]
    return tuple(
        _curve(allocations, run, MAX_POINTS // len(recorded))
        for allocations in recorded
    )


def _curve(all_of: Allocations, run: Run, most_points: int) -> MemoryCurve:
    times_ns = all_of.at_ns - run.start_ns
    rows = np.flatnonzero(_extremes(all_of, most_points - 2))
    # before the first change, and after the last
    before = int(all_of.allocated_bytes[0] - all_of.change_bytes[0])
    last_ns = max(run.end_ns - run.start_ns, int(times_ns[-1]))
    peak_ns, path, line = 0, "", NONE
    # else the most was there before, and the code only freed
    if all_of.most_bytes >= before:
        peak_ns, path = int(times_ns[all_of.peak]), _PATH_STEP.join(all_of.peak_path)
        if run.marks is not None:
            line = int(run.marks.line_at(all_of.at_ns[[all_of.peak]])[0])
    return MemoryCurve(
        device=all_of.device,
        times_ns=(min(0, int(times_ns[0])), *times_ns[rows].tolist(), last_ns),
        allocated_bytes=(
            before,
            *all_of.allocated_bytes[rows].tolist(),
            int(all_of.allocated_bytes[-1]),
        ),
        reserved_bytes=(
            int(all_of.reserved_bytes[0]),
            *all_of.reserved_bytes[rows].tolist(),
            int(all_of.reserved_bytes[-1]),
        ),
        changes=len(all_of.at_ns),
        peak_allocated_bytes=max(all_of.most_bytes, before),
        peak_ns=peak_ns,
        peak_path=path[:_MAX_PATH_LENGTH],
        peak_line=None if line == NONE else line,
    )


def _extremes(all_of: Allocations, most: int) -> Bools:
    """Choose at most so many rows: all, or of equal spans of time the extremes."""
    count = len(all_of.at_ns)
    if count <= most:
        return np.ones(count, np.bool_)
    buckets = most // _KEPT
    since = all_of.at_ns - all_of.at_ns[0]
    bucket = since * buckets // (int(since[-1]) + 1)
    chosen = np.zeros(count, np.bool_)
    for values in (
        all_of.allocated_bytes,
        -all_of.allocated_bytes,
        all_of.reserved_bytes,
    ):
        order = np.lexsort((values, bucket))
        # the last of each bucket is its largest
        chosen[order[np.append(np.diff(bucket[order]) > 0, True)]] = True
    return chosen
