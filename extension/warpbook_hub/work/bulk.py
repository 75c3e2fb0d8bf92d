"""What is done to a selection of the gradebook at once: planned, done, and undone.

An order is one transaction and one line of the log. Asked again with the same number,
it is the same order.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, structs
from sqlalchemy import Connection, Row, insert, select, update

from warpbook_hub import audit
from warpbook_hub.database.tables import BULK_ACTIONS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.ids import is_id
from warpbook_hub.texts import reason_of
from warpbook_hub.work.bulk_actions import ACTIONS, Action, Change, Order

#: of one order, whose transaction others wait for
MOST_CHANGES = 2_000
_SHOWN = 20


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
    changes = list(ACTIONS[order.action].plan(connection, now_ms, order))
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
    action = ACTIONS[order.action]
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
    people = sorted({change.person for change in changes if change.person})
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
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    number: str,
    only_own: bool = False,
) -> int:
    """Take an order back, but for what was changed after it.

    Args:
        only_own: an order of somebody else is not found.

    Returns:
        How many of its changes.

    Raises:
        Conflict: there is none, or it can't be taken back, or was before.
    """
    of = (BULK_ACTIONS.c.id == number) & (BULK_ACTIONS.c.course == course_id)
    row = connection.execute(select(BULK_ACTIONS).where(of)).first()
    if row is None or (only_own and row.made_by != actor):
        raise Conflict("This action is not there, or not yours.")
    back = ACTIONS[row.action].undo
    if back is None or not row.undo or row.undone_ms is not None:
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
