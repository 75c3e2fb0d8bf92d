"""Runs a program: when each call and each piece of work happens, given host times.

Within a block times are sums, and a stream's queue is a running maximum, so NumPy does
a whole trace's blocks at once. What is left is a loop over blocks: when one begins,
and when the streams are done. A stream that is done at `m` when a block begins at `t`
is done at max(m + total, t + reach) after it, where `total` is the time of the block's
pieces and `reach` the latest end of those that the host's launches allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.replay.host import Floats
from warpbook_profiler.replay.program import Program
from warpbook_profiler.replay.waits import EVERYTHING, NOTHING, PIECE, STREAM
from warpbook_profiler.replay.work import LONG_AGO_NS


@dataclass(frozen=True)
class HostTimes:
    """What the host takes, in ns; by position in `Host`."""

    gap_ns: Floats
    #: the call's own time
    cost_ns: Floats
    #: of a wait, from the end of what it waited for to its return
    lag_ns: Floats
    tail_ns: float

    def scaled(self, share: float) -> HostTimes:
        """Keep this share of everything."""
        lag_ns = np.where(self.lag_ns > 0, self.lag_ns * share, self.lag_ns)
        return HostTimes(
            self.gap_ns * share, self.cost_ns * share, lag_ns, self.tail_ns * share
        )


@dataclass(frozen=True)
class Replayed:
    """When everything happened, in ns since the window began."""

    #: of each call
    start_ns: Floats
    end_ns: Floats
    #: of each piece
    piece_start_ns: Floats
    piece_end_ns: Floats
    code_end_ns: float
    #: the later of the code's end and the GPU's
    window_ns: float


def as_recorded(program: Program) -> HostTimes:
    """Give the host's times as the trace has them."""
    host, waits = program.host, program.waits
    return HostTimes(host.gap_ns, waits.cost_ns, waits.lag_ns, host.tail_ns)


@dataclass(frozen=True)
class _Summed:
    """What a block adds, and of each place in the layout's order, within its block."""

    #: from a block's begin to the end of each call
    off_ns: Floats
    #: of each place: when it is ready, how much its stream's earlier pieces and it take
    ready_ns: Floats
    through_ns: Floats
    #: of each part: see the module
    total_ns: Floats
    reach_ns: Floats


def _sums(program: Program, times: HostTimes) -> _Summed:
    layout, pieces = program.layout, program.pieces
    took = times.gap_ns + times.cost_ns
    through = np.cumsum(took)
    # each block's first call begins anew
    before = np.append(0.0, through)[layout.end[layout.block - 1]]
    off = through - before
    order = layout.order
    launch = pieces.launch[order]
    # work that began before its call had returned began within the call
    ratio = times.cost_ns / np.maximum(program.waits.cost_ns, 1.0)
    within = np.append(ratio, 1.0)[pieces.launch]
    after = program.after_ns * np.where(program.after_ns < 0, within, 1.0)
    after = after[order]
    ready = np.append(off, 0.0)[launch] + after
    duration, step = pieces.duration_ns[order], program.step_ns[order]
    adds = np.maximum(step + duration, 0.0)
    so_far = np.cumsum(adds)
    first = layout.part_first
    base = np.append(0.0, so_far)[first]
    through_part = so_far - base[layout.part]
    last = np.append(first[1:], len(order)) - 1
    total = through_part[last] if len(first) else np.zeros(0)
    if len(first):
        least = np.maximum.reduceat(ready + duration - through_part, first)
    else:
        least = np.zeros(0)
    return _Summed(off, ready, through_part, total, least + total)


def simulate(program: Program, times: HostTimes) -> Replayed:
    sums = _sums(program, times)
    begin, part_in, end = _blocks(program, times, sums)[:3]
    host, layout, pieces = program.host, program.layout, program.pieces
    call_end = begin[layout.block] + sums.off_ns
    call_start = call_end - times.cost_ns
    call_end[layout.end[1:] - 1] = end[1:]
    piece_start = np.empty(len(pieces))
    piece_start[layout.order] = _starts(program, sums, begin, part_in)
    piece_end = piece_start + pieces.duration_ns
    main = np.flatnonzero(host.lane == 0)
    code_end = (float(call_end[main[-1]]) if len(main) else 0.0) + times.tail_ns
    return Replayed(
        start_ns=call_start,
        end_ns=call_end,
        piece_start_ns=piece_start,
        piece_end_ns=piece_end,
        code_end_ns=code_end,
        window_ns=max(code_end, float(piece_end.max(initial=0.0))),
    )


def window_ns(program: Program, times: HostTimes) -> float:
    """Replay only how long the window takes."""
    sums = _sums(program, times)
    clock, done = _blocks(program, times, sums)[3:]
    # a float of NumPy's can't be encoded in a report
    return float(max(clock + times.tail_ns, done, 0.0))


