"""What a timeline tells of itself, as it travels to a view.

Times are whole nanoseconds from the start of the run. Names come from the profiled
program: views must escape them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: work on a GPU; parts of the program that it names itself, on a GPU or the host; the
#: host's calls of CUDA; operators; the profiler's own work
TrackKind = Literal["gpu", "annotation", "call", "operator", "profiler"]

#: The message with all events of a run is refused beyond these.
MAX_EVENTS = 2_000_000
MAX_BODY_BYTES = 64_000_000


class TimelineRow(Struct, frozen=True):
    """One row: events that don't overlap."""

    label: str
    kind: TrackKind
    #: 0, or how deep the row's events are nested in others of the same track
    level: int
    events: int


class TimelineBars(Struct, frozen=True):
    """A row between two moments: its events, or (merged) how busy each step was."""

    is_merged: bool
    starts_ns: tuple[int, ...]
    #: of a merged bar, from its first event to its last within one step
    durations_ns: tuple[int, ...]
    #: keys of `TimelineWindow.names`; of a merged bar, the name that takes most of it
    names: tuple[int, ...]
    #: of merged bars: events that begin in it, and the share of it that they cover
    counts: tuple[int, ...] = ()
    busy_ratios: tuple[float, ...] = ()
    #: positions of the bars that hold what was searched for
    found: tuple[int, ...] = ()


class TimelineWindow(Struct, frozen=True):
    """Answer of `GET .../timeline`: each row in about as many bars as asked for."""

    from_ns: int
    to_ns: int
    #: each merged bar lies between two multiples of it
    step_ns: int
    #: the whole run: where its first event begins, and its last ends
    first_ns: int
    last_ns: int
    rows: tuple[TimelineRow, ...]
    #: of each row
    bars: tuple[TimelineBars, ...]
    #: by number; the lower, the more time of the run it takes
    names: dict[int, str]
    #: events that no row has room for
    omitted: int


class TimelineUse(Struct, frozen=True):
    """How much of a selection is covered, and the gaps between what covers it."""

    label: str
    kind: TrackKind
    level: int
    #: events that reach into the selection
    events: int
    busy_ns: int
    gaps: int
    longest_gap_ns: int
    #: None where there is no gap
    longest_gap_from_ns: int | None


class TimelineName(Struct, frozen=True):
    """All events of one name that reach into a selection."""

    name: str
    kind: TrackKind
    events: int
    #: within the selection; operators within others count too
    time_ns: int


class TimelineStatistics(Struct, frozen=True):
    """Answer of `GET .../timeline/statistics`: a selection in figures."""

    from_ns: int
    to_ns: int
    #: of each GPU, the union over its streams
    gpus: tuple[TimelineUse, ...]
    rows: tuple[TimelineUse, ...]
    #: of each kind the longest ones
    names: tuple[TimelineName, ...]


class TimelineEvent(Struct, frozen=True):
    """One event."""

    row: int
    name: str
    start_ns: int
    duration_ns: int


class TimelineFound(Struct, frozen=True):
    """All matches of one kind."""

    kind: TrackKind
    events: int
    time_ns: int


class TimelineMatches(Struct, frozen=True):
    """Answer of `GET .../timeline/search`: what has a text in its name."""

    text: str
    found: tuple[TimelineFound, ...]
    #: the matches around the moment that was asked about
    previous: TimelineEvent | None
    next: TimelineEvent | None


class EventFacts(Struct, frozen=True):
    """What is known about an event beside name and time; None and empty is unknown."""

    #: of kernels: blocks of the grid, threads of a block
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    shared_memory_bytes: int | None = None
    #: the share of a multiprocessor's warps that it can hold, estimated
    occupancy_ratio: float | None = None
    #: of copies and memsets
    size_bytes: int | None = None
    #: of operators, and of what one launched: sizes of each tensor, empty for what is
    #: no tensor
    dims: tuple[tuple[int, ...], ...] = ()
    #: of each argument, as torch names them
    dtypes: tuple[str, ...] = ()


class TimelineDetails(Struct, frozen=True):
    """Answer of `GET .../timeline/event`: all that is known about one event."""

    event: TimelineEvent
    #: of its row
    label: str
    kind: TrackKind
    facts: EventFacts
    #: of the cell, where `--lines` noted it; of GPU work the line that launched it
    line: int | None
    #: of GPU work: the call that launched it
    launch: TimelineEvent | None
    #: of a call: the first of the GPU work that it launched, and how much there is
    launched: tuple[TimelineEvent, ...]
    launched_events: int
