"""What people decide about marks: overrides, regrades, appeals, each with a reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, func, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.publications import publication
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import (
    APPEALS,
    COURSES,
    JOBS,
    OVERRIDES,
    PUBLICATIONS,
    RESULTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.errors import BadRequest, Conflict, Forbidden, NotFound
from warpbook_hub.ids import new_id
from warpbook_hub.notices.notes import note_answer, note_appeal
from warpbook_hub.outages import outages
from warpbook_hub.queue.entries import REGRADE_LANE, enqueue
from warpbook_hub.rules.lateness import HOUR_MS, extended_ms, last_ms
from warpbook_hub.texts import reason_of

_MOST = 1_000_000
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
    #: what the answer changed, in words
    outcome: str


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
    why = reason_of(reason)
    if points is not None and not (math.isfinite(points) and 0 <= points <= _MOST):
        raise BadRequest(f"Points are a number from 0 to {_MOST:,}.")
    if window_of(connection, publication_id, person) is None:
        raise NotFound("This lab is published for no section of this person.")
    query = select(func.coalesce(func.max(OVERRIDES.c.number), 0))
    number = connection.execute(query).scalar_one() + 1
    connection.execute(
        insert(OVERRIDES).values(
            id=new_id(),
            number=number,
            publication=publication_id,
            person=person,
            points=points,
            reason=why,
            made_by=actor,
            made_ms=now_ms,
        )
    )
    course_id = publication(connection, publication_id).course
    detail = {"publication": publication_id, "points": points, "reason": why}
    audit.note(connection, now_ms, actor, "points set", person, detail, course_id)


def overrides(
    connection: Connection, publication_id: str, person: str
) -> list[Override]:
    """Give all overrides ever made for a learner and a lab, the first first."""
    query = (
        select(*(OVERRIDES.c[name] for name in Override.__struct_fields__))
        .where(OVERRIDES.c.publication == publication_id, OVERRIDES.c.person == person)
        .order_by(OVERRIDES.c.number)
    )
    return [Override(**row) for row in connection.execute(query).mappings()]


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
    why = reason_of(reason)
    begun = 0
    for submission in submission_ids:
        if grade_again(connection, now_ms, submission) is not None:
            detail = {"reason": why}
            audit.note(connection, now_ms, actor, "regrade asked", submission, detail)
            begun += 1
    return begun


def grade_again(
    connection: Connection, now_ms: int, submission: str
) -> tuple[str, list[str]] | None:
    """Put a submission into the queue once more, without a line in the log.

    Returns:
        Its job, and those that were parked and are no more; None if it waits or runs.

    Raises:
        NotFound: there is no such submission.
    """
    query = select(JOBS.c.id, JOBS.c.run, JOBS.c.state)
    jobs = connection.execute(query.where(JOBS.c.submission == submission)).all()
    if not jobs:
        raise NotFound("There is no such submission.")
    if any(job.state in ("queued", "leased") for job in jobs):
        return None
    run = max(job.run for job in jobs) + 1
    begun = enqueue(connection, now_ms, submission, "cpu", run, REGRADE_LANE)
    # what its own learner had replaced counts again: an instructor wants it
    again = update(SUBMISSIONS).where(SUBMISSIONS.c.id == submission)
    connection.execute(again.values(replaced_ms=None))
    # a person has looked at what was parked
    parked = [job.id for job in jobs if job.state == "parked"]
    change = update(JOBS).where(JOBS.c.id.in_(parked))
    connection.execute(change.values(state="cancelled", finished_ms=now_ms))
    return begun, parked


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
    text = reason_of(note, "note")
    row = connection.execute(
        select(RESULTS.c.received_ms, COURSES.c.appeal_window_h)
        .join(
            SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == RESULTS.c.submission
        )
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
        .where(RESULTS.c.job == job, SUBMISSION_MEMBERS.c.person == person)
    ).first()
    if row is None:
        raise NotFound("There is no such result of yours.")
    if now_ms > appeals_until(connection, row.received_ms, row.appeal_window_h):
        raise Forbidden(
            f"Appeals are taken for {row.appeal_window_h} hours after a result."
        )
    query = select(APPEALS.c.id).where(APPEALS.c.job == job)
    if connection.execute(query).first() is not None:
        raise Conflict("There is an appeal about this result already.")
    named = new_id()
    connection.execute(
        insert(APPEALS).values(
            id=named,
            job=job,
            person=person,
            note=text,
            made_ms=now_ms,
            decision="",
            answer="",
            answered_by="",
        )
    )
    audit.note(connection, now_ms, person, "appeal made", named, {"job": job})
    note_appeal(connection, now_ms, job)
    return named


def appeals_until(connection: Connection, received_ms: int, window_h: int) -> int:
    """Give the last moment at which an appeal against a result is taken.

    Args:
        received_ms: when the result came.
        window_h: the course's.
    """
    date_ms = received_ms + window_h * HOUR_MS
    return last_ms(extended_ms(date_ms, outages(connection)))


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
    text = reason_of(answer, "answer")
    if decision not in ("upheld", "dismissed"):
        raise BadRequest("An appeal is upheld or dismissed.")
    of = APPEALS.c.id == appeal_id
    before = connection.execute(select(APPEALS.c.decision).where(of)).scalar()
    if before is None:
        raise NotFound("There is no such appeal.")
    if before:
        raise Conflict(f"This appeal was {before} before.")
    change = update(APPEALS).where(of)
    connection.execute(
        change.values(
            decision=decision, answer=text, answered_by=actor, answered_ms=now_ms
        )
    )
    detail = {"decision": decision}
    audit.note(connection, now_ms, actor, "appeal answered", appeal_id, detail)
    note_answer(connection, now_ms, appeal_id)


def appeals(
    connection: Connection,
    course_id: str,
    only_open: bool = False,
    person: str = "",
) -> list[Appeal]:
    """Give the appeals of a course, the first first.

    Args:
        only_open: those that nobody has answered.
        person: only theirs.
    """
    query = (
        select(APPEALS, RESULTS.c.submission)
        .join(RESULTS, RESULTS.c.job == APPEALS.c.job)
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .where(PUBLICATIONS.c.course == course_id)
        .order_by(APPEALS.c.made_ms, APPEALS.c.id)
    )
    if person:
        query = query.where(APPEALS.c.person == person)
    if only_open:
        query = query.where(APPEALS.c.decision == "")
    return [Appeal(**row) for row in connection.execute(query).mappings()]
