"""A change's edits at its best, as usual, and at its worst, made together.

What a change takes off the GPU is gone in all of them. What it takes off the host is
gone at best and as usual; at worst other code of the host takes as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.edits import Edit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.events.columns import Bools, Int64s, distinct

#: between two operators that become one
_OTHER_WORK_NS = 500_000


class Ways:
    """Three edits of one window's program.

    What operators and spans of the host are taken away is gathered first, and taken
    away at once by `edits`: a window may have many thousands of them.
    """

    def __init__(self, evidence: Evidence) -> None:
        """Begin without a change."""
        self._evidence = evidence
        program, origin_ns = evidence.bare.program, evidence.run.start_ns
        self.best = Edit(program, origin_ns)
        self.usual = Edit(program, origin_ns)
        self.worst = Edit(program, origin_ns)
        self._operators: list[Int64s] = []
        #: by thread: spans, and the edits in which they are gone
        self._spans: dict[int, list[tuple[Int64s, Int64s, tuple[Edit, ...]]]] = {}

    def edits(self) -> tuple[Edit, Edit, Edit]:
        """Give the best, the usual and the worst; nothing is changed after it."""
        self._take_operators()
        for thread, spans in self._spans.items():
            for edit in self.all:
                some = [span for span in spans if edit in span[2]]
                if not some:
                    continue
                start_ns = np.concatenate([span[0] for span in some])
                end_ns = np.concatenate([span[1] for span in some])
                order = np.argsort(start_ns, kind="stable")
                edit.drop_host(thread, start_ns[order], end_ns[order])
        self._spans.clear()
        return self.all

    @property
    def all(self) -> tuple[Edit, Edit, Edit]:
        """Return the best, the usual and the worst."""
        return self.best, self.usual, self.worst

    def resize(self, events: Int64s, span: Span) -> None:
        """Have events of the GPU take a time together, each its share of it."""
        old_ns = self._evidence.gpu.duration_ns[events]
        total_ns = max(int(old_ns.sum()), 1)
        for edit, new_ns in zip(self.all, span, strict=True):
            edit.resize(events, old_ns, old_ns.astype(np.float64) * new_ns / total_ns)

    def resize_each(self, events: Int64s, spans: Sequence[Span]) -> None:
        """Have each of these events take a time of its own."""
        old_ns = self._evidence.gpu.duration_ns[events]
        for edit, new_ns in zip(self.all, np.array(spans).T, strict=True):
            edit.resize(events, old_ns, old_ns * new_ns / np.maximum(old_ns, 1))

    def drop(self, events: Int64s) -> None:
        """Take events off the GPU, with their launches."""
        for edit in self.all:
            edit.drop(events, self._evidence.gpu.duration_ns[events])

    def drop_operators(self, positions: Int64s) -> None:
        """Take operators away: their work on the GPU, and their time on the host."""
        self._operators.append(positions)

    def join_operators(self, chains: Sequence[Sequence[int]]) -> None:
        """Have the first of each chain do the work of all, with the Python in between.

        Not all of that: see `drop_gaps`.
        """
        self.drop_operators(np.array([at for chain in chains for at in chain[1:]]))
        self.drop_gaps(chains)

    def drop_run_up(self, members: Bools, begins: Bools, targets: Bools) -> None:
        """At best, have the host do nothing of what only leads to some operators.

        Args:
            members: by operator; of those that follow one another some lead to targets.
            begins: members that come first in what is gone.
            targets: members, the last of which comes last; it stays itself.
        """
        operators = self._evidence.operators
        outer, table = np.flatnonzero(operators.outermost), operators.table
        inside = np.pad(members[outer].astype(np.int8), 1)
        chains = list[list[int]]()
        for begin, end in np.flatnonzero(np.diff(inside)).reshape(-1, 2).tolist():
            run = outer[begin:end]
            first, last = np.flatnonzero(begins[run]), np.flatnonzero(targets[run])
            if len(first) and len(last) and first[0] < last[-1]:
                chains.append(run[first[0] : last[-1] + 1].tolist())
        gone = np.array([at for chain in chains for at in chain[:-1]], np.int64)
        for thread in distinct(table.track[gone]).tolist():
            mine = gone[table.track[gone] == thread]
            spans_ns = table.start_ns[mine], table.end_ns[mine]
            self.drop_host(int(thread), *spans_ns, in_usual=False)
        self.drop_gaps(chains, in_usual=False)

    def drop_gaps(self, chains: Sequence[Sequence[int]], in_usual: bool = True) -> None:
        """Take away what Python does between operators that follow one another.

        Longer pauses, and those in which somebody calls CUDA, are other work, and stay.
        """
        table = self._evidence.operators.table
        pairs = [(chain[0], *pair) for chain in chains for pair in pairwise(chain)]
        first, before, after = np.array(pairs, np.int64).reshape(-1, 3).T
        ends = table.start_ns[before] + table.duration_ns[before]
        starts = table.start_ns[after]
        is_near = (starts >= ends) & (starts - ends < _OTHER_WORK_NS)
        is_near &= table.track[before] == table.track[after]
        called_ns = self._evidence.calls.api.start_ns
        is_near &= np.searchsorted(called_ns, ends) == np.searchsorted(
            called_ns, starts
        )
        first, ends, starts = first[is_near], ends[is_near], starts[is_near]
        for thread in dict.fromkeys(table.track[first].tolist()):
            mine = table.track[first] == thread
            self.drop_host(thread, ends[mine], starts[mine], in_usual=in_usual)

    def drop_host(
        self,
        thread: int,
        start_ns: Int64s,
        end_ns: Int64s,
        in_worst: bool = False,
        in_usual: bool = True,
    ) -> None:
        """Take away what a thread does in spans of the trace's time; see `Edit`."""
        spans = self._spans.setdefault(thread, [])
        edits = self.all if in_worst else (self.best, self.usual)
        spans.append((start_ns, end_ns, edits if in_usual else (self.best,)))

    def drop_calls(self, calls: Int64s, in_worst: bool = True) -> None:
        """Take calls, by position in `Calls.api`, away; their work stays."""
        positions = self._evidence.host_position(calls)
        for edit in self.all if in_worst else (self.best, self.usual):
            edit.drop_calls(positions)

    def add_host(self, calls: Int64s, span: Span) -> None:
        """Have the host take so long before each of these calls."""
        positions = self._evidence.host_position(calls)
        for edit, time_ns in zip(self.all, span, strict=True):
            edit.add_host(positions, time_ns)

    def stop_waiting(self, calls: Int64s, in_worst: bool = True) -> None:
        """Have calls, by position in `Calls.api`, wait for nothing."""
        positions = self._evidence.host_position(calls)
        for edit in self.all if in_worst else (self.best, self.usual):
            edit.stop_waiting(positions)

    def _take_operators(self) -> None:
        if not self._operators:
            return
        positions = distinct(np.concatenate(self._operators))
        self._operators.clear()
        operators = self._evidence.operators
        self.drop(operators.launched_within(positions))
        table = operators.table
        for thread in distinct(table.track[positions]).tolist():
            mine = positions[table.track[positions] == thread]
            self.drop_host(int(thread), table.start_ns[mine], table.end_ns[mine])
