"""Events that don't overlap, and how they look from further and further away.

A level is the row in steps of a power of two of nanoseconds: of each step that holds
anything, how much of it is covered, how many events begin in it, and the name that
takes most of it. Each level is made of the one before, so that all of them take about
as long as the first, and a view of any width is a slice of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import Bools, Int32s, Int64s
from warpbook_profiler.model.timeline_answers import TimelineBars

#: Fewer events are put into steps when they are asked for.
_FEW_EVENTS = 8192
#: The finest level has at least so many events a step, on average over the row.
_EVENTS_PER_STEP = 4
#: the widest step, half of the times that there are
_COARSEST = 53


@dataclass(frozen=True)
class Spans:
    """Spans of time in order, each of which ends before the next starts."""

    start_ns: Int64s
    end_ns: Int64s

    def __len__(self) -> int:
        """Count them."""
        return len(self.start_ns)

    def reach(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Give the range of those that are between two moments at least partly."""
        first = min(
            np.searchsorted(self.end_ns, from_ns, "right"),
            np.searchsorted(self.start_ns, from_ns, "left"),
        )
        return int(first), int(np.searchsorted(self.start_ns, to_ns, "left"))

    def within_ns(self, from_ns: int, to_ns: int) -> Int64s:
        """Measure what of each of those is between the moments."""
        first, last = self.reach(from_ns, to_ns)
        within_ns: Int64s = np.minimum(self.end_ns[first:last], to_ns) - np.maximum(
            self.start_ns[first:last], from_ns
        )
        return within_ns


@dataclass(frozen=True)
class _Steps:
    """What is in steps, in order: of each name in each step, or of the step at all."""

    step: Int64s
    #: of a step at all, the one that takes most
    name: Int32s
    time_ns: Int64s
    #: events that begin there
    count: Int64s

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        numbers = self.step.nbytes + self.time_ns.nbytes + self.count.nbytes
        return numbers + self.name.nbytes


