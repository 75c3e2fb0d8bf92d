"""Time that a process spends once, and not in each step: cut out of a trace.

It is time in which the GPU does nothing because a thread is in

- a call of CUDA that takes long the first time it is made: the context, a library;
- the first launch of a kernel, which loads it;
- a wait before the first launch, for what was not recorded;
- the capture of a CUDA graph, unless a program captures again for each replay.

What is left is judged as if this had not been: later events come so much earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.calls import GRAPH_LAUNCH, named
from warpbook_profiler.facts.trace import Trace

#: a first call that takes no longer is not worth to be told apart: loading one kernel
#: took 0.3 to 5 ms on an H200
_LONG_NS = 5_000_000
#: no call that launches nothing and waits for nothing takes so long each time
_VERY_LONG_NS = 50_000_000
#: so many are never one for each replay
_FEW_CAPTURES = 3
_NEVER_NS = np.iinfo(np.int64).max
#: less of the window is left where it is
_LEAST_SHARE = 0.1
_MOST_ROWS, _MOST_NAMES = 5, 20
_SYNCHRONIZES = re.compile(r"(cuda|cu|hip)\w*(Synchronize|Query)")
_CAPTURE_BEGIN = re.compile(r"(cuda|cu|hip)StreamBeginCapture")
_CAPTURE_END = re.compile(r"(cuda|cu|hip)StreamEndCapture")
_INSTANTIATE = re.compile(r"(cuda|cu|hip)GraphInstantiate")


class SetUpPart(Struct, frozen=True):
    """All set-up in one call of CUDA, or in captures."""

    name: str
    time_ns: int


class SetUpTime(Struct, frozen=True):
    """What was cut out of a window."""

    time_ns: int
    #: of the window as it was recorded
    share: float
    #: the longest first; captures may hold calls, so they need not add up
    parts: tuple[SetUpPart, ...]

    @property
    def sentence(self) -> str:
        """Say what it was, for a list of warnings."""
        parts = ", ".join(
            f"{part.name} {units.duration_ns(part.time_ns)}" for part in self.parts
        )
        return (
            f"Set-up took {units.duration_ns(self.time_ns)}, "
            f"{units.share(self.share)} of the recorded time, while the GPU idled: "
            f"{parts}. It happens once, so it is left out of all figures and of the "
            "verdict. To record later steps: schedule(wait=1, warmup=1, active=5)."
        )


def without_set_up(
    trace: Trace, least_share: float = _LEAST_SHARE
) -> tuple[Trace, SetUpTime | None]:
    """Cut the set-up out of a trace, if it is a large part of it.

    Args:
        trace: the same where nothing is cut.
        least_share: less of the window is left where it is.
    """
    events, run, on_gpu = trace.events, trace.run, trace.on_gpu
    window_ns = run.end_ns - run.start_ns
    if not len(on_gpu) or window_ns <= 0:
        return trace, None
    busy = Coverage(on_gpu.start_ns, on_gpu.end_ns)
    spans = list(_spans(trace))
    start_ns = np.concatenate([span[1] for span in spans])
    end_ns = np.concatenate([span[2] for span in spans])
    if _length_ns((start_ns, end_ns)) < least_share * window_ns:
        # idle parts of the spans are no longer than the spans
        return trace, None
    start_ns, end_ns = _idle_within(start_ns, end_ns, busy, on_gpu)
    start_ns = np.clip(start_ns, run.start_ns, run.end_ns)
    end_ns = np.clip(end_ns, run.start_ns, run.end_ns)
    cut = Coverage(start_ns, end_ns)
    taken_ns = int((end_ns - start_ns).sum())
    if not taken_ns or taken_ns < least_share * window_ns:
        return trace, None

    def moved(at_ns: Int64s) -> Int64s:
        earliest = np.full(len(at_ns), run.start_ns)
        earlier: Int64s = at_ns - cut.within_ns(np.minimum(earliest, at_ns), at_ns)
        return earlier

    begin, end = moved(events.start_ns), moved(events.end_ns)
    bounds = moved(np.array([run.start_ns, run.code_end_ns, run.end_ns]))
    parts = [
        SetUpPart(name, _length_ns(_idle_within(starts, ends, busy, on_gpu)))
        for name, starts, ends in spans
    ]
    parts = sorted(parts, key=lambda part: -part.time_ns)[:_MOST_ROWS]
    cut_trace = Trace(
        replace(events, start_ns=begin, duration_ns=end - begin),
        replace(
            run,
            start_ns=int(bounds[0]),
            code_end_ns=int(bounds[1]),
            end_ns=int(bounds[2]),
        ),
    )
    return cut_trace, SetUpTime(
        taken_ns,
        taken_ns / window_ns,
        tuple(part for part in parts if part.time_ns),
    )


_Named = tuple[str, Int64s, Int64s]


def _spans(trace: Trace) -> Iterator[_Named]:
    """Give what may be set-up, by name: begins and ends, in order."""
    calls, api = trace.calls, trace.calls.api
    once = np.flatnonzero(_made_once(trace))
    of_names = rows_by(api.name[once])
    of_names.sort(key=lambda rows: -int(api.duration_ns[once[rows]].sum()))
    # whatever a file holds, only so many are looked at one by one
    for at, rows in enumerate(of_names[:_MOST_NAMES]):
        last = at == _MOST_NAMES - 1
        mine = once[np.sort(np.concatenate(of_names[at:]))] if last else once[rows]
        what = "others" if last else api.names[api.name[mine[0]]]
        first = "first " if calls.launches[mine].any() and not last else ""
        yield f"{first}{what}", api.start_ns[mine], api.end_ns[mine]
    yield "capture of graphs", *_captures(api)


def _made_once(trace: Trace) -> Bools:
    on_gpu, calls, api = trace.on_gpu, trace.calls, trace.calls.api
    first = np.zeros(len(api), np.bool_)
    # the first call of each name, and the first launch of each kernel
    first[np.unique(api.name, return_index=True)[1]] = True
    known = np.flatnonzero((calls.launch != NONE) & on_gpu.is_in(Category.KERNEL))
    earliest = np.unique(on_gpu.name[known], return_index=True)[1]
    first[calls.launch[known[earliest]]] = True
    is_long = first & (api.duration_ns > _LONG_NS)
    is_long |= ~(calls.launches | calls.waits) & (api.duration_ns > _VERY_LONG_NS)
    chosen: Bools = is_long & ~named(api, _SYNCHRONIZES)
    # who waits before anything was launched waits for what was not recorded
    launched_ns = int(api.start_ns[calls.launches].min(initial=_NEVER_NS))
    early = calls.waits & ~calls.launches & (api.end_ns <= launched_ns)
    return chosen | (early & (api.duration_ns > _LONG_NS))


def _captures(api: Columns) -> tuple[Int64s, Int64s]:
    """Give when a thread recorded a graph, or a graph was made ready."""
    begins, ends = named(api, _CAPTURE_BEGIN), named(api, _CAPTURE_END)
    replays = int(named(api, GRAPH_LAUNCH).sum())
    captures = int(begins.sum())
    if captures > _FEW_CAPTURES and 0 < replays <= captures:
        # who captures again for each replay does not set up: that is the work
        return api.start_ns[:0], api.end_ns[:0]
    made = named(api, _INSTANTIATE)
    over_ns = api.end_ns
    start_ns, end_ns = [api.start_ns[made]], [over_ns[made]]
    marks = np.flatnonzero(begins | ends)
    for of_thread in rows_by(api.track[marks]):
        rows = marks[of_thread]
        opened, closed = rows[begins[rows]], rows[ends[rows]]
        place = np.searchsorted(closed, opened)
        known = place < len(closed)
        start_ns.append(api.start_ns[opened[known]])
        end_ns.append(over_ns[closed[place[known]]])
    starts, stops = np.concatenate(start_ns), np.concatenate(end_ns)
    order = np.argsort(starts, kind="stable")
    return starts[order], stops[order]


def _idle_within(
    start_ns: Int64s, end_ns: Int64s, busy: Coverage, on_gpu: Columns
) -> tuple[Int64s, Int64s]:
    """Give the parts of some spans, in any order, in which the GPU did nothing."""
    order = np.argsort(start_ns, kind="stable")
    spans = Coverage(start_ns[order], end_ns[order])
    marks = np.unique(
        np.concatenate([start_ns, end_ns, on_gpu.start_ns, on_gpu.end_ns])
    )
    begin, end = marks[:-1], marks[1:]
    # no mark lies between two that follow one another, so a part is whole or not
    inside = spans.within_ns(begin, end) == end - begin
    inside &= busy.within_ns(begin, end) == 0
    return begin[inside], end[inside]


def _length_ns(spans: tuple[Int64s, Int64s]) -> int:
    return int((spans[1] - spans[0]).sum())
