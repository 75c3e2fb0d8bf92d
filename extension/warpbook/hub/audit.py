"""The audit log: who changed what, when and why. It is only added to.

Each entry bears a digest of all before it. What it tells beside ids is kept apart, so
that a person can be erased and the rest still be proven.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from warpbook.hub.database.tables import (
    APPEALS,
    AUDIT,
    AUDIT_DETAILS,
    COURSES,
    JOBS,
    PUBLICATIONS,
    SUBMISSIONS,
)

_FIELDS = ("number", "at_ms", "actor", "action", "subject", "course", "detail_digest")
#: of an entry that nothing is before
_BEGINNING = ""


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
    detail_digest: str
    #: of this entry and all before it
    digest: str


class AuditHead(Struct, frozen=True):
    """The last entry of the log at some moment; where none was, number 0."""

    number: int = 0
    digest: str = _BEGINNING


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
        now_ms: the server's time.
        actor: who did it.
        action: what was done.
        subject: to what: an id.
        detail: more of it.
        course: in which course; that of the subject if left out.
    """
    last = head(connection)
    text = msgspec.json.encode(dict(detail or {}), order="sorted").decode()
    salt = secrets.token_hex(8)
    row = {
        "number": last.number + 1,
        "at_ms": now_ms,
        "actor": actor,
        "action": action,
        "subject": subject,
        "course": _course_of(connection, subject) if course is None else course,
        "detail_digest": _detail_digest(salt, text),
    }
    connection.execute(insert(AUDIT).values(**row, digest=_digest(last.digest, row)))
    details = {"number": last.number + 1, "salt": salt, "detail": text}
    connection.execute(insert(AUDIT_DETAILS).values(**details))


def entries(
    connection: Connection,
    after: int = 0,
    most: int = 500,
    subject: str = "",
    course: str = "",
) -> list[AuditEntry]:
    """Give entries, the earliest first.

    Args:
        connection: of a transaction.
        after: the number of an entry; those behind it are given.
        most: so many.
        subject: only those about it.
        course: only those of it, and those of the hub: its queue and graders.
    """
    query = (
        select(AUDIT, func.coalesce(AUDIT_DETAILS.c.detail, "").label("detail"))
        .outerjoin(AUDIT_DETAILS, AUDIT_DETAILS.c.number == AUDIT.c.number)
        .where(AUDIT.c.number > after)
    )
    if subject:
        query = query.where(AUDIT.c.subject == subject)
    if course:
        query = query.where(AUDIT.c.course.in_((course, "")))
    rows = connection.execute(query.order_by(AUDIT.c.number).limit(most)).mappings()
    return [AuditEntry(**row) for row in rows]


def first_forged(connection: Connection) -> int | None:
    """Give the first entry that does not follow from those before; None if all do."""
    query = (
        select(AUDIT, AUDIT_DETAILS.c.salt, AUDIT_DETAILS.c.detail)
        .outerjoin(AUDIT_DETAILS, AUDIT_DETAILS.c.number == AUDIT.c.number)
        .order_by(AUDIT.c.number)
    )
    number, digest = 0, _BEGINNING
    for row in connection.execute(query).mappings():
        is_next = row["number"] == number + 1 and row["digest"] == _digest(digest, row)
        is_told = row["detail"] is None or row["detail_digest"] == _detail_digest(
            row["salt"], row["detail"]
        )
        if not (is_next and is_told):
            return int(row["number"])
        number, digest = row["number"], row["digest"]
    return None


def head(connection: Connection) -> AuditHead:
    """Give the last entry."""
    query = select(AUDIT.c.number, AUDIT.c.digest).order_by(AUDIT.c.number.desc())
    last = connection.execute(query.limit(1)).first()
    return AuditHead() if last is None else AuditHead(last.number, last.digest)


def digest_of(connection: Connection, number: int) -> str:
    """Give the digest of an entry; empty where there is none."""
    query = select(AUDIT.c.digest).where(AUDIT.c.number == number)
    return connection.execute(query).scalar() or _BEGINNING


def problem(connection: Connection, kept: AuditHead | None) -> str:
    """Say what is wrong with the log; nothing if all of it is there and fits.

    Args:
        connection: of a transaction.
        kept: its head at an earlier moment, from a place outside of the database. The
            log by itself can't tell that its last entries were removed.
    """
    forged = first_forged(connection)
    if forged is not None:
        return (
            f"Entry {forged} of the audit log does not follow from those before it: "
            "somebody changed the database by hand."
        )
    if kept is None or digest_of(connection, kept.number) == kept.digest:
        return ""
    number = head(connection).number
    if number < kept.number:
        return (
            f"The audit log ends with entry {number:,}, and had {kept.number:,} "
            "entries before: the last ones were removed."
        )
    return (
        f"Entry {kept.number:,} of the audit log is another than it was before: "
        "entries were removed and others written in their place."
    )


def forget(connection: Connection, subjects: Sequence[str]) -> None:
    """Erase what is told of some entries; that they are there can still be proven."""
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


def _digest(before: str, row: Mapping[str, Any] | RowMapping) -> str:
    fields = [row[name] for name in _FIELDS]
    text = msgspec.json.encode([before, *fields])
    return sha256(text).hexdigest()


def _detail_digest(salt: str, detail: str) -> str:
    return sha256(f"{salt}{detail}".encode()).hexdigest()
