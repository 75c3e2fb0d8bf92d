"""A change's edits at its best, as usual, and at its worst, made together.

What a change takes off the GPU is gone in all of them. What it takes off the host is
gone at best and as usual; at worst other code of the host takes as long.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.changes.chip import Span
from warpbook_monitors.changes.edits import Edit
from warpbook_monitors.changes.evidence import Evidence
from warpbook_monitors.trace.columns import Int64s


class Ways:
    """Three edits of one window's program."""

    def __init__(self, evidence: Evidence) -> None:
        """Begin without a change."""
        self._evidence = evidence
        program, origin_ns = evidence.bare.program, evidence.run.start_ns
        self.best = Edit(program, origin_ns)
        self.usual = Edit(program, origin_ns)
        self.worst = Edit(program, origin_ns)

    def __iter__(self) -> Iterator[Edit]:
        """Give the best, the usual and the worst."""
        return iter((self.best, self.usual, self.worst))

    def resize(self, events: Int64s, span: Span) -> None:
        """Have events of the GPU take a time together, each its share of it."""
        old_ns = self._evidence.gpu.duration_ns[events]
        total_ns = max(int(old_ns.sum()), 1)
        for edit, new_ns in zip(self, span, strict=True):
            edit.resize(events, old_ns, old_ns.astype(np.float64) * new_ns / total_ns)

    def drop(self, events: Int64s) -> None:
        """Take events off the GPU, with their launches."""
        for edit in self:
            edit.drop(events, self._evidence.gpu.duration_ns[events])

    def drop_operators(self, positions: Int64s) -> None:
        """Take operators away: their work on the GPU, and their time on the host."""
        operators = self._evidence.operators
        self.drop(operators.launched_within(positions))
        table = operators.table
        for thread in np.unique(table.track[positions]).tolist():
            mine = positions[table.track[positions] == thread]
            mine = mine[np.argsort(table.start_ns[mine], kind="stable")]
            self.drop_host(int(thread), table.start_ns[mine], table.end_ns[mine])

    def drop_host(
        self, thread: int, start_ns: Int64s, end_ns: Int64s, in_worst: bool = False
    ) -> None:
        """Take away what a thread does in spans of the trace's time; see `Edit`."""
        for edit in self if in_worst else (self.best, self.usual):
            edit.drop_host(thread, start_ns, end_ns)

    def drop_calls(self, calls: Int64s, in_worst: bool = True) -> None:
        """Take calls, by position in `Calls.api`, away; their work stays."""
        positions = self._evidence.host_position(calls)
        for edit in self if in_worst else (self.best, self.usual):
            edit.drop_calls(positions)

    def add_host(self, calls: Int64s, span: Span) -> None:
        """Have the host take so long before each of these calls."""
        positions = self._evidence.host_position(calls)
        for edit, time_ns in zip(self, span, strict=True):
            edit.add_host(positions, time_ns)

    def stop_waiting(self, calls: Int64s) -> None:
        """Have calls, by position in `Calls.api`, wait for nothing."""
        positions = self._evidence.host_position(calls)
        for edit in self:
            edit.stop_waiting(positions)
