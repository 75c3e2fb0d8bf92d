"""Erases a person: names, sources and results."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection


class Erased(Struct, frozen=True):
    """What was erased."""

    submissions: int
    #: work of a team, from which only the person was taken out
    shared_submissions: int


def erase(
    connection: Connection, now_ms: int, actor: str, person: str, reason: str
) -> Erased:
    """Erase all that is a person's: it can't be undone, and backups are not touched.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such person, or they were erased before.
    """
    raise NotImplementedError
