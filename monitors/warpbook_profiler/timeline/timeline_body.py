"""All events of a run in one binary message, from the kernel to the server.

Msgpack around little-endian columns: a million events are 30 MB, and neither side
touches them one by one. What comes in is not believed: lengths, ranges and sums are
checked before anything is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import (
    MAX_NAME_LENGTH,
    NONE,
    ON_GPU,
    Bools,
    Category,
    Columns,
    Int32s,
    Int64s,
    distinct,
    groups,
)
from warpbook_profiler.events.run import Run
from warpbook_profiler.model.timeline_answers import (
    MAX_BODY_BYTES,
    MAX_EVENTS,
    EventFacts,
    TrackKind,
)
from warpbook_profiler.timeline.timeline_facts import (
    MAX_FACTS,
    are_bounded,
    facts_of,
    launches_of,
    moved,
)

#: Version of this message; another one is refused.
FORM = 1
MAX_NAMES = 100_000
#: streams and threads; a kernel leaves the quieter ones out
MAX_TRACKS = 200
MAX_LABEL_LENGTH = 80
#: a hundred days, so that sums of times stay exact in a browser too
_MAX_TIME_NS = 2**53 - 1

_KINDS: dict[Category, TrackKind] = {
    Category.KERNEL: "gpu",
    Category.COPY: "gpu",
    Category.MEMSET: "gpu",
    Category.API: "call",
    Category.OPERATOR: "operator",
    Category.OVERHEAD: "profiler",
    Category.GPU_ANNOTATION: "annotation",
}
_ORDER: tuple[TrackKind, ...] = ("gpu", "annotation", "call", "operator", "profiler")
_LABELS = {
    "annotation": "Annotations",
    "call": "CUDA calls",
    "operator": "Operators",
    "profiler": "Profiler",
}


class Track(msgspec.Struct, frozen=True):
    """A stream of a GPU, or what one thread of the host did of one kind."""

    label: str
    kind: TrackKind
    #: the GPU's index
    gpu: int | None


class Body(msgspec.Struct, frozen=True):
    """The message; positions and times are little-endian columns of equal length."""

    form: int
    #: Unix time of the run's start
    started_ns: int
    names: tuple[str, ...]
    tracks: tuple[Track, ...]
    #: events of tracks that are left out
    omitted: int
    #: int64, from the run's start, ascending
    starts_ns: memoryview
    #: int64
    durations_ns: memoryview
    #: int32, positions in `names`
    name: memoryview
    #: uint16, positions in `tracks`
    track: memoryview
    #: What follows may be left out, as older kernels do. Distinct facts of events, and
    #: int32, positions among them, -1 for none
    facts: tuple[EventFacts, ...] = ()
    fact: memoryview | None = None
    #: int32, of GPU work the position of the event that launched it, -1 for none
    launch: memoryview | None = None
    #: int64 from the run's start, ascending, and int32: when the host came to a line
    line_starts_ns: memoryview | None = None
    lines: memoryview | None = None


# made now: msgspec takes no two threads that meet a type for the first time
_decode = msgspec.msgpack.Decoder(Body).decode


class NotATimeline(ValueError):
    """The message can't be used, and why."""


@dataclass(frozen=True)
class RunEvents:
    """The checked message."""

    started_ns: int
    names: tuple[str, ...]
    tracks: tuple[Track, ...]
    omitted: int
    start_ns: Int64s
    duration_ns: Int64s
    name: Int32s
    track: npt.NDArray[np.uint16]
    facts: tuple[EventFacts, ...]
    #: NONE where there is none; of no length where nothing is known
    fact: Int32s
    launch: Int32s
    line_start_ns: Int64s
    line: Int32s


def drawn(events: Columns, run: Run) -> Bools:
    """Choose what a timeline shows: not what the host did after the code ended."""
    on_gpu = events.is_in(*ON_GPU, Category.GPU_ANNOTATION)
    in_code = events.start_ns < run.code_end_ns
    return on_gpu | (in_code & events.is_in(*_KINDS))


