"""Arithmetic on intervals that are sorted by start, in whole nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_profiler.events.columns import NONE, Bools, Int64s


def union_ns(start_ns: Int64s, end_ns: Int64s) -> int:
    """Measure the time that at least one interval covers."""
    if len(start_ns) == 0:
        return 0
    latest_end = np.maximum.accumulate(end_ns)
    gaps = np.maximum(start_ns[1:] - latest_end[:-1], 0)
    return int(latest_end[-1] - start_ns[0] - gaps.sum())


def levels(start_ns: Int64s, end_ns: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Go through intervals of one thread, which nest, from the outermost inwards.

    Args:
        start_ns: ascending; of two that start together the longer comes first.
        end_ns: in the same order.

    Yields:
        the positions of a level, and of each that of the one around it, or NONE.
    """
    left = np.arange(len(start_ns))
    above: Int64s | None = None
    while len(left):
        is_top = np.ones(len(left), np.bool_)
        ended_ns = np.maximum.accumulate(end_ns[left])
        is_top[1:] = start_ns[left[1:]] >= ended_ns[:-1]
        top = left[is_top]
        if above is None:
            yield top, np.full(len(top), NONE, np.int64)
        else:
            yield top, above[np.searchsorted(above, top) - 1]
        above, left = top, left[~is_top]


def enclosing(
    start_ns: Int64s, end_ns: Int64s, parent: Int64s, at_ns: Int64s
) -> Int64s:
    """Give the innermost interval around each moment, or NONE.

    Args:
        start_ns: of nested intervals, as for `levels`.
        end_ns: in the same order.
        parent: of each the position of the one around it, or NONE.
        at_ns: the moments.
    """
    # the last stands for none, which never ends
    ends_ns = np.append(end_ns, np.iinfo(np.int64).max)
    above = np.append(parent, NONE)
    # whoever encloses the moment encloses the last one begun before it
    position = np.searchsorted(start_ns, at_ns, side="right") - 1
    over = ends_ns[position] < at_ns
    while over.any():
        position[over] = above[position[over]]
        over = ends_ns[position] < at_ns
    return position


def nesting(start_ns: Int64s, end_ns: Int64s) -> tuple[Int64s, Bools]:
    """Give each interval's time outside those nested in it, and which are outermost.

    Args:
        start_ns: ascending; of two that start together the longer comes first.
        end_ns: in the same order. Intervals of one thread nest; where they
            merely overlap, the overlap is taken from the earlier one.
    """
    self_ns = end_ns - start_ns
    outermost = np.zeros(len(start_ns), np.bool_)
    for top, parent in levels(start_ns, end_ns):
        if parent[0] == NONE:
            outermost[top] = True
            continue
        within = np.minimum(end_ns[top], end_ns[parent]) - start_ns[top]
        np.subtract.at(self_ns, parent, np.maximum(within, 0))
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

    @property
    def spans(self) -> tuple[Int64s, Int64s]:
        """Give begin and end of each covered span."""
        return self._start_ns, self._end_ns

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
