"""What can be done to a selection of the gradebook: told, done, and taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select, update

from warpbook_hub.course.extensions import Extension, extension, grant, put_extension
from warpbook_hub.course.mark_settings import hidden_since, put_hidden
from warpbook_hub.course.publications import publication, reference_shown
from warpbook_hub.course.windows import windows_of
from warpbook_hub.database.tables import (
    JOBS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.queue.control import put_back
from warpbook_hub.texts import MOST_NOTE
from warpbook_hub.work.decisions import Override, decide, grade_again, overrides

Action = Literal["extend", "regrade", "retry", "hide", "release", "excuse", "count"]


class Order(Struct, frozen=True):
    """What is wanted, and of whom."""

    action: Action
    #: learners, by lab
    cells: Mapping[str, Sequence[str]]
    reason: str
    #: of an extension
    due_ms: int | None = None


class Change(Struct, frozen=True):
    """What an order does to one thing of a learner, or why it does nothing."""

    publication: str
    #: empty: everybody of the lab
    person: str
    words: str
    is_skipped: bool = False
    #: dates of an extension
    from_ms: int | None = None
    to_ms: int | None = None
    closes_ms: int | None = None
    #: since when learners could see the lab's reference
    shown_ms: int | None = None
    #: a submission or job
    subject: str = ""


def _later_dates(connection: Connection, now_ms: int, order: Order) -> Iterator[Change]:
    due_ms = order.due_ms or 0
    for lab, people in order.cells.items():
        windows = windows_of(connection, lab, people)
        shown_ms = reference_shown(connection, now_ms, lab)
        for person in people:
            window = windows.get(person)
            if window is None:
                yield Change(lab, person, "not for their section", True)
            elif due_ms < window.opens_ms:
                yield Change(lab, person, "opens later than that", True)
            elif due_ms == window.due_ms:
                yield Change(lab, person, "due then already", True)
            else:
                words = "due later" if due_ms > window.due_ms else "due earlier"
                if shown_ms is not None:
                    words += ", after learners could see the reference"
                closes_ms = max(due_ms, window.closes_ms)
                dates = (window.due_ms, due_ms, closes_ms, shown_ms)
                yield Change(lab, person, words, False, *dates)


def _extend(
    connection: Connection, now_ms: int, actor: str, order: Order, change: Change
) -> object:
    lab, person = change.publication, change.person
    before = extension(connection, lab, person)
    dates = (change.to_ms or 0, change.closes_ms or 0)
    asked = (lab, person, *dates, order.reason, change.shown_ms)
    now = grant(connection, now_ms, actor, *asked)
    return [lab, now, before]


def _take_back_extension(
    connection: Connection, _: int, __: str, one: Sequence[Any]
) -> bool:
    lab, given, before = msgspec.convert(one, tuple[str, Extension, Extension | None])
    if extension(connection, lab, given.person) != given:
        return False
    put_extension(connection, lab, given.person, before)
    return True


def _attempts(connection: Connection, _: int, order: Order) -> Iterator[Change]:
    """Plan to grade again what was handed in, but for what was replaced."""
    seen: set[str] = set()
    for lab, people in order.cells.items():
        rows = connection.execute(
            select(SUBMISSIONS.c.id, SUBMISSIONS.c.number, SUBMISSION_MEMBERS.c.person)
            .join(
                SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id
            )
            .where(
                SUBMISSIONS.c.publication == lab,
                SUBMISSIONS.c.replaced_ms.is_(None),
                SUBMISSION_MEMBERS.c.person.in_(list(people)),
            )
            .order_by(SUBMISSION_MEMBERS.c.person, SUBMISSIONS.c.number)
        ).all()
        query = select(JOBS.c.submission).where(
            JOBS.c.publication == lab, JOBS.c.state.in_(("queued", "leased"))
        )
        is_open = set(connection.execute(query.where(outside_finals())).scalars())
        for row in rows:
            # a team's is one
            if row.id in seen:
                continue
            seen.add(row.id)
            words = f"submission {row.number}"
            if row.id in is_open:
                yield Change(lab, row.person, f"{words} waits or runs already", True)
            else:
                words = f"{words} is graded again"
                yield Change(lab, row.person, words, subject=row.id)


def _regrade(
    connection: Connection, now_ms: int, _: str, __: Order, change: Change
) -> object:
    return grade_again(connection, now_ms, change.subject)


def _cancel_regrade(
    connection: Connection, now_ms: int, _: str, one: Sequence[Any]
) -> bool:
    job, parked = msgspec.convert(one, tuple[str, list[str]])
    waits = (JOBS.c.id == job) & (JOBS.c.state == "queued")
    change = update(JOBS).where(waits).values(state="cancelled", finished_ms=now_ms)
    if not connection.execute(change).rowcount:
        return False
    again = update(JOBS).where(JOBS.c.id.in_(parked), JOBS.c.state == "cancelled")
    connection.execute(again.values(state="parked", finished_ms=None))
    return True


def _parked(connection: Connection, _: int, order: Order) -> Iterator[Change]:
    seen: set[str] = set()
    for lab, people in order.cells.items():
        rows = connection.execute(
            select(JOBS.c.id, JOBS.c.stage, JOBS.c.note, SUBMISSION_MEMBERS.c.person)
            .join(
                SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == JOBS.c.submission
            )
            .where(
                JOBS.c.publication == lab,
                JOBS.c.state == "parked",
                SUBMISSION_MEMBERS.c.person.in_(list(people)),
            )
            .order_by(SUBMISSION_MEMBERS.c.person, JOBS.c.queued_ms)
        ).all()
        for row in rows:
            if row.id not in seen:
                seen.add(row.id)
                words = f"is tried again; it is parked: {row.note}"
                yield Change(lab, row.person, words, subject=row.id)


def _retry(
    connection: Connection, now_ms: int, _: str, __: Order, change: Change
) -> object:
    put_back(connection, now_ms, change.subject)
    return None


def _visibility(connection: Connection, _: int, order: Order) -> Iterator[Change]:
    """Plan to hide or release the marks of whole labs, and not of some learners."""
    is_hidden = order.action == "hide"
    for lab in order.cells:
        if publication(connection, lab).is_hidden == is_hidden:
            words = "hidden already" if is_hidden else "not hidden"
            yield Change(lab, "", words, True)
        else:
            words = "marks and feedback are hidden from all learners of the lab"
            released = "all learners of the lab see their marks and feedback"
            yield Change(lab, "", words if is_hidden else released)


def _set_visibility(
    connection: Connection, now_ms: int, _: str, order: Order, change: Change
) -> object:
    put_hidden(connection, now_ms, change.publication, order.action == "hide")
    return [change.publication, hidden_since(connection, change.publication)]


def _take_back_visibility(
    connection: Connection, now_ms: int, _: str, one: Sequence[Any]
) -> bool:
    lab, hidden_ms = msgspec.convert(one, tuple[str, int | None])
    # somebody may have released the marks, and hidden them again
    if hidden_since(connection, lab) != hidden_ms:
        return False
    put_hidden(connection, now_ms, lab, hidden_ms is None)
    return True


def _excuses(connection: Connection, _: int, order: Order) -> Iterator[Change]:
    is_excused = order.action == "excuse"
    for lab, people in order.cells.items():
        windows = windows_of(connection, lab, people)
        for person in people:
            last = _last_decision(connection, lab, person)
            if person not in windows:
                yield Change(lab, person, "not for their section", True)
            elif (last is not None and last.is_excused) == is_excused:
                words = "excused already" if is_excused else "not excused"
                yield Change(lab, person, words, True)
            elif is_excused:
                words = "the lab counts nothing in their total"
                if last is not None and last.points is not None:
                    words += f", nor do the {last.points:g} points that were set"
                yield Change(lab, person, words)
            else:
                yield Change(lab, person, "the lab counts again")


def _excuse(
    connection: Connection, now_ms: int, actor: str, order: Order, change: Change
) -> object:
    lab, person = change.publication, change.person
    before = _last_decision(connection, lab, person)
    is_excused = order.action == "excuse"
    at = (connection, now_ms, actor, lab, person)
    decide(*at, order.reason, None, is_excused)
    return [lab, person, _last_decision(connection, lab, person), before]


def _take_back_excuse(
    connection: Connection, now_ms: int, actor: str, one: Sequence[Any]
) -> bool:
    kinds = tuple[str, str, Override, Override | None]
    lab, person, made, before = msgspec.convert(one, kinds)
    if _last_decision(connection, lab, person) != made:
        return False
    reason = f"undone: {made.reason}"[:MOST_NOTE]
    points, is_excused = (None, False)
    if before is not None:
        points, is_excused = before.points, before.is_excused
    decide(connection, now_ms, actor, lab, person, reason, points, is_excused)
    return True


def _last_decision(connection: Connection, lab: str, person: str) -> Override | None:
    return next(reversed(overrides(connection, lab, person)), None)


class _Ways(NamedTuple):
    plan: Callable[[Connection, int, Order], Iterator[Change]]
    #: gives what `undo` needs
    do: Callable[[Connection, int, str, Order, Change], object]
    #: tells whether it was taken back; None: it can't be
    undo: Callable[[Connection, int, str, Sequence[Any]], bool] | None = None


ACTIONS: Mapping[str, _Ways] = {
    "extend": _Ways(_later_dates, _extend, _take_back_extension),
    "regrade": _Ways(_attempts, _regrade, _cancel_regrade),
    "retry": _Ways(_parked, _retry),
    "hide": _Ways(_visibility, _set_visibility, _take_back_visibility),
    "release": _Ways(_visibility, _set_visibility, _take_back_visibility),
    "excuse": _Ways(_excuses, _excuse, _take_back_excuse),
    "count": _Ways(_excuses, _excuse, _take_back_excuse),
}