def pack(events: Columns, run: Run) -> bytes:
    """Write the message.

    Raises:
        NotATimeline: there are more events or names than a server takes.
    """
    events = events.where(drawn(events, run))
    if len(events) > MAX_EVENTS or len(events.names) > MAX_NAMES:
        raise NotATimeline(
            f"It has {len(events):,} events with {len(events.names):,} names; the "
            f"whole timeline is kept of {MAX_EVENTS:,} and {MAX_NAMES:,}."
        )
    tracks, track = _tracks(events)
    kept = np.flatnonzero(track < MAX_TRACKS)
    body = Body(
        FORM,
        run.start_ns,
        events.names,
        tracks[:MAX_TRACKS],
        len(events) - len(kept),
        _bytes(events.start_ns[kept] - run.start_ns, "<i8"),
        _bytes(events.duration_ns[kept], "<i8"),
        _bytes(events.name[kept], "<i4"),
        _bytes(track[kept], "<u2"),
    )
    facts, fact = facts_of(events, run)
    known = msgspec.structs.replace(
        body,
        facts=facts,
        fact=_bytes(fact[kept], "<i4"),
        launch=_bytes(moved(launches_of(events), kept, len(events)), "<i4"),
        **_lines(run),
    )
    packed = msgspec.msgpack.encode(known)
    # better without details than not at all
    return packed if len(packed) <= MAX_BODY_BYTES else msgspec.msgpack.encode(body)


def _lines(run: Run) -> dict[str, memoryview]:
    marks = run.marks
    if marks is None:
        return {}
    return {
        "line_starts_ns": _bytes(marks.start_ns - run.start_ns, "<i8"),
        "lines": _bytes(marks.line, "<i4"),
    }


def unpack(body: bytes) -> RunEvents:
    """Read the message.

    Raises:
        NotATimeline: it is damaged, lies, or is too large.
    """
    if len(body) > MAX_BODY_BYTES:
        raise NotATimeline(f"A timeline may have {MAX_BODY_BYTES:,} bytes.")
    try:
        decoded = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise NotATimeline(str(problem)) from None
    if decoded.form != FORM:
        raise NotATimeline(f"It has form {decoded.form}, and this server reads {FORM}.")
    if len(decoded.names) > MAX_NAMES or len(decoded.tracks) > MAX_TRACKS:
        raise NotATimeline("It has too many names or tracks.")
    if any(len(name) > MAX_NAME_LENGTH for name in decoded.names):
        raise NotATimeline("A name is too long.")
    if any(len(track.label) > MAX_LABEL_LENGTH for track in decoded.tracks):
        raise NotATimeline("A label is too long.")
    if not 0 <= decoded.omitted <= _MAX_TIME_NS or not 0 <= decoded.started_ns < 2**63:
        raise NotATimeline("A count or a time is out of range.")
    read = RunEvents(
        decoded.started_ns,
        decoded.names,
        decoded.tracks,
        decoded.omitted,
        _column(decoded.starts_ns, "<i8"),
        _column(decoded.durations_ns, "<i8"),
        _column(decoded.name, "<i4"),
        _column(decoded.track, "<u2"),
        decoded.facts,
        _column(decoded.fact, "<i4"),
        _column(decoded.launch, "<i4"),
        _column(decoded.line_starts_ns, "<i8"),
        _column(decoded.lines, "<i4"),
    )
    _check(read)
    _check_details(read)
    return read


def _check(read: RunEvents) -> None:
    count = len(read.start_ns)
    if not count == len(read.duration_ns) == len(read.name) == len(read.track):
        raise NotATimeline("Its columns differ in length.")
    if count > MAX_EVENTS:
        raise NotATimeline(f"A timeline may have {MAX_EVENTS:,} events.")
    if count == 0:
        return
    if (
        read.start_ns[0] < -_MAX_TIME_NS
        or (read.start_ns[1:] < read.start_ns[:-1]).any()
    ):
        raise NotATimeline("Its events are not in order.")
    longest, latest = int(read.duration_ns.max()), int(read.start_ns[-1])
    # each alone first: a sum could pass the largest number
    if read.duration_ns.min() < 0 or max(longest, latest, longest + latest) > (
        _MAX_TIME_NS
    ):
        raise NotATimeline("An event's time is out of range.")
    if read.name.min() < 0 or read.name.max() >= len(read.names):
        raise NotATimeline("An event refers to a missing name.")
    if read.track.max() >= len(read.tracks):
        raise NotATimeline("An event refers to a missing track.")