def _blocks(
    program: Program, times: HostTimes, sums: _Summed
) -> tuple[Floats, Floats, Floats, float, float]:
    """Go through the blocks.

    Returns:
        when each begins; of each part when its stream was done before; when each block
        ends; when the main lane does; when all streams are done.
    """
    layout, host, waits = program.layout, program.host, program.waits
    blocks = len(layout.end)
    done = [LONG_AGO_NS] * max(program.pieces.streams, 1)
    # a file may have as many streams as waits for all of them
    all_done = LONG_AGO_NS
    clock = [0.0] * host.lanes
    begins: dict[int, list[int]] = {}
    for lane, call in enumerate(host.begins_after):
        if call >= 0:
            begins.setdefault(int(layout.block[call]), []).append(lane)
    lanes = layout.lane.tolist()
    last = layout.end - 1
    takes = np.append(sums.off_ns, 0.0)[last].tolist()
    takes[0] = 0.0
    kind = np.append(waits.kind, NOTHING)[last]
    kind[0] = NOTHING
    kinds = kind.tolist()
    on = np.append(waits.on, 0)[last].tolist()
    lags = np.append(times.lag_ns, 0.0)[last].tolist()
    part_edges = np.searchsorted(layout.part_block, np.arange(blocks + 1)).tolist()
    streams = layout.part_stream.tolist()
    totals, reaches = sums.total_ns.tolist(), sums.reach_ns.tolist()
    sources, targets = _crossings(program)
    saved: dict[int, float] = {}
    begin, end = [0.0] * blocks, [0.0] * blocks
    part_in = [0.0] * len(streams)
    for block in range(blocks):
        lane = lanes[block]
        now = begin[block] = clock[lane]
        if block in targets:
            for stream, source, lag in targets[block]:
                came = saved[source] + lag
                if came > done[stream]:
                    done[stream] = came
        for part in range(part_edges[block], part_edges[block + 1]):
            stream = streams[part]
            queued = part_in[part] = done[stream]
            queued += totals[part]
            launched = now + reaches[part]
            done[stream] = queued = queued if queued > launched else launched
            if queued > all_done:
                all_done = queued
        if block in sources:
            for piece, stream in sources[block]:
                saved[piece] = done[stream]
        now += takes[block]
        what = kinds[block]
        if what != NOTHING:
            if what == STREAM:
                came = done[on[block]]
            elif what == EVERYTHING:
                came = all_done
            else:
                came = saved[on[block]]
            came += lags[block]
            if came > now:
                now = came
        clock[lane] = end[block] = now
        if block in begins:
            for other in begins[block]:
                clock[other] = now
    return np.array(begin), np.array(part_in), np.array(end), clock[0], all_done


def _crossings(
    program: Program,
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, list[tuple[int, int, float]]]]:
    """Give by block the pieces whose end is needed later, and what begins there."""
    layout, pieces, waits = program.layout, program.pieces, program.waits
    between = program.edges
    of_piece = np.empty(len(pieces), np.int64)
    of_piece[layout.order] = layout.part_block[layout.part]
    sources: dict[int, list[tuple[int, int]]] = {}
    needed = np.concatenate([between.source, waits.on[waits.kind == PIECE]])
    for piece in dict.fromkeys(needed.tolist()):
        block, stream = int(of_piece[piece]), int(pieces.stream[piece])
        sources.setdefault(block, []).append((piece, stream))
    targets: dict[int, list[tuple[int, int, float]]] = {}
    # the stream's own step comes on top
    lag = between.lag_ns - program.step_ns[between.target]
    for source, target, late in _rows(between.source, between.target, lag):
        block, stream = int(of_piece[target]), int(pieces.stream[target])
        targets.setdefault(block, []).append((stream, source, late))
    return sources, targets


def _rows(
    source: Int64s, target: Int64s, lag: Floats
) -> Iterator[tuple[int, int, float]]:
    yield from zip(source.tolist(), target.tolist(), lag.tolist(), strict=True)


def _starts(program: Program, sums: _Summed, begin: Floats, part_in: Floats) -> Floats:
    """Give the start of each piece, in the layout's order."""
    layout = program.layout
    part, first = layout.part, layout.part_first
    if not len(part):
        return np.zeros(0)
    ready = begin[layout.part_block[part]] + sums.ready_ns
    ends = ready + program.pieces.duration_ns[layout.order]
    # the latest of all earlier ends, each with what follows it in the queue
    bound = _running_maximum(ends - sums.through_ns, first, part)
    done = np.maximum(part_in[part], bound) + sums.through_ns
    before = np.append(LONG_AGO_NS, done[:-1])
    before[first] = part_in
    start: Floats = np.maximum(ready, before + program.step_ns[layout.order])
    return start


#: parts that are longer are done one by one, the others all at once
_LONG = 512


def _running_maximum(values: Floats, first: Int64s, part: Int64s) -> Floats:
    """Give the running maximum, begun anew at each part."""
    highest: Floats = values.copy()
    length = np.diff(first, append=len(values))
    long = np.flatnonzero(length > _LONG)
    for begin, count in zip(first[long].tolist(), length[long].tolist(), strict=True):
        mine = slice(begin, begin + count)
        highest[mine] = np.maximum.accumulate(values[mine])
    rows = np.flatnonzero(length[part] <= _LONG)
    place = rows - first[part[rows]]
    reach, longest = 1, int(place.max(initial=0)) + 1
    while reach < longest:
        inside = rows[place >= reach]
        highest[inside] = np.maximum(highest[inside], highest[inside - reach])
        reach *= 2
    return highest
