"""A person's notices in words, which of them are read, and what they want as mail."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from warpbook_hub.database.tables import (
    APPEALS,
    COURSES,
    GRADERS,
    JOBS,
    MAILS,
    MEMBERSHIPS,
    NOTICE_CHOICES,
    NOTICES,
    OPERATORS,
    PEOPLE,
    PUBLICATIONS,
    SUBMISSIONS,
)
from warpbook_hub.errors import BadRequest
from warpbook_hub.notices.notes import mail_from_ms
from warpbook_monitors.plain_text import bounded

#: off; one mail a day; at once
Choice = Literal["off", "digest", "once"]
MOST_SHOWN = 200
_ADDRESS = re.compile(r"[!-~]{1,64}@[A-Za-z0-9.-]{1,190}")
#: what would make another address of it, or several
_SIGNS = re.compile(r"[,;:<>()\[\]\\\"]")
_PARKED = "Submissions of {title} can't be graded, and wait for you: {note}"


class Notice(Struct, frozen=True):
    """A notice in words; what it says is as it is now."""

    id: str
    course: str
    #: the course's
    title: str
    kind: str
    words: str
    #: of the page that has more, below the service's address
    path: str
    made_ms: int
    is_read: bool


class NoticeChoice(Struct, frozen=True):
    """What a person wants as mail."""

    mail: Choice = "digest"
    #: empty: that of each course's roster
    address: str = ""


def is_shown() -> ColumnElement[bool]:
    """Leave out of `NOTICES` what is of a mark that is hidden, until it is released."""
    hidden = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.hidden_ms.is_not(None))
    return or_(
        NOTICES.c.kind.not_in(("result", "answer", "feedback")),
        NOTICES.c.publication.not_in(hidden),
    )


def notices(connection: Connection, person: str) -> list[Notice]:
    """Return the newest notices of a person, the newest first."""
    query = worded().where(NOTICES.c.person == person, is_shown())
    rows = connection.execute(query.limit(MOST_SHOWN)).all()
    return [notice_of(row) for row in rows]


def worded() -> Select[Any]:
    """Return a query of notices, the newest first, with what `notice_of` takes."""
    return (
        select(
            NOTICES,
            func.coalesce(COURSES.c.title, "").label("course_title"),
            PUBLICATIONS.c.title,
            JOBS.c.note,
            SUBMISSIONS.c.id.label("submission"),
            SUBMISSIONS.c.number,
            PEOPLE.c.username,
            APPEALS.c.decision,
            GRADERS.c.name.label("grader"),
        )
        .outerjoin(COURSES, COURSES.c.id == NOTICES.c.course)
        .outerjoin(PUBLICATIONS, PUBLICATIONS.c.id == NOTICES.c.publication)
        .outerjoin(JOBS, JOBS.c.id == NOTICES.c.subject)
        .outerjoin(
            SUBMISSIONS,
            # what is about no job may be about a submission
            SUBMISSIONS.c.id == func.coalesce(JOBS.c.submission, NOTICES.c.subject),
        )
        .outerjoin(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
        .outerjoin(APPEALS, APPEALS.c.job == JOBS.c.id)
        .outerjoin(GRADERS, GRADERS.c.id == NOTICES.c.subject)
        .order_by(NOTICES.c.made_ms.desc(), NOTICES.c.id)
    )


def notice_of(row: Any) -> Notice:
    """Word a row of `worded`."""
    work = f"{row.number} of {row.title}"
    page = f"courses/{row.course}/submissions/{row.submission}"
    words, path = {
        "result": (f"Submission {work} was graded.", page),
        "parked": (
            _PARKED.format(title=row.title, note=row.note),
            f"courses/{row.course}/queue",
        ),
        "appeal": (
            f"{row.username} appeals against the result of submission {work}.",
            f"courses/{row.course}/appeals",
        ),
        "answer": (f"Your appeal about submission {work} was {row.decision}.", page),
        "feedback": (f"There are comments or points on submission {work}.", page),
        "grader": (f"The grader {row.grader} does not answer any more.", "hub"),
    }[row.kind]
    return Notice(
        row.id,
        row.course,
        row.course_title,
        row.kind,
        bounded(words, 300),
        path,
        row.made_ms,
        row.read_ms is not None,
    )


def unread(connection: Connection, username: str) -> int:
    """Return how many notices a person has not read."""
    return unread_of_all(connection, PEOPLE.c.username == username).get(username, 0)


def unread_of_all(
    connection: Connection, which: ColumnElement[bool] | None = None
) -> dict[str, int]:
    """Return how many notices people have not read, by user name; none is left out."""
    query = (
        select(PEOPLE.c.username, func.count(NOTICES.c.id))
        .join(NOTICES, NOTICES.c.person == PEOPLE.c.id)
        .where(NOTICES.c.read_ms.is_(None), is_shown())
        .group_by(PEOPLE.c.username)
    )
    if which is not None:
        query = query.where(which)
    return {username: count for username, count in connection.execute(query)}


def mark_read(connection: Connection, now_ms: int, person: str, up_to_ms: int) -> int:
    """Note that a person has read what was noted by then; return how many."""
    change = update(NOTICES).where(
        NOTICES.c.person == person,
        NOTICES.c.read_ms.is_(None),
        NOTICES.c.made_ms <= up_to_ms,
        is_shown(),
    )
    return connection.execute(change.values(read_ms=now_ms)).rowcount


def choice_of(connection: Connection, person: str) -> NoticeChoice:
    query = select(NOTICE_CHOICES.c.mail, NOTICE_CHOICES.c.address)
    row = connection.execute(query.where(NOTICE_CHOICES.c.person == person)).first()
    return NoticeChoice() if row is None else NoticeChoice(row.mail, row.address)


def may_name_address(connection: Connection, person: str) -> bool:
    """Whether mail goes where they say: staff are on no roster."""
    staff = select(MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.role != "learner", MEMBERSHIPS.c.hidden_ms.is_(None)
    )
    both = staff.union(select(OPERATORS.c.person)).subquery()
    query = select(both.c.person).where(both.c.person == person)
    return connection.execute(query).first() is not None


def choose(
    connection: Connection, now_ms: int, person: str, choice: NoticeChoice
) -> None:
    """Note what a person wants as mail; it holds for what waits, too.

    Raises:
        BadRequest: the address can't be used, or they are on a roster, which has it.
    """
    address = choice.address.strip()
    if address and not is_address(address):
        raise BadRequest("This is no address for mail, such as ada@example.org.")
    if address and not may_name_address(connection, person):
        raise BadRequest("Your mail goes to the address that the roster has of you.")
    key = NOTICE_CHOICES.c.person == person
    connection.execute(delete(NOTICE_CHOICES).where(key))
    row = {"person": person, "mail": choice.mail, "address": address}
    connection.execute(insert(NOTICE_CHOICES).values(**row))
    waits = (NOTICES.c.person == person) & NOTICES.c.mail.is_(None)
    waits &= NOTICES.c.mail_from_ms.is_not(None)
    from_ms = mail_from_ms(now_ms, choice.mail)
    connection.execute(update(NOTICES).where(waits).values(mail_from_ms=from_ms))
    if choice.mail == "off":
        unsent = (MAILS.c.person == person) & (MAILS.c.state == "waiting")
        off = {"state": "failed", "answer": "mail was turned off"}
        connection.execute(update(MAILS).where(unsent).values(**off))


def is_address(text: str) -> bool:
    """Whether a text is one plain address: a roster's may be anything."""
    return _ADDRESS.fullmatch(text) is not None and _SIGNS.search(text) is None