def _check_details(read: RunEvents) -> None:
    count = len(read.start_ns)
    if not {len(read.fact), len(read.launch)} <= {0, count}:
        raise NotATimeline("Its details differ in length from its events.")
    if len(read.facts) > MAX_FACTS or not are_bounded(read.facts):
        raise NotATimeline("Its details are too large.")
    for positions, most in ((read.fact, len(read.facts)), (read.launch, count)):
        if positions.min(initial=NONE) < NONE or positions.max(initial=NONE) >= most:
            raise NotATimeline("An event refers to a missing detail.")
    at_ns = read.line_start_ns
    if len(at_ns) != len(read.line) or (at_ns[1:] < at_ns[:-1]).any():
        raise NotATimeline("Its lines are not in order.")


def _tracks(events: Columns) -> tuple[tuple[Track, ...], Int64s]:
    """Give the tracks as they are drawn, and for each event its position there.

    The streams come first, then the threads, the busiest first.
    """
    kind = _kinds(events)
    # the streams of one GPU stand together, the kinds of one thread too
    first, group = groups(kind, events.device, _from_zero(events.track))
    counts = np.bincount(group, minlength=len(first))
    keys: list[tuple[int, ...]] = []
    threads = events.track[first]
    of_host = (kind[first] != 0) & (events.device[first] < 0)
    busy = {
        int(thread): int(counts[(threads == thread) & of_host].sum())
        for thread in distinct(threads)
    }
    for at, row in enumerate(first):
        thread = int(events.track[row])
        if events.device[row] >= 0 or kind[row] == 0:
            # what a stream did it for stands above it
            above = int(kind[row] == 0)
            keys.append((0, int(events.device[row]), thread, above, at))
        else:
            keys.append((1, -busy[thread], thread, int(kind[row]), at))
    order = [key[-1] for key in sorted(keys)]
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    gpus = len(distinct(events.device[kind == 0]))
    labels = _labels(events, kind, [int(first[at]) for at in order], gpus)
    return labels, place[group]


def _labels(
    events: Columns, kinds: Int64s, rows: list[int], gpus: int
) -> tuple[Track, ...]:
    tracks = []
    main: int | None = None
    for row in rows:
        kind = _ORDER[kinds[row]]
        device, track = int(events.device[row]), int(events.track[row])
        if kind == "gpu" or device >= 0:
            label = f"GPU {device} stream {track}" if gpus > 1 else f"Stream {track}"
            if kind == "gpu":
                tracks.append(Track(label, kind, device))
            else:
                tracks.append(Track(f"Annotations, {label}", kind, None))
            continue
        main = track if main is None else main
        label = _LABELS[kind] if track == main else f"{_LABELS[kind]}, thread {track}"
        tracks.append(Track(label, kind, None))
    return tuple(tracks)


def _from_zero(numbers: Int64s) -> Int64s:
    """Count from the least: a system may number threads as it likes."""
    counted: Int64s = numbers - numbers.min(initial=0)
    return counted


def _kinds(events: Columns) -> Int64s:
    """Give each event's position in the order of kinds."""
    number = np.array([_number(category) for category in Category], np.int64)
    kinds = number[events.category]
    kinds[events.annotates] = _ORDER.index("annotation")
    return kinds


def _number(category: Category) -> int:
    kind = _KINDS.get(category)
    return _ORDER.index(kind) if kind is not None else 0


def _bytes(column: npt.NDArray[Any], kind: str) -> memoryview:
    return memoryview(column.astype(kind, copy=False).tobytes())


def _column(data: memoryview | None, kind: str) -> npt.NDArray[Any]:
    if data is None:
        return np.zeros(0, kind)
    if len(data) % np.dtype(kind).itemsize:
        raise NotATimeline("A column is cut off.")
    return np.frombuffer(data, kind)