class Row:
    """One row of a timeline, never changed once made."""

    def __init__(self, spans: Spans, name: Int32s, number: Int32s) -> None:
        """Take the events, their names, and their positions in the run."""
        self.spans = spans
        self.name = name
        self.number = number
        self._finest, self._levels = self._make_levels()

    def __len__(self) -> int:
        """Count the events."""
        return len(self.name)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        spans = self.spans.start_ns.nbytes + self.spans.end_ns.nbytes
        own = spans + self.name.nbytes + self.number.nbytes
        return own + sum(level.size_bytes for level in self._levels)

    def bars(
        self, from_ns: int, to_ns: int, shift: int, most_events: int, matching: Bools
    ) -> TimelineBars:
        """Show a span: its events if they are few, else steps of `1 << shift` ns.

        Args:
            from_ns: where it begins.
            to_ns: where it ends.
            shift: of the step.
            most_events: as many are shown one by one.
            matching: by name, whether it is searched for; empty if nothing is.
        """
        first, last = self.spans.reach(from_ns, to_ns)
        if last - first <= most_events:
            names = self.name[first:last]
            matches = np.flatnonzero(matching[names]) if len(matching) else names[:0]
            start_ns = self.spans.start_ns[first:last]
            return TimelineBars(
                False,
                tuple(start_ns.tolist()),
                tuple((self.spans.end_ns[first:last] - start_ns).tolist()),
                tuple(names.tolist()),
                found=tuple(matches.tolist()),
            )
        level = self._in_steps(from_ns, to_ns, shift)
        width = 1 << shift
        steps_ns = level.step << shift
        # from the first event of a step to its last: a bar covers no time before it
        begun = np.minimum(
            np.searchsorted(self.spans.end_ns, steps_ns, "right"),
            # one without length ends where it begins
            np.searchsorted(self.spans.start_ns, steps_ns, "left"),
        )
        ended = np.searchsorted(self.spans.start_ns, steps_ns + width, "left") - 1
        starts_ns = np.clip(self.spans.start_ns[begun], steps_ns, steps_ns + width - 1)
        ends_ns = np.minimum(self.spans.end_ns[ended], steps_ns + width)
        lengths_ns = np.maximum(ends_ns - starts_ns, 1)
        return TimelineBars(
            True,
            tuple(starts_ns.tolist()),
            tuple(lengths_ns.tolist()),
            tuple(level.name.tolist()),
            tuple(level.count.tolist()),
            tuple(np.round(level.time_ns / lengths_ns, 3).tolist()),
            tuple(self._holding(steps_ns, width, matching, first, last).tolist()),
        )

    def _in_steps(self, from_ns: int, to_ns: int, shift: int) -> _Steps:
        at = shift - self._finest
        if not 0 <= at < len(self._levels):
            first, last = self.spans.reach(from_ns, to_ns)
            return _summed(self._parts(first, last, shift, from_ns, to_ns))
        level = self._levels[at]
        begin, end = np.searchsorted(
            level.step, [from_ns >> shift, -(-to_ns >> shift)], "left"
        )
        return _Steps(
            level.step[begin:end],
            level.name[begin:end],
            level.time_ns[begin:end],
            level.count[begin:end],
        )

    def _holding(
        self, starts_ns: Int64s, width: int, matching: Bools, first: int, last: int
    ) -> Int64s:
        """Give the positions of the steps that hold a match."""
        if not len(matching):
            return starts_ns[:0]
        # the steps at the edges reach a little further than what was asked for
        edges = self.spans.reach(int(starts_ns[0]), int(starts_ns[-1]) + width)
        first, last = min(first, edges[0]), max(last, edges[1])
        matches = first + np.flatnonzero(matching[self.name[first:last]])
        spans = Spans(self.spans.start_ns[matches], self.spans.end_ns[matches])
        # of each step the first match that does not end before it
        following = np.minimum(
            np.searchsorted(spans.end_ns, starts_ns, "right"),
            np.searchsorted(spans.start_ns, starts_ns, "left"),
        )
        holds: Int64s = np.flatnonzero(following < len(matches))
        begins_ns = spans.start_ns[following[holds]]
        return holds[begins_ns < starts_ns[holds] + width]

    def _make_levels(self) -> tuple[int, list[_Steps]]:
        if len(self) <= _FEW_EVENTS:
            return 0, []
        span_ns = int(self.spans.end_ns[-1]) - int(self.spans.start_ns[0])
        # so that there are never more steps than a share of the events
        finest = max(span_ns * _EVENTS_PER_STEP // len(self), 1).bit_length()
        parts = self._parts(0, len(self), finest)
        levels = [_summed(parts)]
        while finest + len(levels) <= _COARSEST:
            parts = _merged(parts.step >> 1, parts.name, parts.time_ns, parts.count)
            levels.append(_summed(parts))
        return finest, levels

    def _parts(
        self,
        first: int,
        last: int,
        shift: int,
        from_ns: int | None = None,
        to_ns: int | None = None,
    ) -> _Steps:
        """Cut events at the steps of a span, and add up by step and name."""
        start_ns, end_ns = (
            self.spans.start_ns[first:last],
            self.spans.end_ns[first:last],
        )
        begin = started = start_ns >> shift
        # an event of no length is in the step where it starts
        finish = np.maximum((end_ns - 1) >> shift, begin)
        if from_ns is not None and to_ns is not None:
            # an event may reach out of the span by any number of steps
            begin = np.maximum(begin, from_ns >> shift)
            finish = np.maximum(np.minimum(finish, (to_ns - 1) >> shift), begin)
        pieces = finish - begin + 1
        event = np.repeat(np.arange(len(begin)), pieces)
        before = np.cumsum(pieces) - pieces
        step = begin[event] + np.arange(len(event)) - before[event]
        time_ns = np.minimum(end_ns[event], (step + 1) << shift) - np.maximum(
            start_ns[event], step << shift
        )
        count = (step == started[event]).astype(np.int64)
        return _merged(step, self.name[first:last][event], time_ns, count)


def _merged(step: Int64s, name: Int32s, time_ns: Int64s, count: Int64s) -> _Steps:
    """Add up what has the same step and name; the steps are in order."""
    if not len(step):
        return _Steps(step, name, time_ns, count)
    # numbered anew, so that both fit into one number
    rank = np.cumsum(_begins(step)) - 1
    key = rank * (int(name.max()) + 1) + name
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(_begins(key[order]))
    chosen = order[first]
    return _Steps(
        step[chosen],
        name[chosen],
        np.add.reduceat(time_ns[order], first),
        np.add.reduceat(count[order], first),
    )


def _summed(parts: _Steps) -> _Steps:
    """Add up by step, and choose the name that takes most of each."""
    if not len(parts.step):
        return _Steps(parts.step, parts.name, parts.time_ns, parts.count)
    begins = _begins(parts.step)
    first = np.flatnonzero(begins)
    most_ns = np.maximum.reduceat(parts.time_ns, first)
    rank = np.cumsum(begins) - 1
    longest = np.flatnonzero(parts.time_ns == most_ns[rank])
    # of names that take as much the first
    longest = longest[_begins(rank[longest])]
    return _Steps(
        parts.step[first],
        parts.name[longest],
        np.add.reduceat(parts.time_ns, first),
        np.add.reduceat(parts.count, first),
    )


def _begins(values: Int64s) -> npt.NDArray[np.bool_]:
    """Choose the first of each run of equal values."""
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = values[1:] != values[:-1]
    return is_first
