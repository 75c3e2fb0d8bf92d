"""The audit log: who changed what, when and why. It is only added to."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, insert, select

from warpbook.hub.database.tables import AUDIT

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
    #: as JSON; no names, so that a person can be erased
    detail: str
    #: of this entry and all before it
    digest: str


def note(
    connection: Connection,
    now_ms: int,
    actor: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry, in the transaction of what it tells of."""
    last = connection.execute(
        select(AUDIT.c.number, AUDIT.c.digest).order_by(AUDIT.c.number.desc()).limit(1)
    ).first()
    number, before = (0, _BEGINNING) if last is None else (last.number, last.digest)
    text = msgspec.json.encode(dict(detail or {}), order="sorted").decode()
    row = {
        "number": number + 1,
        "at_ms": now_ms,
        "actor": actor,
        "action": action,
        "subject": subject,
        "detail": text,
    }
    connection.execute(insert(AUDIT).values(**row, digest=_digest(before, row)))


def entries(
    connection: Connection, after: int = 0, most: int = 500, subject: str = ""
) -> list[AuditEntry]:
    """Give entries, the earliest first.

    Args:
        connection: of a transaction.
        after: the number of an entry; those behind it are given.
        most: so many.
        subject: only those about it.
    """
    query = select(AUDIT).where(AUDIT.c.number > after)
    if subject:
        query = query.where(AUDIT.c.subject == subject)
    rows = connection.execute(query.order_by(AUDIT.c.number).limit(most)).mappings()
    return [AuditEntry(**row) for row in rows]


def first_forged(connection: Connection) -> int | None:
    """Give the first entry that does not follow from those before; None if all do."""
    number, digest = 0, _BEGINNING
    while part := entries(connection, after=number):
        for entry in part:
            row = msgspec.structs.asdict(entry)
            written = row.pop("digest")
            if entry.number != number + 1 or written != _digest(digest, row):
                return entry.number
            number, digest = entry.number, entry.digest
    return None


def _digest(before: str, row: Mapping[str, Any]) -> str:
    fields = [row[name] for name in ("number", "at_ms", "actor", "action", "subject")]
    text = msgspec.json.encode([before, *fields, row["detail"]])
    return sha256(text).hexdigest()
