"""The queue as people see it: places, estimates, and what runs where."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection


class Place(Struct, frozen=True):
    """Where a submission is in the queue."""

    stage: str
    #: jobs that are before it; 0: it runs, or is next
    before: int
    #: None where no grader could take it now
    eta_s: float | None


class QueuedJob(Struct, frozen=True):
    """A job that waits, runs, or is parked."""

    job: str
    submission: str
    publication: str
    party: str
    person: str
    stage: str
    state: str
    lane: int
    queued_ms: int
    leased_ms: int | None
    grader: str
    device: str
    crashes: int
    note: str
    place: Place | None


def place(connection: Connection, now_ms: int, submission_id: str) -> Place | None:
    """Tell where a submission is in the queue; None if it is not."""
    raise NotImplementedError


def queue(connection: Connection, now_ms: int, course_id: str) -> list[QueuedJob]:
    """Give all jobs of a course that have not ended, in the order of the queue.

    Places count jobs of other courses, too.
    """
    raise NotImplementedError
