"""Where jobs are run: the interface that every engine has.

An engine is told what to run and tells how that ended. It knows nothing of queues,
leases' times, marks or HTTP; what counts is decided by the hub, by the fence.
"""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from warpbook.hub.grader_protocol import GradedFacts, JobOrder, LeaseName


class Graded(Struct, frozen=True, tag="graded"):
    """What a submission was found to be."""

    facts: GradedFacts
    #: SHA-256 of what decides a grade of the lab
    lab_digest: str
    #: SHA-256 of the source that was graded
    source_digest: str
    #: JSON for people
    evidence: str = "{}"
    #: the lab's reference, where the order wants it
    reference: str = ""
    #: of the GPU, while it was used
    energy_mj: int | None = None


class NotGraded(Struct, frozen=True, tag="not graded"):
    """It can't be graded here, for a reason that is no fault of the submission."""

    message: str


#: "done": it told what it found; "cancelled": because it was asked to
How = Literal["done", "crashed", "timed out", "out of memory", "cancelled"]


class Ended(Struct, frozen=True):
    """A job that runs no more."""

    lease: LeaseName
    stage: str
    how: How
    #: for instructors, where it is not done
    message: str
    #: None unless it is done
    outcome: Graded | NotGraded | None
    took_ms: int


class Engine(Protocol):
    """Runs jobs, each in a process of its own, and never one lease twice."""

    def submit(self, order: JobOrder) -> None:
        """Begin a job; the same lease once more changes nothing."""
        ...

    def cancel(self, job: str) -> None:
        """End a job and all that it started; one that is not there is passed over."""
        ...

    def ended(self, wait_s: float) -> list[Ended]:
        """Give what has ended since it was asked last; each is told once.

        Args:
            wait_s: so long is waited for the first one.
        """
        ...

    def close(self) -> None:
        """End all that runs."""
        ...
