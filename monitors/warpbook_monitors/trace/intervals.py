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


def intersection_ns(a: tuple[Int64s, Int64s], b: tuple[Int64s, Int64s]) -> int:
    """Measure the time that both sets of intervals cover, each sorted by start."""
    both_start = np.concatenate([a[0], b[0]])
    both_end = np.concatenate([a[1], b[1]])
    order = np.argsort(both_start, kind="stable")
    together = union_ns(both_start[order], both_end[order])
    return union_ns(*a) + union_ns(*b) - together


class Coverage:
    """How much of any span a set of intervals covers."""

    def __init__(self, start_ns: Int64s, end_ns: Int64s) -> None:
        """Merge the intervals, which are sorted by start."""
        latest_end = np.maximum.accumulate(end_ns)
        is_first = np.ones(len(start_ns), np.bool_)
        is_first[1:] = start_ns[1:] > latest_end[:-1]
        first = np.flatnonzero(is_first)
        self._start_ns = start_ns[first]
        # each merged interval ends where the one before the next's first ends
        last = np.append(first[1:] - 1, len(start_ns) - 1)[: len(first)]
        self._end_ns = latest_end[last]
        self._before_ns = np.concatenate(
            [[0], np.cumsum(self._end_ns - self._start_ns)]
        ).astype(np.int64)

    @property
    def total_ns(self) -> int:
        """Measure all that is covered."""
        return int(self._before_ns[-1])

    def within_ns(self, from_ns: Int64s, to_ns: Int64s) -> Int64s:
        """Measure the covered part of each span."""
        covered: Int64s = self._until_ns(to_ns) - self._until_ns(from_ns)
        return np.maximum(covered, 0)

    def holds(self, at_ns: Int64s) -> Bools:
        """Choose the moments that are covered."""
        place = np.searchsorted(self._start_ns, at_ns, side="right") - 1
        if not len(self._start_ns):
            return np.zeros(len(at_ns), np.bool_)
        inside: Bools = (place >= 0) & (at_ns <= self._end_ns[np.maximum(place, 0)])
        return inside

    def _until_ns(self, at_ns: Int64s) -> Int64s:
        if not len(self._start_ns):
            return np.zeros(len(at_ns), np.int64)
        place = np.searchsorted(self._start_ns, at_ns, side="right") - 1
        started = np.maximum(place, 0)
        partial = np.clip(
            at_ns - self._start_ns[started],
            0,
            self._end_ns[started] - self._start_ns[started],
        )
        covered: Int64s = self._before_ns[started] + np.where(place >= 0, partial, 0)
        return covered
