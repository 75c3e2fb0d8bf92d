"""Who operates the hub: the people whom its start names, and nobody else."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select

from warpbook_hub import audit
from warpbook_hub.course.courses import ensure_person, fit_username
from warpbook_hub.database.tables import OPERATORS, PEOPLE


def name_operators(connection: Connection, now_ms: int, names: Iterable[str]) -> None:
    """Have these people operate the hub, in place of those of the start before.

    Raises:
        BadRequest: a name can't be used.
    """
    people = {ensure_person(connection, now_ms, fit_username(name)) for name in names}
    before = set(connection.execute(select(OPERATORS.c.person)).scalars())
    for person in sorted(people - before):
        connection.execute(insert(OPERATORS).values(person=person))
        audit.note(connection, now_ms, "hub", "operator added", person, course="")
    for person in sorted(before - people):
        connection.execute(delete(OPERATORS).where(OPERATORS.c.person == person))
        audit.note(connection, now_ms, "hub", "operator removed", person, course="")


def operator(connection: Connection, username: str) -> str:
    """Give the id of somebody who operates the hub; empty if they do not."""
    query = (
        select(PEOPLE.c.id)
        .join(OPERATORS, OPERATORS.c.person == PEOPLE.c.id)
        .where(PEOPLE.c.username == username)
    )
    return connection.execute(query).scalar() or ""
