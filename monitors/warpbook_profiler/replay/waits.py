"""What each call of the host waited for on the GPU.

Most traces do not name the stream or event of a wait: it is what the recorded times
allow. A call that returned before the work was done did not wait for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Bools, Category, Columns, Int64s
from warpbook_profiler.facts.calls import named
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.host import Floats, Host
from warpbook_profiler.replay.work import LONG_AGO_NS, Pieces

#: what a wait is for: nothing, all work of a GPU, one stream's, one piece
NOTHING, EVERYTHING, STREAM, PIECE = 0, 1, 2, 3
_ALL = re.compile(r"(cuda|cu|hip)(Device|Ctx)Synchronize")
_EVENT = re.compile(r"(cuda|cu|hip)EventSynchronize")
_FROM_PAGEABLE = re.compile(r"Memcpy HtoD .*Pageable")
#: host's and GPU's clocks agree so well
_TOLERANCE_NS = 20_000.0
#: a call whose end differs from its copy's by no more carried the bytes itself
_CARRIES_NS = 200_000.0
#: of a wait that found the work done: no more is the way back from the GPU
_MOST_LAG_NS = 5_000.0


@dataclass(frozen=True)
class Waits:
    """Of each call, by position in `Host`."""

    #: one of the constants above
    kind: Int64s
    #: the stream or the piece
    on: Int64s
    #: the call's own time on the host; the whole call where it waits for nothing
    cost_ns: Floats
    #: from the end of that work to the call's return, less than 0 where the clocks
    #: differ or the host was done first
    lag_ns: Floats


def find_waits(host: Host, pieces: Pieces, trace: Trace) -> Waits:
    kind = np.full(len(host), NOTHING, np.int64)
    on = np.full(len(host), NONE, np.int64)
    done = np.full(len(host), LONG_AGO_NS)
    api, end = trace.calls.api, host.end_ns
    is_wait = trace.calls.waits[host.row]
    running = np.maximum.accumulate(np.append(LONG_AGO_NS, pieces.end_ns))
    # of each call: how many pieces were launched up to and with it
    launched = np.searchsorted(pieces.launch, np.arange(len(host)), side="right")

    def take(rows: Int64s, what: int, which: Int64s, done_ns: Floats) -> None:
        fits = done_ns <= end[rows] + _TOLERANCE_NS
        kind[rows[fits]], on[rows[fits]] = what, which[fits]
        done[rows[fits]] = done_ns[fits]

    for_all = np.flatnonzero(is_wait & named(api, _ALL)[host.row])
    take(for_all, EVERYTHING, np.full(len(for_all), NONE), running[launched[for_all]])
    for_event = is_wait & named(api, _EVENT)[host.row]
    rows = np.flatnonzero(for_event)
    if len(rows):
        which, done_ns = _latest_done(pieces, launched[rows], end[rows])
        take(rows, PIECE, which, done_ns)
    own = _own_copy(host, pieces, trace.on_gpu, is_wait, launched)
    rows = np.flatnonzero(own)
    last = launched[rows] - 1
    take(rows, STREAM, pieces.stream[last], pieces.end_ns[last])
    rest = is_wait & ~for_event & ~own
    rest[for_all] = False
    rows = np.flatnonzero(rest & (launched > 0))
    told = _told(pieces, trace, api.correlation[host.row[rows]])
    take(rows, STREAM, *_streams(pieces, launched[rows], end[rows], told))
    waited = (kind != NOTHING) & (done > host.start_ns)
    took = host.duration_ns
    short = np.minimum(took, _MOST_LAG_NS)
    return Waits(
        kind,
        on,
        np.where(waited, np.minimum(short, took), took),
        np.where(waited, end - done, short),
    )


def _own_copy(
    host: Host,
    pieces: Pieces,
    on_gpu: Columns,
    is_wait: Bools,
    launched: Int64s,
) -> Bools:
    """Choose the calls that return when their own copy is done."""
    has_own = np.zeros(len(host), np.bool_)
    known = pieces.launch[pieces.launch >= 0]
    has_own[known] = True
    own = is_wait & has_own
    # staged by the host: the call ends with the copy, a little before or after
    staged = np.zeros(len(pieces), np.bool_)
    staged[pieces.piece[named(on_gpu, _FROM_PAGEABLE)]] = True
    rows = np.flatnonzero(has_own & ~own)
    last = launched[rows] - 1
    carried = np.abs(host.end_ns[rows] - pieces.end_ns[last]) < np.minimum(
        _CARRIES_NS, pieces.duration_ns[last] / 2
    )
    own[rows[staged[last] & carried]] = True
    return own


def _latest_done(
    pieces: Pieces, launched: Int64s, end_ns: Floats
) -> tuple[Int64s, Floats]:
    """Give the piece that was done last when each call returned, if launched before."""
    order = np.argsort(pieces.end_ns, kind="stable")
    place = np.searchsorted(
        pieces.end_ns[order], end_ns + _TOLERANCE_NS / 4, side="right"
    )
    which = np.append(order, NONE)[place - 1]
    fits = (place > 0) & (which < launched)
    done = np.where(fits, np.append(pieces.end_ns, 0.0)[which], np.inf)
    return which, done


def _told(pieces: Pieces, trace: Trace, calls: Int64s) -> Int64s:
    """Give the stream that the trace names for waits of these ids, or NONE."""
    told, on_gpu = trace.events.only(Category.SYNC), trace.on_gpu
    if not len(told):
        return np.full(len(calls), NONE, np.int64)
    places = zip(on_gpu.device.tolist(), on_gpu.track.tolist(), strict=True)
    streams = dict(zip(places, pieces.stream[pieces.piece].tolist(), strict=True))
    named_by = zip(told.device.tolist(), told.track.tolist(), strict=True)
    of_call = dict(
        zip(told.correlation.tolist(), map(streams.get, named_by), strict=True)
    )
    found = [of_call.get(call) for call in calls.tolist()]
    return np.array([NONE if one is None else one for one in found], np.int64)


def _streams(
    pieces: Pieces, launched: Int64s, end_ns: Floats, told: Int64s
) -> tuple[Int64s, Floats]:
    """Give a wait's stream: as told, else the last launch's, else what fits best."""
    last = launched - 1
    stream = pieces.stream[last]
    done = np.maximum(pieces.before_ns, pieces.end_ns)[last]
    unfit = np.flatnonzero((done > end_ns + _TOLERANCE_NS) | (told != NONE))
    best = np.full(len(unfit), LONG_AGO_NS)
    for number in range(min(pieces.streams, _MOST_STREAMS)):
        mine = np.flatnonzero(pieces.stream == number)
        place = np.searchsorted(mine, launched[unfit]) - 1
        ends = np.maximum(pieces.before_ns, pieces.end_ns)[mine[np.maximum(place, 0)]]
        fits = (place >= 0) & (ends <= end_ns[unfit] + _TOLERANCE_NS) & (ends > best)
        fits &= (told[unfit] == NONE) | (told[unfit] == number)
        best[fits] = ends[fits]
        stream[unfit[fits]], done[unfit[fits]] = number, ends[fits]
    # a stream that was told and does not fit is waited for no more
    done[unfit[(told[unfit] != NONE) & (best == LONG_AGO_NS)]] = np.inf
    return stream, done


#: of more streams nobody can tell which one a wait is for
_MOST_STREAMS = 64
