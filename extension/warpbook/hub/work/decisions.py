"""What people decide about marks: overrides, regrades, appeals, each with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

Decision = Literal["", "upheld", "dismissed"]


class Appeal(Struct, frozen=True):
    """A learner asks for a result to be looked at."""

    id: str
    job: str
    submission: str
    person: str
    note: str
    made_ms: int
    #: empty until somebody answers
    decision: Decision
    answer: str
    answered_by: str
    answered_ms: int | None


class Override(Struct, frozen=True):
    """Points that an instructor set."""

    points: float | None
    reason: str
    made_by: str
    made_ms: int


def override(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    points: float | None,
    reason: str,
) -> None:
    """Set the points of a learner for a lab; None takes the last override back.

    Raises:
        BadRequest: no reason is given, or the points are negative or not finite.
        NotFound: there is no such lab or learner.
    """
    raise NotImplementedError


def overrides(
    connection: Connection, publication_id: str, person: str
) -> list[Override]:
    """Give all overrides ever made for a learner and a lab, the first first."""
    raise NotImplementedError


def regrade(
    connection: Connection,
    now_ms: int,
    actor: str,
    submission_ids: Sequence[str],
    reason: str,
) -> int:
    """Grade submissions once more; what they got before is kept.

    Returns:
        How many were put into the queue: those that wait or run already were not.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such submission.
    """
    raise NotImplementedError


def appeal(
    connection: Connection, now_ms: int, person: str, job: str, note: str
) -> str:
    """Ask for a result to be looked at: once for each, within the course's window.

    Returns:
        The id of the appeal.

    Raises:
        BadRequest: the note is empty or too long.
        NotFound: it is no result of theirs.
        Conflict: there is an appeal already.
        Forbidden: the window is over.
    """
    raise NotImplementedError


def answer_appeal(
    connection: Connection,
    now_ms: int,
    actor: str,
    appeal_id: str,
    decision: Decision,
    answer: str,
) -> None:
    """Answer an appeal; points are changed by an override or a regrade.

    Raises:
        BadRequest: there is no answer.
        NotFound: there is no such appeal.
        Conflict: it was answered before.
    """
    raise NotImplementedError


def appeals(
    connection: Connection, course_id: str, only_open: bool = False
) -> list[Appeal]:
    """Give the appeals of a course, the first first."""
    raise NotImplementedError
