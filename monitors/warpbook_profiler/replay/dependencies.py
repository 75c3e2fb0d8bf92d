"""Which stream waits for which: `cudaStreamWaitEvent` names neither in a trace.

torch writes "record an event there, wait for it here" in two calls: the event is of
the last work launched before it was recorded, and the next work on any other stream
waits. A guess that the recorded times contradict is dropped. Work that started just
when another stream's ended, after such a call, waited for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.facts.calls import Calls, named
from warpbook_profiler.replay.host import Floats, Host
from warpbook_profiler.replay.work import Pieces

_RECORD = re.compile(r"(cuda|cu|hip)EventRecord")
_WAIT_EVENT = re.compile(r"(cuda|cu|hip)StreamWaitEvent")
#: from an event's coming to the start of what waited for it, where it did not decide
_USUAL_LAG_NS = 1_500.0
#: clocks of two streams agree so well
_TOLERANCE_NS = 1_000.0
#: what starts so soon after another stream's work may have waited for it
_SOON_NS = 10_000.0


@dataclass(frozen=True)
class Edges:
    """Pairs of pieces on two streams, the second of which waits for the first."""

    source: Int64s
    target: Int64s
    lag_ns: Floats

    def __len__(self) -> int:
        """Count them."""
        return len(self.source)


def edges(
    pieces: Pieces,
    host: Host,
    calls: Calls,
    returned_ns: Floats,
    unexplained_ns: Floats,
) -> tuple[Edges, Floats]:
    """Find the waits between streams; give what stays unexplained of each start.

    Args:
        pieces: the work.
        host: its launches.
        calls: the same, with names.
        returned_ns: of each piece, when its launch was done.
        unexplained_ns: of each piece, what launch and stream do not explain.
    """
    no_rows = np.zeros(0, np.int64)
    unexplained = unexplained_ns.copy()
    if pieces.streams < 2:
        return Edges(no_rows, no_rows, np.zeros(0)), unexplained
    waits = np.flatnonzero(named(calls.api, _WAIT_EVENT)[host.row])
    source, target = _told(pieces, host, calls, waits)
    holds = pieces.end_ns[source] <= pieces.start_ns[target] + _TOLERANCE_NS
    source, target = source[holds], target[holds]
    seen_source, seen_target = _seen(pieces, waits, unexplained)
    source = np.concatenate([source, seen_source])
    target = np.concatenate([target, seen_target])
    # what one call launched does not wait for itself
    apart = pieces.launch[source] < pieces.launch[target]
    source, target = source[apart], target[apart]
    lag = pieces.start_ns[target] - pieces.end_ns[source]
    # of several events the last decides
    order = np.lexsort((lag, target))
    source, target, lag = source[order], target[order], lag[order]
    decides = np.ones(len(target), np.bool_)
    decides[1:] = target[1:] != target[:-1]
    # what was launched after the event had come waited for its launch
    decides &= (unexplained[target] > 0) & (pieces.end_ns[source] > returned_ns[target])
    unexplained[target[decides]] = 0.0
    lag = np.where(decides, lag, np.minimum(lag, _USUAL_LAG_NS))
    return Edges(source, target, lag), unexplained


def _told(
    pieces: Pieces, host: Host, calls: Calls, waits: Int64s
) -> tuple[Int64s, Int64s]:
    """Pair records and waits as torch writes them, lane by lane."""
    records = np.flatnonzero(named(calls.api, _RECORD)[host.row])
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    of_lane = np.append(host.lane, NONE)[pieces.launch]
    for lane in range(host.lanes):
        mine = np.flatnonzero(of_lane == lane)
        wait, record = waits[host.lane[waits] == lane], records
        record = record[host.lane[record] == lane]
        if not len(mine) or not len(wait) or not len(record):
            continue
        launch, stream = pieces.launch[mine], pieces.stream[mine]
        recorded = np.searchsorted(record, wait) - 1
        last = np.searchsorted(launch, record[np.maximum(recorded, 0)]) - 1
        following = np.searchsorted(launch, wait)
        known = (recorded >= 0) & (last >= 0) & (following < len(mine))
        last, following = last[known], following[known]
        same = stream[following] == stream[last]
        other = np.where(same, _next_other(stream)[following], following)
        known = other < len(mine)
        sources.append(mine[last[known]])
        targets.append(mine[other[known]])
    return np.concatenate(sources), np.concatenate(targets)


def _next_other(stream: Int64s) -> Int64s:
    """Give for each piece the next one on another stream."""
    changes = np.append(np.flatnonzero(np.diff(stream)) + 1, len(stream))
    next_change: Int64s = changes[
        np.searchsorted(changes, np.arange(len(stream)), side="right")
    ]
    return next_change


def _seen(
    pieces: Pieces, waits: Int64s, unexplained_ns: Floats
) -> tuple[Int64s, Int64s]:
    """Find work that began just when another stream's ended, after a wait was asked."""
    late = np.flatnonzero(unexplained_ns > _TOLERANCE_NS)
    is_seen = np.searchsorted(waits, pieces.launch[late]) > 0
    late = late[is_seen]
    end = pieces.end_ns
    order = np.argsort(end, kind="stable")
    place = np.searchsorted(
        end[order], pieces.start_ns[late] + _TOLERANCE_NS, side="right"
    )
    known = place > 0
    late, source = late[known], order[place[known] - 1]
    fits = end[source] >= pieces.start_ns[late] - _SOON_NS
    fits &= pieces.stream[source] != pieces.stream[late]
    # only what was launched before can be waited for
    fits &= source < late
    return source[fits], late[fits]
