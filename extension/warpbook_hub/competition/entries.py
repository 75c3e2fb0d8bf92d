"""Who is on a board: learners who joined, each by a pseudonym of their own."""

from __future__ import annotations

import unicodedata

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select

from warpbook_hub.competition.contests import require
from warpbook_hub.course.courses import Member, members
from warpbook_hub.course.publications import Publication
from warpbook_hub.database.tables import COMPETITORS, MEMBERSHIPS, PUBLICATIONS
from warpbook_hub.errors import BadRequest, Conflict

LEAST_PSEUDONYM, MOST_PSEUDONYM = 2, 30
#: besides letters, digits and the marks that belong to them
_ALSO = " -_.'"
#: on one letter: more would be drawn over the lines beside
_MOST_MARKS = 2


class Competitor(Struct, frozen=True):
    """Somebody who joined."""

    person: str
    pseudonym: str


def join(
    connection: Connection, now_ms: int, lab: Publication, person: str, pseudonym: str
) -> str:
    """Put a learner on the board of a lab, or give them another pseudonym.

    Returns:
        The pseudonym as it is shown.

    Raises:
        BadRequest: the pseudonym can't be used.
        Conflict: there is no competition, its board is frozen, it is not for this
            person, or somebody else of the course has the pseudonym or such a name.
    """
    now = require(connection, lab.id)
    if now.phase(now_ms) != "open":
        raise Conflict("The board is frozen: nobody joins or changes a pseudonym now.")
    everybody = members(connection, lab.course)
    who = {member.person: member for member in everybody}.get(person)
    if who is None or who.role != "learner" or who.is_hidden:
        raise Conflict("Only learners of the course are on a board.")
    shown = fit_pseudonym(pseudonym)
    key = _key(shown)
    _check_free(connection, lab.course, person, key, everybody)
    leave(connection, lab.id, person)
    row = {"publication": lab.id, "person": person, "pseudonym": shown}
    connection.execute(
        insert(COMPETITORS).values(**row, pseudonym_key=key, joined_ms=now_ms)
    )
    return shown


def leave(connection: Connection, publication_id: str, person: str) -> None:
    """Take a learner off the board of a lab, at any time, and forget the pseudonym."""
    connection.execute(
        delete(COMPETITORS).where(
            COMPETITORS.c.publication == publication_id, COMPETITORS.c.person == person
        )
    )


def competitors(connection: Connection, publication_id: str) -> list[Competitor]:
    """Give those of a board who are still learners on the roster."""
    query = (
        select(COMPETITORS.c.person, COMPETITORS.c.pseudonym)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == COMPETITORS.c.publication)
        .join(
            MEMBERSHIPS,
            (MEMBERSHIPS.c.course == PUBLICATIONS.c.course)
            & (MEMBERSHIPS.c.person == COMPETITORS.c.person),
        )
        .where(
            COMPETITORS.c.publication == publication_id,
            MEMBERSHIPS.c.role == "learner",
            MEMBERSHIPS.c.hidden_ms.is_(None),
        )
        .order_by(COMPETITORS.c.pseudonym_key)
    )
    return [Competitor(**row) for row in connection.execute(query).mappings()]


def pseudonym_of(connection: Connection, publication_id: str, person: str) -> str:
    """Give somebody's own pseudonym; empty if they did not join."""
    query = select(COMPETITORS.c.pseudonym).where(
        COMPETITORS.c.publication == publication_id, COMPETITORS.c.person == person
    )
    return connection.execute(query).scalar() or ""


def fit_pseudonym(text: str) -> str:
    """Give a pseudonym as it is shown.

    Raises:
        BadRequest: it is too short or too long, or holds what is no part of a name.
    """
    shown = " ".join(unicodedata.normalize("NFKC", text).split())
    if not (LEAST_PSEUDONYM <= len(shown) <= MOST_PSEUDONYM and _is_name(shown)):
        raise BadRequest(
            f"A pseudonym has {LEAST_PSEUDONYM} to {MOST_PSEUDONYM} letters, digits, "
            "blanks and - _ . ' and begins with a letter or digit."
        )
    return shown


def _is_name(text: str) -> bool:
    marks = 0
    for letter in text:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind.startswith("M") else 0
        if not (kind[0] in "LNM" or letter in _ALSO) or marks > _MOST_MARKS:
            return False
    return unicodedata.category(text[0])[0] in "LN"


def _key(shown: str) -> str:
    """Write a pseudonym without what a reader may overlook: case, blanks, dots."""
    folded = unicodedata.normalize("NFKC", shown.casefold())
    return "".join(letter for letter in folded if letter not in _ALSO)


def _check_free(
    connection: Connection,
    course_id: str,
    person: str,
    key: str,
    everybody: list[Member],
) -> None:
    """Refuse what another of the course is called, on any board or in truth.

    Raises:
        Conflict: somebody else is called so.
    """
    others = connection.execute(
        select(COMPETITORS.c.person)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == COMPETITORS.c.publication)
        .where(
            PUBLICATIONS.c.course == course_id,
            COMPETITORS.c.pseudonym_key == key,
            COMPETITORS.c.person != person,
        )
    ).first()
    names = {
        _key(name)
        for member in everybody
        if member.person != person
        for name in (member.username, f"{member.first_name} {member.last_name}")
    }
    if others is not None or key in names:
        raise Conflict(
            "A member of the course has this name. Choose another pseudonym."
        )
