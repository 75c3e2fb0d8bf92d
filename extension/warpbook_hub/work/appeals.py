"""Appeals: a learner asks for a result to be looked at, and staff answer."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import (
    APPEALS,
    COURSES,
    PUBLICATIONS,
    RESULTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.errors import BadRequest, Conflict, Forbidden, NotFound
from warpbook_hub.ids import new_id
from warpbook_hub.notices.notes import note_answer, note_appeal
from warpbook_hub.outages import outages
from warpbook_hub.rules.lateness import HOUR_MS, extended_ms, last_ms
from warpbook_hub.texts import reason_of
from warpbook_hub.work.decisions import override, regrade
from warpbook_hub.work.marks import mark_of
from warpbook_hub.work.submissions import Submission, submission

Decision = Literal["", "upheld", "dismissed"]


class Change(Struct, frozen=True):
    """What a decision changes; nothing, by itself."""

    #: None: they are set to none
    points: float | None = None
    #: they may be more than could be had
    is_bonus: bool = False
    is_regraded: bool = False


NO_CHANGE = Change()


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
        select(COURSES.c.appeal_window_h)
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
    if now_ms > appeals_until(connection, job):
        raise Forbidden(
            f"Appeals are taken for {row.appeal_window_h} hours after a result, or its "
            "release."
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


def appeals_until(connection: Connection, job: str) -> int:
    """Give the last moment at which an appeal against a result is taken.

    The time for it begins with the result, or once its mark is released.

    Args:
        job: whose result it is.
    """
    row = connection.execute(
        select(
            RESULTS.c.received_ms, PUBLICATIONS.c.released_ms, COURSES.c.appeal_window_h
        )
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
        .where(RESULTS.c.job == job)
    ).one()
    shown_ms = max(row.received_ms, row.released_ms or 0)
    date_ms = shown_ms + row.appeal_window_h * HOUR_MS
    return last_ms(extended_ms(date_ms, outages(connection)))


def answer_appeal(
    connection: Connection,
    now_ms: int,
    actor: str,
    appeal_id: str,
    decision: Decision,
    answer: str,
    change: Change = NO_CHANGE,
) -> None:
    """Answer an appeal, and change what the decision changes, for all of a team.

    Raises:
        BadRequest: there is no answer, or what it changes can't be.
        NotFound: there is no such appeal.
        Conflict: it was answered before.
    """
    text = reason_of(answer, "answer")
    if decision not in ("upheld", "dismissed"):
        raise BadRequest("An appeal is upheld or dismissed.")
    if change != NO_CHANGE and decision == "dismissed":
        raise BadRequest("An appeal that is dismissed changes nothing: uphold it.")
    of = APPEALS.c.id == appeal_id
    query = (
        select(APPEALS.c.decision, APPEALS.c.person, RESULTS.c.submission)
        .join(RESULTS, RESULTS.c.job == APPEALS.c.job)
        .where(of)
    )
    row = connection.execute(query).first()
    if row is None:
        raise NotFound("There is no such appeal.")
    if row.decision:
        raise Conflict(f"This appeal was {row.decision} before.")
    work = submission(connection, row.submission)
    outcome = _changed(connection, now_ms, actor, row.person, work, text, change)
    connection.execute(
        update(APPEALS)
        .where(of)
        .values(
            decision=decision,
            answer=text,
            answered_by=actor,
            answered_ms=now_ms,
            outcome=outcome,
        )
    )
    detail = {"decision": decision, "outcome": outcome}
    audit.note(connection, now_ms, actor, "appeal answered", appeal_id, detail)
    note_answer(connection, now_ms, appeal_id)


def appeals(
    connection: Connection, course_id: str, only_open: bool = False, person: str = ""
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


def _changed(
    connection: Connection,
    now_ms: int,
    actor: str,
    person: str,
    work: Submission,
    reason: str,
    change: Change,
) -> str:
    """Make a change to the marks of a submission's members, and say which."""
    before = mark_of(connection, now_ms, work.publication, person)
    if change.is_regraded:
        if change.points is not None:
            raise BadRequest("Set the points, or have it graded again: not both.")
        begun = regrade(connection, now_ms, actor, [work.id], reason)
        return "graded again" if begun else "it is in the queue already"
    had = "none" if before.points is None else f"{before.points:g}"
    if change.points is None:
        return f"the points stay: {had} of {before.most_points:g}"
    for member in work.members:
        if window_of(connection, work.publication, member) is not None:
            override(
                connection,
                now_ms,
                actor,
                work.publication,
                member,
                change.points,
                reason,
                change.is_bonus,
            )
    return f"points set to {change.points:g} of {before.most_points:g}; before: {had}"
