"""How large a simulated class is, how long its jobs take, and how it hands in."""

from __future__ import annotations

from dataclasses import dataclass

from warpbook.hub_protocol import JobOrder

MINUTE_MS = 60_000
#: of each course; a roster has 5,000 at most
COURSE_LEARNERS = 1_000
#: of one node
SLOTS, GPUS = 4, 4
#: of a job itself, and how much it differs
CPU_MS, GPU_MS, DIFFERENCE = 2_500, 5_000, 0.3
#: who is wrong hands in again, after a while
RIGHT_RATIO, MOST_ATTEMPTS, THINK_MS = 0.6, 3, (60_000, 300_000)
SOURCE_CHARACTERS = 2_000
#: after the deadline
PATIENCE_MS = 240 * MINUTE_MS


@dataclass(frozen=True)
class Size:
    """How large it all is."""

    learners: int
    nodes: int
    within_min: float
    has_losses: bool

    @property
    def slots(self) -> int:
        """Give the CPU slots of all nodes."""
        return self.nodes * SLOTS

    @property
    def gpus(self) -> int:
        """Give the GPUs of all nodes."""
        return self.nodes * GPUS


@dataclass
class Work:
    """A submission, and when what became of it."""

    person: str
    attempt: int
    handed_ms: float
    received_ms: float = 0.0
    leased_ms: float = 0.0
    result_ms: float = 0.0


@dataclass
class Run:
    """A job on a node."""

    order: JobOrder
    node: int
    begun_ms: float
    #: given up, or ended with the driver
    is_over: bool = False
