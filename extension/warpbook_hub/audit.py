"""The audit log: who changed what, when and why. It is only added to.

The database refuses to change an entry. What it tells beside ids is kept apart, so that
a person can be erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select

from warpbook_hub.database.tables import (
    APPEALS,
    AUDIT,
    AUDIT_DETAILS,
    COURSES,
    JOBS,
    PUBLICATIONS,
    SUBMISSIONS,
)


class AuditEntry(Struct, frozen=True):
    """One line of the log."""

    number: int
    at_ms: int
    #: the id of a person, `hub`, or `grader <id>`
    actor: str
    #: such as "roster imported"
    action: str
    #: what it was done to: an id
    subject: str
    #: empty where it is of no one course
    course: str
    #: as JSON; empty where a person was erased
    detail: str


def note(
    connection: Connection,
    now_ms: int,
    actor: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
    course: str | None = None,
) -> None:
    """Add an entry, in the transaction of what it tells of.

    Args:
        connection: of that transaction.
        action: what was done.
        subject: to what: an id.
        detail: more of it.
        course: in which course; that of the subject if left out.
    """
    number = last_number(connection) + 1
    row = {
        "number": number,
        "at_ms": now_ms,
        "actor": actor,
        "action": action,
        "subject": subject,
        "course": _course_of(connection, subject) if course is None else course,
    }
    connection.execute(insert(AUDIT).values(**row))
    text = msgspec.json.encode(dict(detail or {}), order="sorted").decode()
    connection.execute(insert(AUDIT_DETAILS).values(number=number, detail=text))


def last_number(connection: Connection) -> int:
    """Give the number of the last entry; 0 where there is none."""
    newest = select(func.coalesce(func.max(AUDIT.c.number), 0))
    return int(connection.execute(newest).scalar_one())


def entries(
    connection: Connection,
    after: int = 0,
    most: int = 500,
    subject: str = "",
    course: str | None = None,
) -> list[AuditEntry]:
    """Give entries, the earliest first.

    Args:
        after: the number of an entry; those behind it are given.
        most: so many.
        subject: only those about it.
        course: only those of it; empty: only those of no one course, which are the
            hub's: its queue, graders and operators.
    """
    query = (
        select(AUDIT, func.coalesce(AUDIT_DETAILS.c.detail, "").label("detail"))
        .outerjoin(AUDIT_DETAILS, AUDIT_DETAILS.c.number == AUDIT.c.number)
        .where(AUDIT.c.number > after)
    )
    if subject:
        query = query.where(AUDIT.c.subject == subject)
    if course is not None:
        query = query.where(AUDIT.c.course == course)
    rows = connection.execute(query.order_by(AUDIT.c.number).limit(most)).mappings()
    return [AuditEntry(**row) for row in rows]


def forget(connection: Connection, subjects: Sequence[str]) -> None:
    """Erase the details of some entries; the entries stay."""
    of_them = select(AUDIT.c.number).where(AUDIT.c.subject.in_(subjects))
    which = AUDIT_DETAILS.c.number.in_(of_them)
    connection.execute(delete(AUDIT_DETAILS).where(which))


def _course_of(connection: Connection, subject: str) -> str:
    """Give the course of a publication, submission, job or appeal, or a course."""
    submission = select(SUBMISSIONS.c.publication).where(SUBMISSIONS.c.id == subject)
    job = select(JOBS.c.publication).where(JOBS.c.id == subject)
    appeal = (
        select(JOBS.c.publication)
        .join(APPEALS, APPEALS.c.job == JOBS.c.id)
        .where(APPEALS.c.id == subject)
    )
    query = select(PUBLICATIONS.c.course).where(
        (PUBLICATIONS.c.id == subject)
        | PUBLICATIONS.c.id.in_(submission)
        | PUBLICATIONS.c.id.in_(job)
        | PUBLICATIONS.c.id.in_(appeal)
    )
    course = connection.execute(query).scalar()
    if course is None:
        course = connection.execute(
            select(COURSES.c.id).where(COURSES.c.id == subject)
        ).scalar()
    return course or ""
