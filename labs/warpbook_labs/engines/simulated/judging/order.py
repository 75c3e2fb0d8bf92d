"""What happens before what: vector clocks.

Host, streams and a graph's streams are lanes; each does one thing after another. A lane
that waits for another knows from then on all that the other knew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warpbook_labs.engines.simulated.program import DEFAULT_STREAM, HOST, ProgramRefused

#: PyTorch has 32 streams of each priority, beside the default one
MOST_STREAM = 64
#: of one program, with those of graphs
MOST_LANES = 256


@dataclass(frozen=True)
class Mark:
    """How far a lane was, and all that it had waited for."""

    clock: dict[int, int]
    #: pieces of work that have to be done until there, for the timeline
    work: frozenset[int] = frozenset()


@dataclass(eq=False)
class Lane:
    """Something that does one thing after another."""

    number: int
    #: as the program numbers them; HOST is the host's own
    stream: int
    name: str
    clock: dict[int, int] = field(default_factory=dict)
    work: frozenset[int] = frozenset()

    def step(self) -> int:
        """Begin one more thing; which one it is."""
        tick = self.clock.get(self.number, 0) + 1
        self.clock[self.number] = tick
        return tick

    def mark(self) -> Mark:
        return Mark(dict(self.clock), self.work)

    def wait_for(self, mark: Mark) -> None:
        """Let what comes later be after the mark."""
        self.know(mark.clock)
        self.work |= mark.work

    def know(self, clock: dict[int, int]) -> None:
        for lane, tick in clock.items():
            if self.clock.get(lane, 0) < tick:
                self.clock[lane] = tick

    def has_seen(self, lane: int, tick: int) -> bool:
        """Tell whether all that it does from now on is after a lane's step."""
        return self.clock.get(lane, 0) >= tick


class Lanes:
    """Those of one program."""

    def __init__(self) -> None:
        self.host = Lane(0, HOST, "the host")
        self._others: dict[tuple[int | None, int], Lane] = {}

    def of(self, stream: int, graph: int | None = None) -> Lane:
        """Give a stream's lane; within a graph it has one of its own."""
        lane = self._others.get((graph, stream))
        if lane is None:
            if not 0 <= stream <= MOST_STREAM or len(self._others) >= MOST_LANES:
                raise ProgramRefused("More streams are in use than there are.")
            name = f"stream {stream}"
            if stream == DEFAULT_STREAM:
                name = "the default stream"
            if graph is not None:
                name = f"{name} of the graph"
            lane = Lane(len(self._others) + 1, stream, name)
            self._others[graph, stream] = lane
        return lane

    def forget_work(self) -> None:
        """All work is done, and its numbers are given anew."""
        for lane in (self.host, *self._others.values()):
            lane.work = frozenset()

    def work(self) -> frozenset[int]:
        """Give what the streams still have to do."""
        return frozenset().union(*(lane.work for lane in self._others.values()))

    def wait_for_all(self) -> None:
        """Let the host know all that any lane does."""
        for lane in self._others.values():
            self.host.know(lane.clock)
