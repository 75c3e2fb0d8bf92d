"""What learners hand in: kept, and acknowledged with a receipt."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Connection, Row, func, insert, select

from warpbook.hub_protocol import AiLog, SubmissionReceipt
from warpbook_hub.course.publications import Publication, publication
from warpbook_hub.course.windows import window_of
from warpbook_hub.database import settings
from warpbook_hub.database.tables import (
    MEMBERSHIPS,
    PEOPLE,
    PUBLICATIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    TEAM_MEMBERS,
)
from warpbook_hub.errors import (
    BadRequest,
    Conflict,
    NoAttemptLeft,
    NotFound,
    NotOpen,
    StillPending,
    TooManyRequests,
)
from warpbook_hub.ids import is_id, new_id
from warpbook_hub.queue.entries import (
    LEARNER_LANE,
    STAFF_LANE,
    enqueue,
    replace_waiting,
    waiting_submission,
)
from warpbook_hub.rules.lateness import DAY_H, HOUR_MS, late_hours
from warpbook_hub.work.results import attempts_used
from warpbook_labs.errors import BadSource
from warpbook_labs.lab.sources import refuse_unfit

#: of one person, for all labs together
MOST_PER_HOUR = 60
#: of sources, so that nobody fills the disk on which all hand in
MOST_BYTES_PER_DAY = 8 << 20
#: whole numbers of a database have 64 bits with a sign
SEED_BITS = 62


class Submission(Struct, frozen=True):
    """What was handed in."""

    id: str
    publication: str
    person: str
    #: whose work it is
    members: tuple[str, ...]
    number: int
    received_ms: int
    source_digest: str
    source: str
    is_replaced: bool


def receive(
    connection: Connection,
    now_ms: int,
    publication_id: str,
    person: str,
    source: str,
    request: str = "",
    replace: bool = False,
    ai_log: AiLog | None = None,
) -> SubmissionReceipt:
    """Keep a submission and put it into the queue.

    Args:
        connection: of a transaction; nothing is acknowledged before it is committed.
        person: who submits it, for themselves or their team.
        source: what they wrote.
        request: drawn by the client; the same one again gives the same receipt.
        replace: put it in the place of a submission that still waits.
        ai_log: what AI assistants asked, as their program tells; None: it tells none.

    Raises:
        BadRequest: the source is no text that a grader could take.
        NotFound: there is no such lab for them.
        NotOpen: the lab takes no submissions from them now.
        NoAttemptLeft: they have used all attempts.
        StillPending: one waits already, and `replace` is not asked.
        TooManyRequests: they submit more often than anybody writes.
        Conflict: `request` was used for another source or lab.
    """
    if request and not is_id(request):
        raise BadRequest("The number of a request has up to 64 letters and digits.")
    check_source(source)
    digest = digest_of(source)
    if request:
        before = _of_request(connection, person, request)
        if before is not None:
            if (before.publication, before.source_digest) != (publication_id, digest):
                raise Conflict("This request has handed in something else before.")
            return receipt(connection, before.id)
    lab = publication(connection, publication_id)
    lane = _lane(connection, now_ms, lab, person)
    party, people = _party(connection, lab, person)
    _slow_down(connection, now_ms, person)
    waiting = waiting_submission(connection, publication_id, party)
    if waiting is not None:
        if not replace:
            raise StillPending(waiting)
        replace_waiting(connection, now_ms, publication_id, party)
    number = _next_number(connection, lab, party)
    row = {
        "id": new_id(),
        "publication": publication_id,
        "person": person,
        "party": party,
        "number": number,
        "request": request or new_id(),
        "received_ms": now_ms,
        "source_digest": digest,
        "source_bytes": len(source.encode()),
        "source": source,
        "seed": secrets.randbits(SEED_BITS),
        "ai_log": None if ai_log is None else msgspec.json.encode(ai_log).decode(),
    }
    connection.execute(insert(SUBMISSIONS).values(**row))
    connection.execute(
        insert(SUBMISSION_MEMBERS),
        [{"submission": row["id"], "person": member} for member in people],
    )
    enqueue(connection, now_ms, str(row["id"]), "cpu", lane=lane)
    return receipt(connection, str(row["id"]))


def receipt(connection: Connection, submission_id: str) -> SubmissionReceipt:
    """Give the receipt of a submission once more.

    Raises:
        NotFound: there is none.
    """
    query = (
        select(SUBMISSIONS, PEOPLE.c.username)
        .join(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
        .where(SUBMISSIONS.c.id == submission_id)
    )
    row = connection.execute(query).first()
    if row is None:
        raise _none()
    window = window_of(connection, row.publication, row.person)
    unsigned = SubmissionReceipt(
        row.id,
        row.publication,
        row.number,
        row.received_ms,
        row.source_digest,
        0 if window is None else late_hours(row.received_ms, window),
        "",
        0 if window is None else window.extended_ms,
    )
    signature = _signature(connection, unsigned, row.username)
    return structs.replace(unsigned, signature=signature)


def is_genuine(connection: Connection, shown: SubmissionReceipt, username: str) -> bool:
    """Whether this hub wrote a receipt for somebody, also where the work is lost.

    Args:
        shown: the receipt.
        username: who handed in, as they say: another's receipt is none of theirs.
    """
    written = shown.signature.encode(errors="replace")
    signature = _signature(connection, shown, username)
    return hmac.compare_digest(signature.encode(), written)


def submission(connection: Connection, submission_id: str) -> Submission:
    """Give what was handed in; who may see it is asked of `rules.visibility`.

    Raises:
        NotFound: there is none.
    """
    submissions = _submissions(connection, SUBMISSIONS.c.id == submission_id)
    if not submissions:
        raise _none()
    return submissions[0]


def reported_ai_log(connection: Connection, submission_id: str) -> AiLog | None:
    """Give what AI assistants asked, as the learner's program told; None: nothing."""
    query = select(SUBMISSIONS.c.ai_log).where(SUBMISSIONS.c.id == submission_id)
    told = connection.execute(query).scalar()
    return None if told is None else msgspec.json.decode(told, type=AiLog)


