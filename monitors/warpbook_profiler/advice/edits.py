"""What a change does to a program: which work is gone, which takes another time.

An edit is made of masks and factors by position, so it is applied to a program and to
any of its host times. The order of what is left stays: a change that needs another
order, or host code that the trace has not, can't be written as an edit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpbook_profiler.events.columns import Bools, Int64s, distinct
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.replay.host import Floats
from warpbook_profiler.replay.program import Program
from warpbook_profiler.replay.simulation import HostTimes
from warpbook_profiler.replay.waits import NOTHING

#: work that is gone begins at once, whenever it was launched
_AT_ONCE_NS = -1e15


class Edit:
    """Changes to one program; times are in ns."""

    def __init__(self, program: Program, origin_ns: int) -> None:
        """Begin without a change.

        Args:
            program: what is changed.
            origin_ns: the Unix time at which its window began.
        """
        self._program = program
        self._origin_ns = origin_ns
        pieces, host = program.pieces, program.host
        #: of the GPU's events, how many of each piece are left
        self._left = np.bincount(pieces.piece, minlength=len(pieces))
        self._piece_ns = pieces.duration_ns.copy()
        self._step_ns = program.step_ns.copy()
        self._edge_lag_ns = program.edges.lag_ns.copy()
        self._gap = np.ones(len(host))
        self._cost = np.ones(len(host))
        self._added = np.zeros(len(host))
        self._tail = 1.0
        self._waits: Bools = np.ones(len(host), np.bool_)

    def resize(self, events: Int64s, old_ns: Int64s, new_ns: Floats) -> None:
        """Have work on the GPU take another time.

        Args:
            events: positions among the GPU's events.
            old_ns: what each takes in the trace.
            new_ns: what each takes then.
        """
        by_piece = self._program.pieces.piece[events]
        np.add.at(self._piece_ns, by_piece, new_ns - old_ns.astype(np.float64))

    def drop(self, events: Int64s, old_ns: Int64s) -> None:
        """Take work of the GPU away, and the calls that launched it."""
        self.resize(events, old_ns, np.zeros(len(events)))
        pieces = self._program.pieces
        np.subtract.at(self._left, pieces.piece[events], 1)
        gone = distinct(pieces.piece[events])
        gone = gone[self._left[gone] <= 0]
        calls = pieces.launch[gone]
        self._cost[calls[calls >= 0]] = 0.0

    def drop_calls(self, calls: Int64s) -> None:
        """Take calls away, with what they waited for; their work stays."""
        self._cost[calls] = 0.0
        self._waits[calls] = False

    def stop_waiting(self, calls: Int64s) -> None:
        """Have calls wait for nothing."""
        self._waits[calls] = False

    def drop_host(self, thread: int, start_ns: Int64s, end_ns: Int64s) -> None:
        """Take away what a thread does in spans of the trace's time, calls too.

        Args:
            thread: whose time it is; a lane of several threads that take turns counts.
            start_ns: of each span, Unix time, ascending.
            end_ns: of each span.
        """
        host, origin_ns = self._program.host, self._origin_ns
        spans = Coverage(start_ns, end_ns)
        lanes = [n for n, threads in enumerate(host.threads) if thread in threads]
        for lane in lanes:
            mine = np.flatnonzero(host.lane == lane)
            called, gap = host.start_ns[mine], host.gap_ns[mine]
            starts = called.astype(np.int64) + origin_ns
            begins = (called - gap).astype(np.int64) + origin_ns
            covered = spans.within_ns(begins, starts)
            kept = 1.0 - covered / np.maximum(starts - begins, 1)
            self._gap[mine] *= np.clip(kept, 0.0, 1.0)
            inside = mine[spans.holds(starts)]
            self.drop_calls(inside)
            if lane == 0 and self._program.host.tail_ns > 0 and len(mine):
                last = int(host.end_ns[mine[-1]]) + origin_ns
                until = last + int(host.tail_ns)
                within = spans.within_ns(np.array([last]), np.array([until]))[0]
                self._tail *= max(1.0 - within / max(host.tail_ns, 1.0), 0.0)

    def drop_tail(self) -> None:
        """Have the code end with its last call."""
        self._tail = 0.0

    def add_host(self, calls: int | Int64s, time_ns: float) -> None:
        """Have the host take longer before a call, or before each of several."""
        self._added[calls] += time_ns

    def close_up(self, pieces: Int64s, step_ns: float) -> None:
        """Have pieces follow one another on their stream after so long, at most."""
        self._step_ns[pieces] = np.minimum(self._step_ns[pieces], step_ns)

    def shorten_edges(self, lag_ns: float) -> None:
        """Have work that waits for another stream's begin so soon after it, at most.

        As on one stream, where an event is no more needed.
        """
        self._edge_lag_ns = np.minimum(self._edge_lag_ns, lag_ns)

    @property
    def saved_shares(self) -> Floats:
        """Return of each event on the GPU how much of its time is gone, 0 to 1."""
        pieces = self._program.pieces
        left_ns = np.where(self._left <= 0, 0.0, self._piece_ns)
        left = np.clip(left_ns / np.maximum(pieces.duration_ns, 1.0), 0.0, 1.0)
        return (1.0 - left)[pieces.piece]

    @property
    def saved_host_ns(self) -> float:
        """Return how much of the host's recorded time is gone, without waits."""
        host = self._program.host
        saved_ns = host.gap_ns * (1.0 - self._gap)
        saved_ns += self._program.waits.cost_ns * (1.0 - self._cost)
        return float(saved_ns.sum() + host.tail_ns * (1.0 - self._tail))

    @property
    def stops_waiting(self) -> bool:
        """Tell whether calls that waited for the GPU do not any more."""
        return bool((~self._waits & (self._program.waits.kind != NOTHING)).any())

    @property
    def closes_up(self) -> bool:
        """Tell whether work follows other work sooner, or none does any more."""
        return bool((self._step_ns < self._program.step_ns).any())

    def program(self, stalls: bool = True) -> Program:
        """Give the program after the change.

        Args:
            stalls: keep the delays of work that nothing in the trace explains.
        """
        program, gone = self._program, self._left <= 0
        waits = program.waits
        piece_ns = np.maximum(self._piece_ns, 0.0)
        # what waits for free multiprocessors waits for work that is faster then, too
        left = np.minimum(piece_ns / np.maximum(program.pieces.duration_ns, 1.0), 1.0)
        sooner_ns = program.unexplained_ns * ((1.0 - left) if stalls else 1.0)
        lag_ns, edges = self._edge_lag_ns, program.edges
        lag_ns = np.where(lag_ns > 0, lag_ns * left[edges.target], lag_ns)
        return replace(
            program,
            pieces=replace(program.pieces, duration_ns=np.where(gone, 0.0, piece_ns)),
            waits=replace(waits, kind=np.where(self._waits, waits.kind, NOTHING)),
            after_ns=np.where(gone, _AT_ONCE_NS, program.after_ns - sooner_ns),
            step_ns=np.where(gone, 0.0, np.maximum(self._step_ns - sooner_ns, 0.0)),
            edges=replace(edges, lag_ns=lag_ns),
        )

    def times(self, times: HostTimes) -> HostTimes:
        """Give the host's times after the change."""
        return HostTimes(
            times.gap_ns * self._gap + self._added,
            times.cost_ns * self._cost,
            times.lag_ns,
            times.tail_ns * self._tail,
        )
