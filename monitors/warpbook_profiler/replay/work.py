"""The GPU's side of a replay: pieces of work in the order of their launches.

A stream does its pieces one after the other. A piece begins when its launch has
reached the GPU, when the stream's earlier work is done, and when an event that its
stream waits for has come, whichever is last:

    start = max(launch returned + after, earlier work done + step, event + lag)

`after`, `step` and `lag` are taken from the recorded times, so that a replay in which
nothing was changed gives these times again. Of the terms that did not decide, only a
bound was recorded; they get the trace's usual value, within that bound. All of a CUDA
graph's launch is one piece: what happens within it does not depend on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Int64s, groups, median
from warpbook_profiler.facts.calls import GRAPH_LAUNCH, Calls, named
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.host import Floats, Host

#: where no launch of the trace met an empty stream, and no work followed at once
_USUAL_AFTER_NS = 3_000.0
_USUAL_STEP_NS = 1_000.0
#: usual values beyond these are something else
_MOST_AFTER_NS = 10_000.0
_MOST_STEP_NS = 3_000.0
#: far before any time of a trace
LONG_AGO_NS = -1e18


@dataclass(frozen=True)
class Pieces:
    """Work on GPUs in the order of its launches."""

    #: of each event on the GPU the piece that it is in
    piece: Int64s
    #: position in `Host` of the launch; -1 where the window's start stands for it
    launch: Int64s
    #: streams of all GPUs are counted through
    stream: Int64s
    start_ns: Floats
    duration_ns: Floats
    #: the end of all earlier work of the stream; `LONG_AGO_NS` where there was none
    before_ns: Floats

    def __len__(self) -> int:
        """Count the pieces."""
        return len(self.launch)

    @property
    def end_ns(self) -> Floats:
        return self.start_ns + self.duration_ns

    @property
    def streams(self) -> int:
        """Count the streams."""
        return int(self.stream.max(initial=-1)) + 1


def gpu_side(trace: Trace, host: Host) -> Pieces:
    """Order the work by its launches."""
    run, on_gpu, calls = trace.run, trace.on_gpu, trace.calls
    start = np.maximum((on_gpu.start_ns - run.start_ns).astype(np.float64), 0.0)
    end = np.maximum((on_gpu.end_ns - run.start_ns).astype(np.float64), start)
    launch = _launches(calls, host, start)
    # events are sorted by start, and so are those of one launch
    order = np.argsort(launch, kind="stable")
    is_graph = np.append(named(calls.api, GRAPH_LAUNCH)[host.row], False)
    launched = launch[order]
    joins = np.zeros(len(order), np.bool_)
    joins[1:] = (launched[1:] == launched[:-1]) & is_graph[launched[1:]]
    # an unknown launch is no graph's
    joins &= launched >= 0
    first = np.flatnonzero(~joins)
    number = np.cumsum(~joins) - 1
    piece = np.empty(len(order), np.int64)
    piece[order] = number
    _, stream = groups(on_gpu.device[order[first]], on_gpu.track[order[first]])
    if len(first):
        ends = np.maximum.reduceat(end[order], first)
    else:
        ends = np.zeros(0)
    starts = start[order[first]]
    return Pieces(
        piece=piece,
        launch=launched[first],
        stream=stream,
        start_ns=starts,
        duration_ns=ends - starts,
        before_ns=_before(stream, ends),
    )


def _launches(calls: Calls, host: Host, start_ns: Floats) -> Int64s:
    """Give each event's launch in `host`; unknown, the call that began last before."""
    place = np.full(len(calls.api) + 1, NONE, np.int64)
    place[host.row] = np.arange(len(host))
    launch = place[calls.launch]
    unknown = launch == NONE
    nearest = np.searchsorted(host.start_ns, start_ns[unknown], side="right") - 1
    launch[unknown] = nearest
    return launch


def _before(stream: Int64s, end_ns: Floats) -> Floats:
    before = np.full(len(stream), LONG_AGO_NS)
    order = np.argsort(stream, kind="stable")
    edges = np.flatnonzero(np.diff(stream[order])) + 1
    for mine in np.split(order, edges):
        before[mine[1:]] = np.maximum.accumulate(end_ns[mine])[:-1]
    return before


@dataclass(frozen=True)
class Delays:
    """What lies between a piece's start and what it waited for; see the module."""

    after_ns: Floats
    step_ns: Floats
    #: what neither explains: the piece waited for something else
    unexplained_ns: Floats


def delays(pieces: Pieces, returned_ns: Floats) -> Delays:
    """Take the delays from the recorded times, without events of other streams.

    Args:
        pieces: the work.
        returned_ns: of each piece, when its launch was done with its own part.
    """
    start, before = pieces.start_ns, pieces.before_ns
    since_launch, since_work = start - returned_ns, start - before
    met_empty = before <= returned_ns
    usual_after = _usual(since_launch[met_empty], _USUAL_AFTER_NS, _MOST_AFTER_NS)
    queued = ~met_empty & (since_work < 10 * _MOST_STEP_NS)
    usual_step = _usual(since_work[queued], _USUAL_STEP_NS, _MOST_STEP_NS)
    after = np.minimum(since_launch, usual_after)
    step = np.minimum(since_work, usual_step)
    unexplained = start - np.maximum(returned_ns + after, before + step)
    return Delays(after, step, np.maximum(unexplained, 0.0))


def with_unexplained(
    pieces: Pieces, returned_ns: Floats, late: Delays, unexplained_ns: Floats
) -> Delays:
    """Put what no event explains into the delay that was the last to end."""
    met_empty = pieces.before_ns <= returned_ns
    is_late = unexplained_ns > 0
    start = pieces.start_ns
    return Delays(
        np.where(is_late & met_empty, start - returned_ns, late.after_ns),
        np.where(is_late & ~met_empty, start - pieces.before_ns, late.step_ns),
        unexplained_ns,
    )


def _usual(values: Floats, without: float, most: float) -> float:
    if not len(values):
        return without
    return float(np.clip(median(values), -most, most))
