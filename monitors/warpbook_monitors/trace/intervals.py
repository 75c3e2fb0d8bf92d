"""Arithmetic on intervals that are sorted by start, in whole nanoseconds."""

from __future__ import annotations

import numpy as np

from warpbook_monitors.trace.columns import Bools, Int64s


def union_ns(start_ns: Int64s, end_ns: Int64s) -> int:
    """Measure the time that at least one interval covers."""
    if len(start_ns) == 0:
        return 0
    latest_end = np.maximum.accumulate(end_ns)
    gaps = np.maximum(start_ns[1:] - latest_end[:-1], 0)
    return int(latest_end[-1] - start_ns[0] - gaps.sum())


def nesting(start_ns: Int64s, end_ns: Int64s) -> tuple[Int64s, Bools]:
    """Give each interval's time outside those nested in it, and which are outermost.

    Args:
        start_ns: ascending; of two that start together the longer comes first.
        end_ns: in the same order. Intervals of one thread nest; where they
            merely overlap, the overlap is taken from the earlier one.
    """
    self_ns = end_ns - start_ns
    outermost = np.zeros(len(start_ns), np.bool_)
    left = np.arange(len(start_ns))
    parents: Int64s | None = None
    # one turn per level of nesting: what is outermost among the rest
    while len(left):
        latest_end = np.maximum.accumulate(end_ns[left])
        is_top = np.ones(len(left), np.bool_)
        is_top[1:] = start_ns[left[1:]] >= latest_end[:-1]
        top = left[is_top]
        if parents is None:
            outermost[top] = True
        else:
            parent = parents[np.searchsorted(parents, top) - 1]
            within = np.minimum(end_ns[top], end_ns[parent]) - start_ns[top]
            np.subtract.at(self_ns, parent, np.maximum(within, 0))
        parents = top
        left = left[~is_top]
    return self_ns, outermost
