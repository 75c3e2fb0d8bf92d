"""What is done to a selection of the gradebook at once: planned, done, and undone.

An order is one transaction and one line of the log. Asked again with the same number,
it is the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs
from sqlalchemy import Connection, Row, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.publications import (
    Extension,
    extension,
    grant,
    put_extension,
    reference_shown,
)
from warpbook_hub.course.windows import windows_of
from warpbook_hub.database.tables import (
    BULK_ACTIONS,
    JOBS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.errors import BadRequest, Conflict, NotFound
from warpbook_hub.ids import is_id
from warpbook_hub.queue.control import put_back
from warpbook_hub.texts import reason_of
from warpbook_hub.work.decisions import grade_again

Action = Literal["extend", "regrade", "retry"]
#: of one order, whose transaction others wait for
MOST_CHANGES = 2_000
_SHOWN = 20


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
    person: str
    words: str
    is_skipped: bool = False
    #: dates of an extension
    from_ms: int | None = None
    to_ms: int | None = None
    #: a submission or job
    subject: str = ""


class Done(Struct, frozen=True):
    """An order that was carried out."""

    id: str
    action: Action
    made_by: str
    made_ms: int
    changed: int
    may_undo: bool
    undone_ms: int | None


def plan(connection: Connection, now_ms: int, order: Order) -> list[Change]:
    """Tell what an order would do; nothing is changed.

    Raises:
        BadRequest: an extension has no date, or too much would change at once.
    """
    if order.action == "extend" and order.due_ms is None:
        raise BadRequest("Say until when: an extension has a date.")
    changes = list(_ACTIONS[order.action].plan(connection, now_ms, order))
    if sum(not change.is_skipped for change in changes) > MOST_CHANGES:
        raise BadRequest(f"Select less: at most {MOST_CHANGES:,} changes at once.")
    return changes


def carry_out(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    number: str,
    order: Order,
) -> Done:
    """Do what `plan` tells.

    Args:
        number: drawn by the client; a repeated one changes nothing more.

    Raises:
        BadRequest: no reason is given, or `plan` refuses the order.
        Conflict: the number was used for another order.
    """
    if not is_id(number):
        raise BadRequest("The number of a request has 1 to 64 letters and digits.")
    digest = sha256(msgspec.json.encode(order, order="sorted")).hexdigest()
    of = BULK_ACTIONS.c.id == number
    before = connection.execute(select(BULK_ACTIONS).where(of)).first()
    if before is not None:
        asked = (before.course, before.made_by, before.digest)
        if asked != (course_id, actor, digest):
            raise Conflict("This request has done something else before.")
        return _done(before)
    order = structs.replace(order, reason=reason_of(order.reason))
    changes = [one for one in plan(connection, now_ms, order) if not one.is_skipped]
    action = _ACTIONS[order.action]
    undo = [action.do(connection, now_ms, actor, order, one) for one in changes]
    row = {
        "id": number,
        "course": course_id,
        "action": order.action,
        "made_by": actor,
        "made_ms": now_ms,
        "digest": digest,
        "changed": len(changes),
        "undo": msgspec.json.encode(undo).decode() if action.undo else "",
        "undone_ms": None,
    }
    connection.execute(insert(BULK_ACTIONS).values(**row))
    people = sorted({change.person for change in changes})
    detail = {
        "changed": len(changes),
        "labs": sorted({change.publication for change in changes}),
        "people": people[:_SHOWN],
        "of people": len(people),
        "due_ms": order.due_ms,
        "reason": order.reason,
    }
    words = f"{order.action} of a selection"
    audit.note(connection, now_ms, actor, words, number, detail, course_id)
    return _done(connection.execute(select(BULK_ACTIONS).where(of)).one())


def undo(
    connection: Connection, now_ms: int, actor: str, course_id: str, number: str
) -> int:
    """Take an order back, but for what was changed after it.

    Returns:
        How many of its changes.

    Raises:
        NotFound: the course has no such order.
        Conflict: it can't be taken back, or was before.
    """
    of = (BULK_ACTIONS.c.id == number) & (BULK_ACTIONS.c.course == course_id)
    row = connection.execute(select(BULK_ACTIONS).where(of)).first()
    if row is None:
        raise NotFound("There is no such action.")
    back = _ACTIONS[row.action].undo
    if back is None or row.undone_ms is not None:
        raise Conflict("This action can't be undone, or was before.")
    changed = sum(
        back(connection, now_ms, actor, one) for one in msgspec.json.decode(row.undo)
    )
    change = update(BULK_ACTIONS).where(of)
    connection.execute(change.values(undone_ms=now_ms))
    detail = {"changed": changed}
    words = f"{row.action} of a selection undone"
    audit.note(connection, now_ms, actor, words, number, detail, course_id)
    return changed


def last_orders(connection: Connection, course_id: str, most: int = 10) -> list[Done]:
    """Give the orders of a course that were carried out last, the newest first."""
    query = (
        select(BULK_ACTIONS)
        .where(BULK_ACTIONS.c.course == course_id)
        .order_by(BULK_ACTIONS.c.made_ms.desc(), BULK_ACTIONS.c.id)
        .limit(most)
    )
    return [_done(row) for row in connection.execute(query)]


def _done(row: Row[Any]) -> Done:
    may_undo = bool(row.undo) and row.undone_ms is None and row.changed > 0
    return Done(
        row.id,
        row.action,
        row.made_by,
        row.made_ms,
        row.changed,
        may_undo,
        row.undone_ms,
    )


def _later_dates(connection: Connection, now_ms: int, order: Order) -> Iterator[Change]:
    due_ms = order.due_ms or 0
    for lab, people in order.cells.items():
        windows = windows_of(connection, lab, people)
        is_shown = reference_shown(connection, now_ms, lab) is not None
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
                if is_shown:
                    words += ", after learners could see the reference"
                yield Change(lab, person, words, False, window.due_ms, due_ms)


def _extend(
    connection: Connection, now_ms: int, actor: str, order: Order, change: Change
) -> object:
    lab, person, due_ms = change.publication, change.person, change.to_ms or 0
    before = extension(connection, lab, person)
    closes_ms = max(due_ms, windows_of(connection, lab, [person])[person].closes_ms)
    dates = (due_ms, closes_ms)
    now = grant(connection, now_ms, actor, lab, person, *dates, order.reason)
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
                SUBMISSION_MEMBERS,
                SUBMISSION_MEMBERS.c.submission == JOBS.c.submission,
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


class _Action(NamedTuple):
    plan: Callable[[Connection, int, Order], Iterator[Change]]
    #: gives what `undo` needs
    do: Callable[[Connection, int, str, Order, Change], object]
    #: tells whether it was taken back; None: it can't be
    undo: Callable[[Connection, int, str, Sequence[Any]], bool] | None = None


_ACTIONS: Mapping[str, _Action] = {
    "extend": _Action(_later_dates, _extend, _take_back_extension),
    "regrade": _Action(_attempts, _regrade, _cancel_regrade),
    "retry": _Action(_parked, _retry),
}
