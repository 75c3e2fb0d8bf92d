"""A trace's events at the times of a replay, as if they had been recorded so.

All that judges a recorded trace then judges the replayed one. Events of the host move
with the call before and the call after them, in proportion; the profiler's own events
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from warpbook_profiler.events.columns import NONE, ON_GPU, Category, Columns, Int64s
from warpbook_profiler.events.marks import Marks
from warpbook_profiler.events.run import Run
from warpbook_profiler.replay.host import Floats, Host
from warpbook_profiler.replay.program import Program
from warpbook_profiler.replay.simulation import Replayed

#: how far after the code's end events are still moved
_LATER_NS = 1e15


class Retiming:
    """A trace's events, to be moved to the times of replays."""

    def __init__(self, events: Columns, run: Run, program: Program) -> None:
        self._run, self._program = run, program
        in_time = (events.start_ns >= run.start_ns) & (
            events.start_ns < run.code_end_ns
        )
        by_host = events.is_in(Category.API, Category.OPERATOR)
        self._events = events.where(events.is_in(*ON_GPU) | (in_time & by_host))
        on_gpu = self._events.is_in(*ON_GPU)
        start = (self._events.start_ns - run.start_ns).astype(np.float64)
        self._took_ns = np.maximum(self._events.duration_ns, 0).astype(np.float64)
        self._on_gpu = np.flatnonzero(on_gpu)
        self._gpu_start_ns = start[self._on_gpu]
        #: of each lane: its events' rows, and where they begin and end between moments
        self._hosts: list[tuple[Int64s, _Between, _Between]] = []
        lane_of = np.where(on_gpu, NONE, _lanes(self._events.track, program.host))
        for lane in range(program.host.lanes):
            rows = np.flatnonzero(lane_of == lane)
            old = _moments(self._recorded(lane))
            end = start[rows] + self._took_ns[rows]
            self._hosts.append(
                (rows, _Between.of(old, start[rows]), _Between.of(old, end))
            )

    def at(self, replayed: Replayed) -> tuple[Columns, Run]:
        """Move events and window to a replay's times."""
        begin, events = self._run.start_ns, self._events
        start = np.empty(len(events))
        took = self._took_ns.copy()
        pieces = self._program.pieces
        moved = (replayed.piece_start_ns - pieces.start_ns)[pieces.piece]
        # only of a hostile file does work lie before the window
        start[self._on_gpu] = np.maximum(self._gpu_start_ns + moved, 0.0)
        for lane, (rows, first, last) in enumerate(self._hosts):
            new = _moments(self._replayed(lane, replayed))
            start[rows] = first.at(new)
            took[rows] = last.at(new) - start[rows]
        start_ns = begin + np.rint(start).astype(np.int64)
        end_ns = begin + np.rint(start + took).astype(np.int64)
        # of those that now begin together the outer one was first already
        order = np.argsort(start_ns, kind="stable")
        return (
            events.rows(
                order,
                start_ns=start_ns[order],
                duration_ns=np.maximum(end_ns - start_ns, 0)[order],
            ),
            replace(
                self._run,
                code_end_ns=begin + round(replayed.code_end_ns),
                end_ns=begin + round(replayed.window_ns),
                marks=self._marks(replayed),
                senseless_events=0,
            ),
        )

    def _recorded(self, lane: int) -> _Calls:
        host = self._program.host
        mine = host.lane == lane
        code_end_ns = float(self._run.code_end_ns - self._run.start_ns)
        return _Calls(
            host.start_ns[mine],
            host.end_ns[mine],
            code_end_ns if lane == 0 else 0.0,
        )

    def _replayed(self, lane: int, replayed: Replayed) -> _Calls:
        mine = self._program.host.lane == lane
        return _Calls(
            replayed.start_ns[mine],
            replayed.end_ns[mine],
            replayed.code_end_ns if lane == 0 else 0.0,
        )

    def _marks(self, replayed: Replayed) -> Marks | None:
        """Move the moments at which the host came to lines."""
        marks = self._run.marks
        if marks is None:
            return None
        at = (marks.start_ns - self._run.start_ns).astype(np.float64)
        between = _Between.of(_moments(self._recorded(0)), at)
        moved = np.rint(between.at(_moments(self._replayed(0, replayed))))
        return Marks(marks.line, self._run.start_ns + moved.astype(np.int64))


class _Calls(NamedTuple):
    """When the calls of a lane begin and end, and when its code does."""

    start_ns: Floats
    end_ns: Floats
    code_end_ns: float


def _moments(calls: _Calls) -> Floats:
    """Give the moments of a lane in order, from the window's start to far after it."""
    both = np.empty(2 * len(calls.start_ns) + 3)
    both[0] = 0.0
    both[1:-2:2] = calls.start_ns
    both[2:-2:2] = calls.end_ns
    both[-2] = max(both[-3], calls.code_end_ns)
    both[-1] = both[-2] + _LATER_NS
    return both


@dataclass(frozen=True)
class _Between:
    """Places between a lane's moments: after which one, and how far to the next."""

    after: Int64s
    ratio: Floats

    @classmethod
    def of(cls, moments: Floats, at: Floats) -> _Between:
        """Find the places of these times."""
        after = np.searchsorted(moments, at, side="right") - 1
        after = np.clip(after, 0, len(moments) - 2)
        length = moments[after + 1] - moments[after]
        ratio = np.divide(
            at - moments[after], length, out=np.zeros(len(at)), where=length > 0
        )
        return cls(after, np.clip(ratio, 0.0, 1.0))

    def at(self, moments: Floats) -> Floats:
        """Give their times when the moments are at others."""
        begin = moments[self.after]
        moved: Floats = begin + self.ratio * (moments[self.after + 1] - begin)
        return moved


def _lanes(track: Int64s, host: Host) -> Int64s:
    """Give the lane that each thread's events move with; without one, the main."""
    lane = np.zeros(len(track), np.int64)
    for number, threads in enumerate(host.threads[1:], start=1):
        lane[np.isin(track, threads)] = number
    return lane
