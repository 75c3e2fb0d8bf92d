"""Notes a notice where something happens, in the transaction of what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, Connection, Select, insert, select

from warpbook_hub.database.tables import (
    APPEALS,
    GRADERS,
    JOBS,
    MEMBERSHIPS,
    NOTICE_CHOICES,
    NOTICES,
    OPERATORS,
    PUBLICATIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.ids import new_id

Kind = Literal["result", "parked", "appeal", "answer", "feedback", "grader"]
#: of the hub's time zone: when a day's notices go out in one mail
DIGEST_HOUR = 17
#: a grader that has not answered for so long gets a notice; a restart is over by then
SILENT_MS = 600_000


def note_result(connection: Connection, now_ms: int, job: str) -> None:
    """Tell a submission's learners that it was graded."""
    members = (
        select(SUBMISSION_MEMBERS.c.person)
        .join(JOBS, JOBS.c.submission == SUBMISSION_MEMBERS.c.submission)
        .where(JOBS.c.id == job, outside_finals())
    )
    _note_of_job(connection, now_ms, "result", job, members)


def note_parked(connection: Connection, now_ms: int, job: str) -> None:
    """Tell instructors of a job that needs a person; once of each lab, until read."""
    lab = select(JOBS.c.publication).where(JOBS.c.id == job).scalar_subquery()
    told = select(NOTICES.c.person).where(
        NOTICES.c.kind == "parked",
        NOTICES.c.publication == lab,
        NOTICES.c.read_ms.is_(None),
    )
    instructors = _staff_of(job, MEMBERSHIPS.c.role == "instructor").where(
        MEMBERSHIPS.c.person.not_in(told)
    )
    _note_of_job(connection, now_ms, "parked", job, instructors)


def note_appeal(connection: Connection, now_ms: int, job: str) -> None:
    """Tell who may answer it of an appeal: instructors, and the section's assistants.

    Args:
        job: whose result it is about.
    """
    own = MEMBERSHIPS.alias()
    sections = (
        select(own.c.section)
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.person == own.c.person)
        .join(JOBS, JOBS.c.submission == SUBMISSION_MEMBERS.c.submission)
        .where(JOBS.c.id == job)
    )
    may_answer = (MEMBERSHIPS.c.role == "instructor") | (
        (MEMBERSHIPS.c.role == "assistant") & MEMBERSHIPS.c.section.in_(sections)
    )
    _note_of_job(connection, now_ms, "appeal", job, _staff_of(job, may_answer))


def note_answer(connection: Connection, now_ms: int, appeal: str) -> None:
    query = select(APPEALS.c.job, APPEALS.c.person).where(APPEALS.c.id == appeal)
    job, person = connection.execute(query).one()
    of_them = select(APPEALS.c.person).where(APPEALS.c.id == appeal)
    _note_of_job(connection, now_ms, "answer", job, of_them)


def note_feedback(connection: Connection, now_ms: int, submission: str) -> None:
    """Tell a submission's learners of comments and points; once, until read."""
    told = select(NOTICES.c.person).where(
        NOTICES.c.kind == "feedback",
        NOTICES.c.subject == submission,
        NOTICES.c.read_ms.is_(None),
    )
    learners = select(SUBMISSION_MEMBERS.c.person).where(
        SUBMISSION_MEMBERS.c.submission == submission,
        SUBMISSION_MEMBERS.c.person.not_in(told),
    )
    query = (
        select(PUBLICATIONS.c.course, PUBLICATIONS.c.id)
        .join(SUBMISSIONS, SUBMISSIONS.c.publication == PUBLICATIONS.c.id)
        .where(SUBMISSIONS.c.id == submission)
    )
    course, lab = connection.execute(query).one()
    people = connection.execute(learners).scalars().all()
    _note(connection, now_ms, "feedback", submission, people, course, lab)


def silent_graders(connection: Connection, now_ms: int) -> list[str]:
    """Return the active graders that do not answer and have no notice since."""
    told = select(NOTICES.c.id).where(
        NOTICES.c.kind == "grader",
        NOTICES.c.subject == GRADERS.c.id,
        NOTICES.c.made_ms > GRADERS.c.seen_ms,
    )
    query = select(GRADERS.c.id).where(
        # nobody to tell is nothing to write
        select(OPERATORS.c.person).exists(),
        GRADERS.c.state == "active",
        GRADERS.c.seen_ms < now_ms - SILENT_MS,
        ~told.exists(),
    )
    return list(connection.execute(query).scalars())


def note_silent_graders(connection: Connection, now_ms: int) -> None:
    """Tell the hub's operators of graders that are silent."""
    operators = connection.execute(select(OPERATORS.c.person)).scalars().all()
    for grader in silent_graders(connection, now_ms):
        _note(connection, now_ms, "grader", grader, operators, "", None)


def _staff_of(job: str, which: ColumnElement[bool]) -> Select[str]:
    return (
        select(MEMBERSHIPS.c.person)
        .join(PUBLICATIONS, PUBLICATIONS.c.course == MEMBERSHIPS.c.course)
        .join(JOBS, JOBS.c.publication == PUBLICATIONS.c.id)
        .where(JOBS.c.id == job, MEMBERSHIPS.c.hidden_ms.is_(None), which)
    )


def _note_of_job(
    connection: Connection, now_ms: int, kind: Kind, job: str, people: Select[str]
) -> None:
    query = (
        select(PUBLICATIONS.c.course, PUBLICATIONS.c.id)
        .join(JOBS, JOBS.c.publication == PUBLICATIONS.c.id)
        .where(JOBS.c.id == job)
    )
    course, lab = connection.execute(query).one()
    told = connection.execute(people).scalars().all()
    _note(connection, now_ms, kind, job, told, course, lab)


def _note(
    connection: Connection,
    now_ms: int,
    kind: Kind,
    subject: str,
    people: Iterable[str],
    course: str,
    lab: str | None,
) -> None:
    everybody = sorted(set(people))
    query = select(NOTICE_CHOICES.c.person, NOTICE_CHOICES.c.mail)
    rows = connection.execute(query.where(NOTICE_CHOICES.c.person.in_(everybody)))
    choices = {row.person: row.mail for row in rows}
    for person in everybody:
        connection.execute(
            insert(NOTICES).values(
                id=new_id(),
                person=person,
                course=course,
                publication=lab,
                kind=kind,
                subject=subject,
                made_ms=now_ms,
                mail_from_ms=mail_from_ms(now_ms, choices.get(person, "digest")),
            )
        )


def mail_from_ms(now_ms: int, choice: str) -> int | None:
    """Return from when a notice of now goes into a mail; None: into none."""
    if choice == "off":
        return None
    if choice == "once":
        return now_ms
    # without an offset: that of the next day may be another
    now = datetime.fromtimestamp(now_ms / 1000)
    at = now.replace(hour=DIGEST_HOUR, minute=0, second=0, microsecond=0)
    if at <= now:
        at += timedelta(days=1)
    return int(at.timestamp() * 1000)
