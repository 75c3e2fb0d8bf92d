"""What a server knows about single events of a timeline, by their number in the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Int32s, Int64s
from warpbook_profiler.model.timeline_answers import EventFacts
from warpbook_profiler.timeline.timeline_body import RunEvents


@dataclass(frozen=True)
class EventsKnown:
    """Columns by the event's number; empty where the kernel did not tell."""

    facts: tuple[EventFacts, ...]
    #: positions in `facts`, or NONE
    fact: Int32s
    #: numbers of the calls that launched GPU work, or NONE
    launch: Int32s
    line_start_ns: Int64s
    line: Int32s

    @classmethod
    def of(cls, events: RunEvents) -> EventsKnown:
        """Take them from a run; what came in as one message is let go."""
        return cls(
            events.facts,
            events.fact.copy(),
            events.launch.copy(),
            events.line_start_ns.copy(),
            events.line.copy(),
        )

    @property
    def size_bytes(self) -> int:
        """What it takes in memory; facts are some numbers each."""
        columns = (self.fact, self.launch, self.line_start_ns, self.line)
        return sum(column.nbytes for column in columns) + 1000 * len(self.facts)

    def facts_of(self, number: int) -> EventFacts:
        """Give an event's facts."""
        at = self.fact[number] if len(self.fact) else NONE
        return EventFacts() if at == NONE else self.facts[at]

    def launch_of(self, number: int) -> int | None:
        launch = int(self.launch[number]) if len(self.launch) else NONE
        return None if launch == NONE else launch

    def launched_by(self, number: int) -> Int64s:
        """Give the numbers of what a call launched, in order."""
        return np.flatnonzero(self.launch == number)

    def line_at(self, at_ns: int) -> int | None:
        """Give the line at which the host was; None before the first."""
        place = int(np.searchsorted(self.line_start_ns, at_ns, "right")) - 1
        return int(self.line[place]) if place >= 0 else None
