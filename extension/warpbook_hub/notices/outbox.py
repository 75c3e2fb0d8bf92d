"""Mails: what is to be sent, what was sent, and what the mail server answered.

A mail is a row before it is sent, and is sent until its row says that the server has
it. A kill at any time loses none. One that is sent once more, as the kill came between
the server's answer and the row, has the same Message-ID, by which it is recognized.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Select, and_, func, insert, or_, select, update

from warpbook_hub.database.tables import (
    MAILS,
    MEMBERSHIPS,
    NOTICE_CHOICES,
    NOTICES,
    PUBLICATIONS,
)
from warpbook_hub.ids import new_id
from warpbook_hub.notices.inbox import Notice, is_shown, notice_of, worded
from warpbook_monitors.plain_text import bounded

_DAY_MS = 86_400_000
#: what is older when a mail server is named is on the page alone
_OLDEST_MS = 7 * _DAY_MS
_FIRST_WAIT_MS, _MOST_WAIT_MS, _MOST_DOUBLINGS = 5_000, 3_600_000, 12
#: after so many tries, which take about two days
_MOST_TRIES = 60
_MOST_ANSWER = 500
_MOST_NOTICES = 100


class MailCounts(Struct, frozen=True):
    """How far mails are, for who operates the hub."""

    sent: int
    waiting: int
    failed: int
    #: the mail server's last refusal; empty without
    answer: str


class DueMail(Struct, frozen=True):
    """A mail that is to be sent now."""

    id: str
    address: str
    notices: tuple[Notice, ...]
    #: before this one
    tries: int


def waits(connection: Connection, now_ms: int) -> bool:
    """Whether `gather` would make a mail."""
    return connection.execute(_ungathered(now_ms).limit(1)).first() is not None


def gather(connection: Connection, now_ms: int) -> int:
    """Make mails of the notices that are due and unread; return how many."""
    made: dict[tuple[str, str], str] = {}
    for row in connection.execute(_ungathered(now_ms)).all():
        key = (row.person, row.course)
        if key not in made:
            made[key] = new_id()
            connection.execute(
                insert(MAILS).values(
                    id=made[key],
                    person=row.person,
                    course=row.course,
                    state="waiting",
                    tries=0,
                    not_before_ms=now_ms,
                    answer="",
                )
            )
        of = update(NOTICES).where(NOTICES.c.id == row.id)
        connection.execute(of.values(mail=made[key]))
    return len(made)


def _ungathered(now_ms: int) -> Select[Any]:
    return (
        select(
            NOTICES.c.id,
            NOTICES.c.person,
            NOTICES.c.course,
            NOTICE_CHOICES.c.address,
            MEMBERSHIPS.c.email,
        )
        .outerjoin(NOTICE_CHOICES, NOTICE_CHOICES.c.person == NOTICES.c.person)
        .outerjoin(
            MEMBERSHIPS,
            and_(
                MEMBERSHIPS.c.person == NOTICES.c.person,
                MEMBERSHIPS.c.course == NOTICES.c.course,
            ),
        )
        .where(
            NOTICES.c.mail_from_ms <= now_ms,
            NOTICES.c.mail.is_(None),
            NOTICES.c.read_ms.is_(None),
            or_(
                NOTICES.c.made_ms > now_ms - _OLDEST_MS,
                NOTICES.c.publication.in_(
                    select(PUBLICATIONS.c.id).where(
                        PUBLICATIONS.c.released_ms > now_ms - _OLDEST_MS
                    )
                ),
            ),
            or_(NOTICE_CHOICES.c.address != "", MEMBERSHIPS.c.email != ""),
            is_shown(),
        )
        .order_by(NOTICES.c.made_ms, NOTICES.c.id)
    )


def due(connection: Connection, now_ms: int, most: int) -> list[DueMail]:
    """Return mails that are to be sent now; what is hidden by now is left out."""
    rows = connection.execute(
        select(MAILS.c.id, MAILS.c.tries, NOTICE_CHOICES.c.address, MEMBERSHIPS.c.email)
        .outerjoin(NOTICE_CHOICES, NOTICE_CHOICES.c.person == MAILS.c.person)
        .outerjoin(
            MEMBERSHIPS,
            and_(
                MEMBERSHIPS.c.person == MAILS.c.person,
                MEMBERSHIPS.c.course == MAILS.c.course,
            ),
        )
        .where(MAILS.c.state == "waiting", MAILS.c.not_before_ms <= now_ms)
        # what has nothing to tell takes nobody's turn
        .where(
            select(NOTICES.c.id)
            .where(NOTICES.c.mail == MAILS.c.id, is_shown())
            .exists()
        )
        .order_by(MAILS.c.not_before_ms, MAILS.c.id)
        .limit(most)
    ).all()
    mails = []
    for row in rows:
        query = worded().where(NOTICES.c.mail == row.id, is_shown())
        told = connection.execute(query.limit(_MOST_NOTICES)).all()
        address = row.address or row.email or ""
        words = tuple(notice_of(one) for one in reversed(told))
        mails.append(DueMail(row.id, address, words, row.tries))
    return mails


def note_sent(connection: Connection, mail: str, answer: str) -> None:
    _note(connection, mail, state="sent", answer=bounded(answer, _MOST_ANSWER))


def note_refused(
    connection: Connection, now_ms: int, mail: DueMail, answer: str, is_final: bool
) -> None:
    """Note what came of a try: it is tried again, unless that is of no use."""
    tries = mail.tries + 1
    wait_ms = min(_FIRST_WAIT_MS << min(mail.tries, _MOST_DOUBLINGS), _MOST_WAIT_MS)
    _note(
        connection,
        mail.id,
        state="failed" if is_final or tries >= _MOST_TRIES else "waiting",
        tries=tries,
        not_before_ms=now_ms + wait_ms,
        answer=bounded(answer, _MOST_ANSWER),
    )


def counts(connection: Connection) -> MailCounts:
    """Return how many mails were sent, wait and failed."""
    query = select(MAILS.c.state, func.count()).group_by(MAILS.c.state)
    by_state = {state: count for state, count in connection.execute(query)}
    refused = (MAILS.c.state != "sent") & (MAILS.c.answer != "")
    last = select(MAILS.c.answer).where(refused).order_by(MAILS.c.not_before_ms.desc())
    return MailCounts(
        by_state.get("sent", 0),
        by_state.get("waiting", 0),
        by_state.get("failed", 0),
        connection.execute(last.limit(1)).scalar() or "",
    )


def forget(connection: Connection) -> None:
    """Send nothing of what waits: a backup does not know what was sent after it."""
    unsent = update(MAILS).where(MAILS.c.state == "waiting")
    answer = "a backup was put back; it is on the page alone"
    connection.execute(unsent.values(state="failed", answer=answer))
    connection.execute(update(NOTICES).values(mail_from_ms=None))


def _note(connection: Connection, mail: str, **values: object) -> None:
    waits = (MAILS.c.id == mail) & (MAILS.c.state == "waiting")
    connection.execute(update(MAILS).where(waits).values(**values))
