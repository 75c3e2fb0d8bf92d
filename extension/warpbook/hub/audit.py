"""The audit log: who changed what, when and why. It is only added to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection


class AuditEntry(Struct, frozen=True):
    """One line of the log."""

    number: int
    at_ms: int
    #: the id of a person, `hub`, or `grader <name>`
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
    raise NotImplementedError


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
    raise NotImplementedError


def first_forged(connection: Connection) -> int | None:
    """Give the first entry that does not follow from those before; None if all do."""
    raise NotImplementedError