def submissions_of(
    connection: Connection, publication_id: str, person: str
) -> list[Submission]:
    """Give all that a learner and their team handed in for a lab, the first first."""
    theirs = select(SUBMISSION_MEMBERS.c.submission).where(
        SUBMISSION_MEMBERS.c.person == person
    )
    return _submissions(
        connection,
        (SUBMISSIONS.c.publication == publication_id) & SUBMISSIONS.c.id.in_(theirs),
    )


def sections_of(
    connection: Connection, submission_ids: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Give the sections of all whose work some submissions are, by submission."""
    query = (
        select(SUBMISSIONS.c.id, MEMBERSHIPS.c.section)
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(
            MEMBERSHIPS,
            (MEMBERSHIPS.c.person == SUBMISSION_MEMBERS.c.person)
            & (MEMBERSHIPS.c.course == PUBLICATIONS.c.course),
        )
        .where(SUBMISSIONS.c.id.in_(list(submission_ids)))
    )
    sections: dict[str, set[str]] = {name: set() for name in submission_ids}
    for submission_id, section in connection.execute(query):
        sections[submission_id].add(section)
    return {name: frozenset(of_work) for name, of_work in sections.items()}


def _none() -> NotFound:
    return NotFound("There is no such submission.")


def _of_request(connection: Connection, person: str, request: str) -> Row[Any] | None:
    query = select(SUBMISSIONS).where(
        SUBMISSIONS.c.person == person, SUBMISSIONS.c.request == request
    )
    return connection.execute(query).first()


def _lane(connection: Connection, now_ms: int, lab: Publication, person: str) -> int:
    """Give the lane of a person, if the lab takes submissions of them now."""
    query = select(MEMBERSHIPS.c.role, MEMBERSHIPS.c.hidden_ms).where(
        MEMBERSHIPS.c.course == lab.course, MEMBERSHIPS.c.person == person
    )
    member = connection.execute(query).first()
    if member is None:
        raise NotFound("You are not a member of this course.")
    if not lab.takes_submissions:
        raise NotOpen("Nothing is handed in here: its marks come from nbgrader.")
    if member.role != "learner":
        return STAFF_LANE
    window = window_of(connection, lab.id, person)
    if window is None or now_ms < window.opens_ms:
        raise NotFound("There is no such lab in this course.")
    if member.hidden_ms is not None:
        raise NotOpen("You are no more on the roster of this course.")
    if lab.is_withdrawn:
        raise NotOpen("This lab was taken off the list.")
    if not window.is_open(now_ms):
        raise NotOpen(
            "This lab is closed. Ask your instructor if you need an extension."
        )
    return LEARNER_LANE


def _party(
    connection: Connection, lab: Publication, person: str
) -> tuple[str, tuple[str, ...]]:
    """Tell whose submission it is: a team's, or one person's."""
    team = None
    if lab.is_team_work:
        query = select(TEAM_MEMBERS.c.team).where(
            TEAM_MEMBERS.c.course == lab.course, TEAM_MEMBERS.c.person == person
        )
        team = connection.execute(query).scalar()
    if team is None:
        return f"person:{person}", (person,)
    query = (
        select(TEAM_MEMBERS.c.person)
        .join(
            MEMBERSHIPS,
            (MEMBERSHIPS.c.person == TEAM_MEMBERS.c.person)
            & (MEMBERSHIPS.c.course == TEAM_MEMBERS.c.course),
        )
        .where(TEAM_MEMBERS.c.team == team, MEMBERSHIPS.c.hidden_ms.is_(None))
    )
    people = {person, *connection.execute(query).scalars()}
    return f"team:{team}", tuple(sorted(people))


def _slow_down(connection: Connection, now_ms: int, person: str) -> None:
    """Refuse who hands in more often than anybody writes."""
    query = select(func.count()).where(
        SUBMISSIONS.c.person == person, SUBMISSIONS.c.received_ms > now_ms - HOUR_MS
    )
    if connection.execute(query).scalar_one() >= MOST_PER_HOUR:
        raise TooManyRequests(
            f"You have submitted {MOST_PER_HOUR} times within an hour. Wait a while."
        )
    query = select(func.coalesce(func.sum(SUBMISSIONS.c.source_bytes), 0)).where(
        SUBMISSIONS.c.person == person,
        SUBMISSIONS.c.received_ms > now_ms - DAY_H * HOUR_MS,
    )
    if connection.execute(query).scalar_one() >= MOST_BYTES_PER_DAY:
        raise TooManyRequests(
            f"You have submitted {MOST_BYTES_PER_DAY >> 20} MiB within a day. Wait a "
            "while, or send less that is no code."
        )


def _next_number(connection: Connection, lab: Publication, party: str) -> int:
    of = (SUBMISSIONS.c.publication == lab.id) & (SUBMISSIONS.c.party == party)
    most = lab.most_attempts
    if most is not None and attempts_used(connection, of) >= most:
        raise NoAttemptLeft(f"This lab allows {most:,} attempts, and they are used.")
    number = select(func.coalesce(func.max(SUBMISSIONS.c.number), 0)).where(of)
    return int(connection.execute(number).scalar_one()) + 1


def _signature(connection: Connection, shown: SubmissionReceipt, username: str) -> str:
    key = settings.get(connection, settings.RECEIPT_KEY) or ""
    # how late it is may change with an extension
    unsigned = structs.replace(shown, signature="", late_hours=0, extended_ms=0)
    text = msgspec.json.encode((username, unsigned))
    return hmac.new(bytes.fromhex(key), text, sha256).hexdigest()


def _submissions(
    connection: Connection, which: ColumnElement[bool]
) -> list[Submission]:
    query = select(SUBMISSIONS).where(which)
    query = query.order_by(SUBMISSIONS.c.received_ms, SUBMISSIONS.c.number)
    rows = connection.execute(query).all()
    people: dict[str, list[str]] = {row.id: [] for row in rows}
    members = select(SUBMISSION_MEMBERS).where(
        SUBMISSION_MEMBERS.c.submission.in_(list(people))
    )
    for member in connection.execute(members.order_by(SUBMISSION_MEMBERS.c.person)):
        people[member.submission].append(member.person)
    return [
        Submission(
            row.id,
            row.publication,
            row.person,
            tuple(people[row.id]),
            row.number,
            row.received_ms,
            row.source_digest,
            row.source,
            row.replaced_ms is not None,
        )
        for row in rows
    ]


def check_source(source: str) -> None:
    """Refuse a source that no grader could take.

    Raises:
        BadRequest: it is too large, empty, or no text.
    """
    try:
        refuse_unfit(source)
    except BadSource as problem:
        raise BadRequest(str(problem)) from None


def digest_of(source: str) -> str:
    """Compute what tells a source from another: SHA-256 in UTF-8."""
    return sha256(source.encode()).hexdigest()
