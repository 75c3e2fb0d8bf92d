"""Who operates the hub: the people whom its start names, and nobody else."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, func, insert, select

from warpbook_hub import audit
from warpbook_hub.course.courses import ensure_person, fit_username
from warpbook_hub.database.tables import LTI_PEOPLE, OPERATORS, PEOPLE


def name_operators(connection: Connection, now_ms: int, names: Iterable[str]) -> None:
    """Have these people operate the hub, in place of those of the start before.

    Args:
        names: user names, each with `=ID` if their id at the platform is tied to it.

    Raises:
        BadRequest: a name can't be used.
    """
    tied = [name.partition("=") for name in names]
    people = {
        ensure_person(connection, now_ms, fit_username(name)): subject.strip()
        for name, _, subject in tied
    }
    rows = connection.execute(select(OPERATORS.c.person, OPERATORS.c.subject))
    before = {row.person: row.subject for row in rows}
    connection.execute(delete(OPERATORS))
    for person, subject in sorted(people.items()):
        connection.execute(insert(OPERATORS).values(person=person, subject=subject))
    for words, changed in (
        ("operator removed", before.items() - people.items()),
        ("operator added", people.items() - before.items()),
    ):
        for person, _ in sorted(changed):
            audit.note(connection, now_ms, "hub", words, person, course="")


def operator(connection: Connection, username: str) -> str:
    """Return the id of somebody who operates the hub; empty if they do not.

    Of who comes from a platform that takes the id there: a name is what it says.
    """
    query = (
        select(PEOPLE.c.id)
        .join(OPERATORS, OPERATORS.c.person == PEOPLE.c.id)
        .outerjoin(LTI_PEOPLE, LTI_PEOPLE.c.person == PEOPLE.c.id)
        .where(
            PEOPLE.c.username == username,
            func.coalesce(LTI_PEOPLE.c.subject, OPERATORS.c.subject)
            == OPERATORS.c.subject,
        )
    )
    return connection.execute(query).scalar() or ""


def operator_subject(connection: Connection, username: str) -> str | None:
    """Return the id that is tied to an operator, empty without; None of others."""
    query = (
        select(OPERATORS.c.subject)
        .join(PEOPLE, PEOPLE.c.id == OPERATORS.c.person)
        .where(PEOPLE.c.username == username)
    )
    return connection.execute(query).scalar()
