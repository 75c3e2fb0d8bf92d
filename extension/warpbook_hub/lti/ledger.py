"""The ledger of scores: what is to be sent, what was sent, and the answers.

It decides: a row is there before its score is sent, and a score is sent until its
row says that the platform has it. A kill at any time loses none; one that is sent once
more bears the same time, and changes nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, case, func, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.courses import members
from warpbook_hub.database.tables import LTI_PEOPLE, LTI_SCORES, PEOPLE, PUBLICATIONS
from warpbook_hub.ids import new_id
from warpbook_hub.rules.totals import shown_to_learner
from warpbook_hub.work.marks import all_marks
from warpbook_monitors.plain_text import bounded

_MOST_ANSWER = 500
#: platforms compare whole seconds
_LATER_MS = 1_000
_FIRST_WAIT_S = 2.0
_MOST_WAIT_S = 3600.0
_MOST_DOUBLINGS = 12
_MOST_LISTED = 500


class Change(NamedTuple):
    """A mark that differs from the score that was sent last."""

    publication: str
    person: str
    #: None clears what was sent before
    points: float | None
    most_points: float


class _Last(NamedTuple):
    publication: str
    person: str
    points: float | None
    most_points: float
    state: str


class DueScore(Struct, frozen=True):
    """A score that is to be sent now."""

    id: str
    publication: str
    #: of the person, at the platform
    subject: str
    title: str
    points: float | None
    most_points: float
    stamped_ms: int
    #: before this one
    tries: int


class LedgerRow(Struct, frozen=True):
    """A score that the platform does not have yet."""

    id: str
    publication: str
    title: str
    username: str
    points: float | None
    most_points: float
    #: waiting or failed
    state: str
    tries: int
    not_before_ms: int
    answered_ms: int | None
    answer: str


class Ledger(Struct, frozen=True):
    """How far the scores of a course are."""

    #: of each person and lab, the last one that was taken counts once
    sent: int
    waiting: int
    failed: int
    #: learners with a mark whom the platform has not named
    unknown: tuple[str, ...]
    #: what did not go through at first, oldest first
    problems: tuple[LedgerRow, ...]


def changes(
    connection: Connection, now_ms: int, course_id: str, issuer: str
) -> list[Change]:
    """Give the marks that differ from the scores that were sent last, or wait."""
    known = _known(connection, issuer)
    sent = {(row.publication, row.person): row for row in _last(connection, course_id)}
    changed = []
    for change in _graded(connection, now_ms, course_id):
        last = sent.get((change.publication, change.person))
        # it is replaced where it was sent to another course
        is_current = (
            last is not None
            and last.state != "replaced"
            and (last.points, last.most_points) == change[2:]
        )
        if change.person in known and not is_current:
            changed.append(change)
    return changed


def add(connection: Connection, now_ms: int, changed: Sequence[Change]) -> None:
    """Write down scores that are to be sent; those before are not sent any more."""
    for change in changed:
        of = (LTI_SCORES.c.publication == change.publication) & (
            LTI_SCORES.c.person == change.person
        )
        query = select(
            func.max(LTI_SCORES.c.number), func.max(LTI_SCORES.c.stamped_ms)
        ).where(of)
        number, stamped_ms = connection.execute(query).one()
        pending = LTI_SCORES.c.state.in_(("waiting", "failed"))
        connection.execute(
            update(LTI_SCORES).where(of, pending).values(state="replaced")
        )
        row = {
            "id": new_id(),
            **change._asdict(),
            "number": (number or 0) + 1,
            # a platform takes only what is later than what it has
            "stamped_ms": max(now_ms, (stamped_ms or 0) + _LATER_MS),
            "state": "waiting",
            "tries": 0,
            "not_before_ms": now_ms,
            "answer": "",
        }
        connection.execute(insert(LTI_SCORES).values(**row))


def due(
    connection: Connection, now_ms: int, course_id: str, issuer: str, most: int
) -> list[DueScore]:
    """Give what is to be sent now, what waits longest first."""
    query = (
        select(
            LTI_SCORES.c.id,
            LTI_SCORES.c.publication,
            LTI_PEOPLE.c.subject,
            PUBLICATIONS.c.title,
            LTI_SCORES.c.points,
            LTI_SCORES.c.most_points,
            LTI_SCORES.c.stamped_ms,
            LTI_SCORES.c.tries,
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == LTI_SCORES.c.publication)
        .join(
            LTI_PEOPLE,
            (LTI_PEOPLE.c.person == LTI_SCORES.c.person)
            & (LTI_PEOPLE.c.issuer == issuer),
        )
        .where(
            PUBLICATIONS.c.course == course_id,
            LTI_SCORES.c.state == "waiting",
            LTI_SCORES.c.not_before_ms <= now_ms,
        )
        .order_by(LTI_SCORES.c.not_before_ms, LTI_SCORES.c.id)
        .limit(most)
    )
    return [DueScore(**row) for row in connection.execute(query).mappings()]


def begin(connection: Connection, score: str) -> bool:
    """Count a try before it is made; whether the score is still to be sent."""
    waiting = (LTI_SCORES.c.id == score) & (LTI_SCORES.c.state == "waiting")
    tried = update(LTI_SCORES).where(waiting).values(tries=LTI_SCORES.c.tries + 1)
    return connection.execute(tried).rowcount > 0


def note_taken(connection: Connection, now_ms: int, score: str, answer: str) -> None:
    _note(connection, now_ms, score, {"state": "sent", "answer": answer})


def note_refused(
    connection: Connection,
    now_ms: int,
    score: DueScore,
    answer: str,
    is_temporary: bool,
    retry_after_s: float,
) -> None:
    """Note a refusal; it is sent again by itself only where that may help."""
    wait_s = _FIRST_WAIT_S * 2 ** min(score.tries, _MOST_DOUBLINGS)
    wait_s = min(max(wait_s, retry_after_s), _MOST_WAIT_S)
    values = {
        "state": "waiting" if is_temporary else "failed",
        "not_before_ms": now_ms + int(wait_s * 1000),
        "answer": answer,
    }
    _note(connection, now_ms, score.id, values)


def send_again(connection: Connection, now_ms: int, actor: str, course_id: str) -> int:
    """Have all that did not go through sent now; give how many.

    Doing it twice, or for scores that the platform has, changes nothing there. What
    failed was not taken: it is sent with a new time, in the place of a later grade.
    """
    of_course = LTI_SCORES.c.publication.in_(
        select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    )
    later_ms = LTI_SCORES.c.stamped_ms + _LATER_MS
    connection.execute(
        update(LTI_SCORES)
        .where(of_course, LTI_SCORES.c.state == "failed")
        .values(tries=0, stamped_ms=case((later_ms < now_ms, now_ms), else_=later_ms))
    )
    pending = LTI_SCORES.c.state.in_(("waiting", "failed"))
    changed = connection.execute(
        update(LTI_SCORES)
        .where(of_course, pending)
        .values(state="waiting", not_before_ms=now_ms)
    ).rowcount
    if changed:
        detail = {"scores": changed}
        audit.note(connection, now_ms, actor, "scores sent again", course_id, detail)
    return changed


def ledger(connection: Connection, now_ms: int, course_id: str, issuer: str) -> Ledger:
    """Tell how far the scores of a course are, and what did not go through."""
    states = [row.state for row in _last(connection, course_id)]
    known = _known(connection, issuer)
    names = {one.person: one.username for one in members(connection, course_id)}
    unknown = {
        names[change.person]
        for change in _graded(connection, now_ms, course_id)
        if change.person not in known
    }
    query = (
        select(
            LTI_SCORES.c.id,
            LTI_SCORES.c.publication,
            PUBLICATIONS.c.title,
            PEOPLE.c.username,
            LTI_SCORES.c.points,
            LTI_SCORES.c.most_points,
            LTI_SCORES.c.state,
            LTI_SCORES.c.tries,
            LTI_SCORES.c.not_before_ms,
            LTI_SCORES.c.answered_ms,
            LTI_SCORES.c.answer,
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == LTI_SCORES.c.publication)
        .join(PEOPLE, PEOPLE.c.id == LTI_SCORES.c.person)
        .where(
            PUBLICATIONS.c.course == course_id,
            LTI_SCORES.c.state.in_(("waiting", "failed")),
            LTI_SCORES.c.answered_ms.is_not(None),
        )
        .order_by(LTI_SCORES.c.stamped_ms, LTI_SCORES.c.id)
        .limit(_MOST_LISTED)
    )
    problems = tuple(LedgerRow(**row) for row in connection.execute(query).mappings())
    return Ledger(
        states.count("sent"),
        states.count("waiting"),
        states.count("failed"),
        tuple(sorted(unknown)),
        problems,
    )


def _note(
    connection: Connection, now_ms: int, score: str, values: Mapping[str, object]
) -> None:
    # a newer mark may have taken its place while it was under way
    waiting = (LTI_SCORES.c.id == score) & (LTI_SCORES.c.state == "waiting")
    answer = bounded(str(values["answer"]), _MOST_ANSWER)
    connection.execute(
        update(LTI_SCORES)
        .where(waiting)
        .values(**{**values, "answer": answer}, answered_ms=now_ms)
    )


def _graded(connection: Connection, now_ms: int, course_id: str) -> list[Change]:
    """Give the marks of learners on the roster that the platform is to know.

    They are what learners are shown; no points take back what was sent before.
    """
    sent = {
        (row.publication, row.person)
        for row in _last(connection, course_id)
        if row.points is not None
    }
    marks = all_marks(connection, now_ms, course_id)
    on_roster = [
        one.person
        for one in members(connection, course_id)
        if one.role == "learner" and not one.is_hidden
    ]
    return [
        Change(mark.publication, person, mark.points, mark.most_points)
        for person in on_roster
        for mark in map(shown_to_learner, marks[person])
        if mark.most_points > 0
        and mark.state != "withdrawn"
        and (mark.points is not None or (mark.publication, person) in sent)
    ]


def _known(connection: Connection, issuer: str) -> frozenset[str]:
    query = select(LTI_PEOPLE.c.person).where(LTI_PEOPLE.c.issuer == issuer)
    return frozenset(connection.execute(query).scalars())


def _last(connection: Connection, course_id: str) -> list[_Last]:
    """Give the last row of each person and lab."""
    newest = (
        select(
            LTI_SCORES.c.publication,
            LTI_SCORES.c.person,
            func.max(LTI_SCORES.c.number).label("number"),
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == LTI_SCORES.c.publication)
        .where(PUBLICATIONS.c.course == course_id)
        .group_by(LTI_SCORES.c.publication, LTI_SCORES.c.person)
        .subquery()
    )
    query = select(
        LTI_SCORES.c.publication,
        LTI_SCORES.c.person,
        LTI_SCORES.c.points,
        LTI_SCORES.c.most_points,
        LTI_SCORES.c.state,
    ).join(
        newest,
        (LTI_SCORES.c.publication == newest.c.publication)
        & (LTI_SCORES.c.person == newest.c.person)
        & (LTI_SCORES.c.number == newest.c.number),
    )
    return [_Last(*row) for row in connection.execute(query)]
