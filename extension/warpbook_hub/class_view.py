"""The class as an instructor sees it: who is where, and who is stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, func, select

from warpbook_hub.course.courses import members
from warpbook_hub.course.publications import publications
from warpbook_hub.database.tables import RESULTS, SUBMISSION_MEMBERS, SUBMISSIONS
from warpbook_hub.work.results import Standing, standings

EQUAL_FAILURES = 3
NO_PROGRESS_MS = 15 * 60_000
#: who has done nothing for so long has left, and is not stuck
GONE_MS = 60 * 60_000

StuckReason = Literal["equal failures", "no progress"]


class Try(Struct, frozen=True):
    """A result of a learner, the earliest first in a sequence."""

    received_ms: int
    passed: bool
    #: share of cases that are right
    right: float
    #: empty if it passed
    error_kind: str


def stuck(tries: Sequence[Try], now_ms: int) -> StuckReason | None:
    """Tell why a learner is stuck: three equal failures, or no progress in 15 min."""
    if not tries or any(attempt.passed for attempt in tries):
        return None
    if now_ms - tries[-1].received_ms > GONE_MS:
        return None
    last = tries[-EQUAL_FAILURES:]
    kinds = {(attempt.error_kind, attempt.right) for attempt in last}
    if len(last) == EQUAL_FAILURES and len(kinds) == 1:
        return "equal failures"
    best, since_ms = -1.0, tries[0].received_ms
    for attempt in tries:
        if attempt.right > best:
            best, since_ms = attempt.right, attempt.received_ms
    return "no progress" if now_ms - since_ms >= NO_PROGRESS_MS else None


class LabState(Struct, frozen=True):
    """How far a learner is with a lab."""

    publication: str
    #: "nothing", "waits", "runs", "parked", "tried" or "passed"
    state: str
    attempts: int
    #: share of cases that are right, of the best
    best_right: float
    #: of the last result; empty if it passed, or there is none
    last_error_kind: str
    last_received_ms: int | None
    gpu_s: float
    energy_j: float
    stuck: StuckReason | None


class ClassRow(Struct, frozen=True):
    """A learner, with all labs."""

    person: str
    username: str
    name: str
    section: str
    team: str
    labs: tuple[LabState, ...]


def class_rows(
    connection: Connection,
    now_ms: int,
    course_id: str,
    section: str = "",
    publication_id: str = "",
    people: Sequence[str] = (),
) -> list[ClassRow]:
    """Give each learner who is on the roster.

    Rows of a whole course take a second for every 30,000 submissions: a service keeps
    them, and asks for those of people with whom something has happened.

    Args:
        section: only those in it.
        publication_id: only this lab.
        people: only these; all if empty.
    """
    shown = [
        member
        for member in members(connection, course_id, section)
        if member.role == "learner"
        and not member.is_hidden
        and (not people or member.person in people)
    ]
    labs = [lab for lab in publications(connection, course_id) if not lab.is_withdrawn]
    if publication_id:
        labs = [lab for lab in labs if lab.id == publication_id]
    tried = _tried(connection, [lab.id for lab in labs], people)
    return [
        ClassRow(
            member.person,
            member.username,
            f"{member.first_name} {member.last_name}".strip(),
            member.section,
            member.team,
            tuple(
                _state(lab.id, tried.get((lab.id, member.person), []), now_ms)
                for lab in labs
            ),
        )
        for member in shown
    ]


class _Attempt(NamedTuple):
    received_ms: int
    is_replaced: bool
    standing: Standing
    gpu_ms: int
    energy_mj: int


def _tried(
    connection: Connection, labs: Sequence[str], people: Sequence[str]
) -> dict[tuple[str, str], list[_Attempt]]:
    """Give submissions by publication and person, the first first."""
    of_labs: ColumnElement[bool] = SUBMISSIONS.c.publication.in_(list(labs))
    if people:
        of_people = select(SUBMISSION_MEMBERS.c.submission).where(
            SUBMISSION_MEMBERS.c.person.in_(list(people))
        )
        of_labs &= SUBMISSIONS.c.id.in_(of_people)
    standing = standings(connection, of_labs)
    spent = {
        row.submission: (int(row.gpu_ms), int(row.energy_mj))
        for row in connection.execute(
            select(
                RESULTS.c.submission,
                func.sum(RESULTS.c.gpu_ms).label("gpu_ms"),
                func.coalesce(func.sum(RESULTS.c.energy_mj), 0).label("energy_mj"),
            )
            .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
            .where(of_labs)
            .group_by(RESULTS.c.submission)
        )
    }
    rows = connection.execute(
        select(
            SUBMISSIONS.c.id,
            SUBMISSIONS.c.publication,
            SUBMISSIONS.c.received_ms,
            SUBMISSIONS.c.replaced_ms,
            SUBMISSION_MEMBERS.c.person,
        )
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .where(of_labs)
        .order_by(SUBMISSIONS.c.received_ms, SUBMISSIONS.c.number)
    )
    by_lab: dict[tuple[str, str], list[_Attempt]] = {}
    for row in rows:
        tried = _Attempt(
            row.received_ms,
            row.replaced_ms is not None,
            standing[row.id],
            *spent.get(row.id, (0, 0)),
        )
        by_lab.setdefault((row.publication, row.person), []).append(tried)
    return by_lab


def _state(publication: str, tried: Sequence[_Attempt], now_ms: int) -> LabState:
    tries = [
        Try(
            submission.received_ms,
            counts.facts.verdict == "right",
            counts.facts.right / counts.facts.of if counts.facts.of else 0.0,
            counts.facts.error_kind,
        )
        for submission in tried
        if (counts := submission.standing.result) is not None
    ]
    return LabState(
        publication,
        _word(tried, tries),
        sum(not submission.is_replaced for submission in tried),
        max((attempt.right for attempt in tries), default=0.0),
        tries[-1].error_kind if tries else "",
        tried[-1].received_ms if tried else None,
        sum(submission.gpu_ms for submission in tried) / 1000,
        sum(submission.energy_mj for submission in tried) / 1000,
        stuck(tries, now_ms),
    )


def _word(tried: Sequence[_Attempt], tries: Sequence[Try]) -> str:
    """Say in a word how far somebody is: what happens now, then the best so far."""
    states = {submission.standing.state for submission in tried}
    for state in ("runs", "waits", "parked"):
        if state in states:
            return state
    if any(attempt.passed for attempt in tries):
        return "passed"
    return "tried" if tries else "nothing"
