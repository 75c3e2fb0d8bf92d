"""Where jobs are run: the interface that every engine has.

An engine is told what to run and tells how that ended. It knows nothing of queues,
leases' times, marks or HTTP; what counts is decided by the hub, by the fence.
"""

from __future__ import annotations

import contextlib
import queue
from typing import Literal, Protocol

from msgspec import Struct

from warpbook.hub_protocol import CodeQuestion, Device, GradedFacts, JobOrder, LeaseName


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
    #: on the source, where the order asks for them and it passed
    questions: tuple[CodeQuestion, ...] = ()


class NotGraded(Struct, frozen=True, tag="not graded"):
    """It can't be graded here, for a reason that is no fault of the submission."""

    message: str
    #: this time: the machine is too busy
    is_busy: bool = False


#: "done": it told what it found; "cancelled": because it was asked to; "no node": it
#: was not begun, since what it is to run on is away
How = Literal["done", "crashed", "timed out", "out of memory", "cancelled", "no node"]


class JobEnd(Struct, frozen=True):
    """A job that runs no more."""

    lease: LeaseName
    stage: str
    how: How
    #: for instructors, where it is not done
    message: str
    #: None unless it is done
    outcome: Graded | NotGraded | None
    took_ms: int


class Places(Struct, frozen=True):
    """What jobs can have now, whether it is taken or free."""

    cpu_slots: int = 1
    devices: tuple[Device, ...] = ()


class Engine(Protocol):
    """Runs jobs, each in a process of its own, and never one lease twice."""

    def places(self) -> Places:
        """Say what jobs can have; it changes as machines come and go."""
        ...

    def submit(self, order: JobOrder) -> None:
        """Begin a job; the same lease once more changes nothing."""
        ...

    def cancel(self, job: str) -> None:
        """End a job and all that it started; one that is not there is passed over."""
        ...

    def ended(self, wait_s: float) -> list[JobEnd]:
        """Give what has ended since it was asked last; each is told once.

        A job that was given up, since its machine was not heard of, may be told once
        more with what that machine found. Its fence says that it is late.

        Args:
            wait_s: so long is waited for the first one.
        """
        ...

    def close(self) -> None: ...


def taken(ends: queue.Queue[JobEnd], wait_s: float) -> list[JobEnd]:
    """Take all that is there, and wait for the first one."""
    found: list[JobEnd] = []
    with contextlib.suppress(queue.Empty):
        found.append(ends.get(timeout=wait_s))
        while True:
            found.append(ends.get_nowait())
    return found
