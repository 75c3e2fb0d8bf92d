"""The host's side of a replay: calls in order, in lanes of threads that take turns.

A worker such as autograd's goes on where the main thread left off, so both are one
lane: what one does follows what the other did. Threads that work at the same time are
lanes of their own. Times are float64 ns since the window began: sums of a hostile
file's times then grow imprecise and never wrap round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import Columns, Int64s, rows_by
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.calls import named
from warpbook_profiler.facts.trace import Trace

Floats = npt.NDArray[np.float64]

#: every operator has a namespace; annotations may lie around other threads' work
_OPERATOR = re.compile(r".*::", re.DOTALL)
#: of a thread's active time: what it may share with a lane and still take turns
_TURNS_SHARE = 0.05
#: more threads than these share the last lane
_MOST_LANES = 16
#: no program launches from more; what others of a hostile file do is left out
_MOST_THREADS = 32


@dataclass(frozen=True)
class Host:
    """Calls in ascending start; a lane's calls do not overlap."""

    #: positions in `Calls.api`
    row: Int64s
    lane: Int64s
    #: time of the lane since its call before ended, or since `begins_after`
    gap_ns: Floats
    #: from the call's start to its end, or to the lane's next call if that came first
    duration_ns: Floats
    start_ns: Floats
    #: of each lane: the call, of any lane, that its first gap follows; -1 is the window
    begins_after: tuple[int, ...]
    #: from the last call of the main lane, the first, to the end of the code
    tail_ns: float
    #: of each lane: the threads in it
    threads: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        """Count the calls."""
        return len(self.row)

    @property
    def lanes(self) -> int:
        return len(self.begins_after)

    @property
    def end_ns(self) -> Floats:
        return self.start_ns + self.duration_ns


def host_side(trace: Trace) -> Host:
    """Put the calls of all threads that launch or wait into lanes."""
    run, api = trace.run, trace.calls.api
    inside = np.flatnonzero(api.start_ns >= run.start_ns)
    lanes = _lanes(trace, inside)
    lane_of = np.full(len(api), -1, np.int64)
    for number, threads in enumerate(lanes):
        lane_of[np.isin(api.track, threads)] = number
    row = inside[lane_of[inside] >= 0]
    lane = lane_of[row]
    start = (api.start_ns[row] - run.start_ns).astype(np.float64)
    end = start + np.maximum(api.duration_ns[row], 0)
    gap, begins_after = np.zeros(len(row)), []
    for number in range(len(lanes)):
        mine = np.flatnonzero(lane == number)
        # what lies within another call, or begins before it returned, cuts it short
        end[mine[:-1]] = np.minimum(end[mine[:-1]], start[mine[1:]])
        gap[mine[1:]] = start[mine[1:]] - end[mine[:-1]]
        first = int(mine[0])
        before = np.flatnonzero(end[:first] <= start[first])
        after = int(before[-1]) if number and len(before) else -1
        begins_after.append(after)
        gap[first] = start[first] - (end[after] if after >= 0 else 0.0)
    code_end_ns = float(run.code_end_ns - run.start_ns)
    main = end[lane == 0]
    tail_ns = max(code_end_ns - (float(main[-1]) if len(main) else 0.0), 0.0)
    return Host(
        row=row,
        lane=lane,
        gap_ns=np.maximum(gap, 0.0),
        duration_ns=end - start,
        start_ns=start,
        begins_after=tuple(begins_after) or (-1,),
        tail_ns=tail_ns,
        threads=tuple(lanes) or ((),),
    )


def _lanes(trace: Trace, inside: Int64s) -> list[tuple[int, ...]]:
    """Group the threads that launch or wait; the main thread's group is the first."""
    calls, api = trace.calls, trace.calls.api
    acts = inside[(calls.launches | calls.waits)[inside]]
    if not len(acts):
        return []
    firsts = sorted(int(rows[0]) for rows in rows_by(api.track[acts]))
    threads = api.track[acts[firsts[:_MOST_THREADS]]].tolist()
    if len(threads) == 1:
        return [(threads[0],)]
    operators = trace.operators.where(named(trace.operators, _OPERATOR))
    lanes: list[tuple[tuple[int, ...], Coverage]] = []
    for thread in threads:
        start, end = _active(operators, api, (thread,))
        active_ns = Coverage(start, end).total_ns
        for number, (members, busy) in enumerate(lanes):
            shared_ns = int(busy.within_ns(*_merged(start, end)).sum())
            least_ns = min(active_ns, busy.total_ns)
            if shared_ns <= _TURNS_SHARE * least_ns or len(lanes) == _MOST_LANES:
                both = (*members, thread)
                lanes[number] = both, Coverage(*_active(operators, api, both))
                break
        else:
            lanes.append(((thread,), Coverage(start, end)))
    return [members for members, _ in lanes]


def _active(
    operators: Columns, api: Columns, threads: tuple[int, ...]
) -> tuple[Int64s, Int64s]:
    """Give when these threads were in operators or calls, sorted by start."""
    ours = np.isin(operators.track, threads)
    also = np.isin(api.track, threads)
    start = np.concatenate([operators.start_ns[ours], api.start_ns[also]])
    end = np.concatenate([operators.end_ns[ours], api.end_ns[also]])
    order = np.argsort(start, kind="stable")
    return start[order], end[order]


def _merged(start_ns: Int64s, end_ns: Int64s) -> tuple[Int64s, Int64s]:
    """Cut what overlaps, so that no time is counted twice."""
    latest = np.maximum.accumulate(end_ns)
    cut = start_ns.copy()
    cut[1:] = np.maximum(start_ns[1:], latest[:-1])
    return cut, np.maximum(end_ns, cut)
