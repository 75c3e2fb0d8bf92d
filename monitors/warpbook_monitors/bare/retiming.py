"""A trace's events at the times of a replay, as if they had been recorded so.

All that judges a recorded trace then judges the replayed one. Events of the host move
with the call before and the call after them, in proportion; the profiler's own events
are left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpbook_monitors.bare.host import Floats, Host
from warpbook_monitors.bare.program import Program
from warpbook_monitors.bare.simulation import Replayed
from warpbook_monitors.trace.columns import ON_GPU, Category, Columns, Int64s
from warpbook_monitors.trace.marks import Marks
from warpbook_monitors.trace.run import Run

#: how far after the code's end events are still moved
_LATER_NS = 1e15


def retimed(
    events: Columns, run: Run, program: Program, replayed: Replayed
) -> tuple[Columns, Run]:
    """Move the events of the window, and the window, to the replay's times."""
    host, begin = program.host, run.start_ns
    api = events.is_in(Category.API)
    inside = events.start_ns >= begin
    kept = events.is_in(*ON_GPU) | (
        inside
        & (events.start_ns < run.code_end_ns)
        & (api | events.is_in(Category.OPERATOR))
    )
    events = events.where(kept)
    old_start = (events.start_ns - begin).astype(np.float64)
    old_end = (events.end_ns - begin).astype(np.float64)
    start, end = np.empty(len(events)), np.empty(len(events))
    on_gpu = events.is_in(*ON_GPU)
    piece = program.pieces.piece
    moved = (replayed.piece_start_ns - program.pieces.start_ns)[piece]
    start[on_gpu] = old_start[on_gpu] + moved
    # only of a hostile file does work lie before the window
    start[on_gpu] = np.maximum(start[on_gpu], 0.0)
    end[on_gpu] = start[on_gpu] + np.maximum((old_end - old_start)[on_gpu], 0.0)
    lane_of = _lanes(events.track, host)
    code_end_ns = float(run.code_end_ns - begin)
    for lane in range(host.lanes):
        mine = np.flatnonzero(~on_gpu & (lane_of == lane))
        old, new = _knots(host, replayed, lane, code_end_ns)
        start[mine] = np.interp(old_start[mine], old, new)
        end[mine] = np.interp(old_end[mine], old, new)
    start_ns = begin + np.rint(start).astype(np.int64)
    duration_ns = begin + np.rint(end).astype(np.int64) - start_ns
    # of those that now begin together the outer one was first already
    order = np.argsort(start_ns, kind="stable")
    return (
        replace(
            events.rows(order),
            start_ns=start_ns[order],
            duration_ns=np.maximum(duration_ns[order], 0),
        ),
        replace(
            run,
            code_end_ns=begin + round(replayed.code_end_ns),
            end_ns=begin + round(replayed.window_ns),
            marks=_marks(run, program, replayed),
            senseless_events=0,
        ),
    )


def _lanes(track: Int64s, host: Host) -> Int64s:
    """Give the lane that each thread's events move with; without one, the main."""
    lane = np.zeros(len(track), np.int64)
    for number, threads in enumerate(host.threads[1:], start=1):
        lane[np.isin(track, threads)] = number
    return lane


def _knots(
    host: Host, replayed: Replayed, lane: int, code_end_ns: float
) -> tuple[Floats, Floats]:
    """Give moments of a lane as recorded, ascending, and as replayed."""
    mine = host.lane == lane
    old = np.stack([host.start_ns[mine], host.end_ns[mine]], axis=1).ravel()
    new = np.stack([replayed.start_ns[mine], replayed.end_ns[mine]], axis=1).ravel()
    last = (old[-1], new[-1]) if len(old) else (0.0, 0.0)
    if lane == 0:
        last = max(code_end_ns, last[0]), max(replayed.code_end_ns, last[1])
    later = last[0] + _LATER_NS, last[1] + _LATER_NS
    return (
        np.concatenate([[0.0], old, [last[0], later[0]]]),
        np.concatenate([[0.0], new, [last[1], later[1]]]),
    )


def _marks(run: Run, program: Program, replayed: Replayed) -> Marks | None:
    """Move the moments at which the host came to lines."""
    if run.marks is None:
        return None
    code_end_ns = float(run.code_end_ns - run.start_ns)
    old, new = _knots(program.host, replayed, 0, code_end_ns)
    at = np.interp((run.marks.start_ns - run.start_ns).astype(np.float64), old, new)
    return Marks(run.marks.line, run.start_ns + np.rint(at).astype(np.int64))
