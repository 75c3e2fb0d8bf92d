"""The timeline of a run: all of its events, to be asked about at any width.

Nothing here walks events in Python. A window is a slice of a level of each row, so it
takes as long at a million events as at a thousand; statistics and a first search go
once over the columns of what they are about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import Bools, Int32s, Int64s
from warpbook_profiler.model.timeline_answers import (
    TimelineBars,
    TimelineDetails,
    TimelineEvent,
    TimelineFound,
    TimelineMatches,
    TimelineName,
    TimelineRow,
    TimelineStatistics,
    TimelineUse,
    TimelineWindow,
    TrackKind,
)
from warpbook_profiler.timeline.timeline_body import RunEvents, Track
from warpbook_profiler.timeline.timeline_known import EventsKnown
from warpbook_profiler.timeline.timeline_row import Row, Spans

#: more than a person scrolls through
MAX_ROWS = 64
#: operators within operators, beyond which nobody looks
_MAX_LEVELS = 12
#: of a selection, for each kind
_MOST_NAMES = 20
#: by one call, with their places: a CUDA graph launches thousands
_MOST_LAUNCHED = 20
_NOTHING_FOUND: Bools = np.zeros(0, np.bool_)


@dataclass(frozen=True)
class _Gpu:
    """A GPU: when any of its streams was at work."""

    label: str
    busy: Spans
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _Match:
    """What a text was found in."""

    text: str
    #: by name
    names: Bools
    #: by row, the positions of the events
    events: tuple[Int64s, ...]


class Timeline:
    """All events of a run; made once, then only read, by any thread."""

    def __init__(self, events: RunEvents) -> None:
        """Lay the events out in rows."""
        self.started_ns = events.started_ns
        order = _by_time(events)
        self.names = tuple(events.names[at] for at in order)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        self.rows: list[TimelineRow] = []
        self.columns: list[Row] = []
        self.omitted = events.omitted
        of_gpus: dict[int, list[Row]] = {}
        by_track = np.argsort(events.track, kind="stable")
        edges = np.searchsorted(
            events.track[by_track], np.arange(len(events.tracks) + 1)
        )
        for number, track in enumerate(events.tracks):
            chosen = by_track[edges[number] : edges[number + 1]]
            start_ns = events.start_ns[chosen]
            end_ns = start_ns + events.duration_ns[chosen]
            event = chosen.astype(np.int32)
            name = place[events.name[chosen]]
            rows = self._lay_out(track, start_ns, end_ns, name, event)
            if track.gpu is not None:
                of_gpus.setdefault(track.gpu, []).extend(rows)
        self._gpus = [
            _Gpu(f"GPU {gpu}", _union([row.spans for row in rows]), tuple(rows))
            for gpu, rows in sorted(of_gpus.items())
            if rows
        ]
        self.first_ns = min(
            (int(row.spans.start_ns[0]) for row in self.columns), default=0
        )
        self.last_ns = max(
            (int(row.spans.end_ns[-1]) for row in self.columns), default=0
        )
        self._newest: _Match | None = None
        self._known = EventsKnown.of(events)

    def _lay_out(
        self,
        track: Track,
        start_ns: Int64s,
        end_ns: Int64s,
        name: Int32s,
        number: Int32s,
    ) -> list[Row]:
        """Put what is nested in others, or overlaps them, into rows below."""
        rows = []
        for level in itertools.count():
            if not len(start_ns):
                break
            if level == _MAX_LEVELS or len(self.rows) == MAX_ROWS:
                self.omitted += len(start_ns)
                break
            top = np.ones(len(start_ns), np.bool_)
            top[1:] = start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]
            row = Row(Spans(start_ns[top], end_ns[top]), name[top], number[top])
            self.rows.append(TimelineRow(track.label, track.kind, level, len(row)))
            self.columns.append(row)
            rows.append(row)
            start_ns, end_ns = start_ns[~top], end_ns[~top]
            name, number = name[~top], number[~top]
        return rows

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, names included."""
        rows = sum(row.size_bytes for row in self.columns)
        unions = sum(2 * gpu.busy.start_ns.nbytes for gpu in self._gpus)
        # a Python string takes some fifty bytes beside its text
        return (
            rows
            + unions
            + self._known.size_bytes
            + sum(50 + len(name) for name in self.names)
        )

    def window(
        self, from_ns: int, to_ns: int, steps: int, text: str = ""
    ) -> TimelineWindow:
        """Show a span in bars, about as many in each row as there are steps."""
        shift = max(-(-(to_ns - from_ns) // steps) - 1, 0).bit_length()
        # where there is nothing nothing has to be looked for
        begin_ns = max(from_ns, self.first_ns - 1)
        end_ns = min(to_ns, self.last_ns + 1)
        names = self._match(text).names if text else _NOTHING_FOUND
        bars = tuple(
            row.bars(begin_ns, end_ns, shift, steps, names)
            if begin_ns < end_ns
            else TimelineBars(False, (), (), ())
            for row in self.columns
        )
        used = set(itertools.chain.from_iterable(bar.names for bar in bars))
        return TimelineWindow(
            from_ns,
            to_ns,
            1 << shift,
            self.first_ns,
            self.last_ns,
            tuple(self.rows),
            bars,
            {at: self.names[at] for at in sorted(used)},
            self.omitted,
        )

    def statistics(self, from_ns: int, to_ns: int) -> TimelineStatistics:
        """Add a span up."""
        gpus = []
        for gpu in self._gpus:
            reached = [row.spans.reach(from_ns, to_ns) for row in gpu.rows]
            count = sum(last - first for first, last in reached)
            whole_gpu = TimelineRow(gpu.label, "gpu", 0, count)
            gpus.append(_use(whole_gpu, count, gpu.busy, from_ns, to_ns))
        rows = []
        for lane, row in zip(self.rows, self.columns, strict=True):
            first, last = row.spans.reach(from_ns, to_ns)
            rows.append(_use(lane, last - first, row.spans, from_ns, to_ns))
        names = tuple(self._longest_names(from_ns, to_ns))
        return TimelineStatistics(from_ns, to_ns, tuple(gpus), tuple(rows), names)

    def _longest_names(self, from_ns: int, to_ns: int) -> Iterator[TimelineName]:
        for kind, rows in self._by_kind():
            calls = np.zeros(len(self.names), np.int64)
            time_ns = np.zeros(len(self.names), np.int64)
            for at in rows:
                row = self.columns[at]
                first, last = row.spans.reach(from_ns, to_ns)
                name = row.name[first:last]
                calls += np.bincount(name, minlength=len(calls))
                # exact: a double holds whole nanoseconds of a hundred days
                within_ns = row.spans.within_ns(from_ns, to_ns)
                sums = np.bincount(name, within_ns, minlength=len(calls))
                time_ns += sums.astype(np.int64)
            order = np.lexsort((-calls, -time_ns))[:_MOST_NAMES]
            for at in order[calls[order] > 0]:
                yield TimelineName(
                    self.names[at], kind, int(calls[at]), int(time_ns[at])
                )

    def search(self, text: str, at_ns: int, at_row: int) -> TimelineMatches:
        """Find what has a text in its name, and what of it is next to an event.

        Args:
            text: to find, in capitals or not; in double quotes it is a whole name.
            at_ns: where the person is: the start of an event, or any moment.
            at_row: the row of that event, or -1.
        """
        match = self._match(text)
        before: list[TimelineEvent] = []
        after: list[TimelineEvent] = []
        for number, (row, events) in enumerate(
            zip(self.columns, match.events, strict=True)
        ):
            starts_ns = row.spans.start_ns[events]
            # events that start together follow one another by their rows
            passed = np.searchsorted(
                starts_ns, at_ns, "right" if number <= at_row else "left"
            )
            reached = np.searchsorted(
                starts_ns, at_ns, "right" if number < at_row else "left"
            )
            if reached > 0:
                before.append(self._event(number, int(events[reached - 1])))
            if passed < len(events):
                after.append(self._event(number, int(events[passed])))
        return TimelineMatches(
            text,
            tuple(self._found(match)),
            max(before, key=_moment, default=None),
            min(after, key=_moment, default=None),
        )

    def details(self, row: int, start_ns: int) -> TimelineDetails | None:
        """Tell all about the event of a row that starts then; None if there is none."""
        if not 0 <= row < len(self.columns):
            return None
        columns = self.columns[row]
        at = int(np.searchsorted(columns.spans.start_ns, start_ns))
        if at == len(columns) or columns.spans.start_ns[at] != start_ns:
            return None
        number = int(columns.number[at])
        launch = self._known.launch_of(number)
        launched = self._known.launched_by(number)
        begun = [
            self._numbered(follower) for follower in launched[:_MOST_LAUNCHED].tolist()
        ]
        event = self._event(row, at)
        cause = None if launch is None else self._numbered(launch)
        lane = self.rows[row]
        # the host was there when it launched; what it did not launch has no line
        moment = event if lane.kind != "gpu" else cause
        return TimelineDetails(
            event,
            lane.label,
            lane.kind,
            self._known.facts_of(number),
            None if moment is None else self._known.line_at(moment.start_ns),
            cause,
            tuple(other for other in begun if other is not None),
            len(launched),
        )

    def _numbered(self, number: int) -> TimelineEvent | None:
        """Find an event by its position in the run; None if no row has room for it."""
        for row, columns in enumerate(self.columns):
            at = np.flatnonzero(columns.number == number)
            if len(at):
                return self._event(row, int(at[0]))
        return None

    def _match(self, text: str) -> _Match:
        newest = self._newest
        if newest is not None and newest.text == text:
            return newest
        wanted = text.casefold()
        if len(text) > 2 and text[0] == text[-1] == '"':
            matching = (name == text[1:-1] for name in self.names)
        else:
            matching = (wanted in name.casefold() for name in self.names)
        names = np.fromiter(matching, np.bool_, len(self.names))
        events = tuple(np.flatnonzero(names[row.name]) for row in self.columns)
        self._newest = match = _Match(text, names, events)
        return match

    def _found(self, match: _Match) -> Iterator[TimelineFound]:
        for kind, rows in self._by_kind():
            count, time_ns = 0, 0
            for at in rows:
                spans, events = self.columns[at].spans, match.events[at]
                count += len(events)
                time_ns += int((spans.end_ns - spans.start_ns)[events].sum())
            if count:
                yield TimelineFound(kind, count, time_ns)

    def _by_kind(self) -> Iterator[tuple[TrackKind, list[int]]]:
        kinds = dict.fromkeys(row.kind for row in self.rows)
        for kind in kinds:
            yield kind, [at for at, row in enumerate(self.rows) if row.kind == kind]

    def _event(self, number: int, at: int) -> TimelineEvent:
        row = self.columns[number]
        start_ns, end_ns = int(row.spans.start_ns[at]), int(row.spans.end_ns[at])
        name = self.names[row.name[at]]
        return TimelineEvent(number, name, start_ns, end_ns - start_ns)


def _by_time(events: RunEvents) -> Int64s:
    """Order the names by the time that they take: the first stand out by colour."""
    time_ns = np.bincount(events.name, events.duration_ns, minlength=len(events.names))
    return np.argsort(-time_ns, kind="stable")


def _union(rows: Sequence[Spans]) -> Spans:
    """Merge what several streams of a GPU do."""
    start_ns = np.concatenate([row.start_ns for row in rows])
    end_ns = np.concatenate([row.end_ns for row in rows])
    order = np.argsort(start_ns, kind="stable")
    start_ns, latest_ns = start_ns[order], np.maximum.accumulate(end_ns[order])
    begins = np.ones(len(start_ns), np.bool_)
    begins[1:] = start_ns[1:] > latest_ns[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(start_ns)) - 1
    return Spans(start_ns[first], latest_ns[last])


def _use(
    lane: TimelineRow, events: int, spans: Spans, from_ns: int, to_ns: int
) -> TimelineUse:
    first, last = spans.reach(from_ns, to_ns)
    # from the begin to the first event, between events, from the last to the end
    gap_from_ns = np.append(from_ns, np.minimum(spans.end_ns[first:last], to_ns))
    gap_to_ns = np.append(np.maximum(spans.start_ns[first:last], from_ns), to_ns)
    gap_ns = gap_to_ns - gap_from_ns
    longest = int(gap_ns.argmax())
    return TimelineUse(
        lane.label,
        lane.kind,
        lane.level,
        events,
        int(spans.within_ns(from_ns, to_ns).sum()),
        int((gap_ns > 0).sum()),
        int(gap_ns[longest]),
        int(gap_from_ns[longest]) if gap_ns[longest] > 0 else None,
    )


def _moment(event: TimelineEvent) -> tuple[int, int]:
    return event.start_ns, event.row
