"""Pages of what the submissions of a lab have in common."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub_protocol import Nothing
from warpbook_hub.course.publications import Publication, publications, reference
from warpbook_hub.database.tables import COURSES, PEOPLE, PUBLICATIONS, SUBMISSIONS
from warpbook_hub.errors import NotFound
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import PairQuery
from warpbook_hub.service.service import Service
from warpbook_hub.similarity.process import REFERENCE, instructed_courses


class Side(Struct, frozen=True):
    """One of two sources, as an instructor may see it."""

    title: str
    #: of its page, below the service's address; empty where it has none
    path: str = ""
    source: str = ""
    #: the instructor may see it
    is_shown: bool = True


def similarity_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the last ranking of a lab, which comes after."""
    return {
        "labs": publications(admitted.connection, admitted.course.id),
        "lab": admitted.lab,
        "person": admitted.viewer.person,
    }


async def with_ranking(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the ranking that was made last, with whose submissions it names."""
    ranking = service.rankings.of(values["lab"].id)
    named = {
        name
        for pair in (ranking.pairs if ranking else ())
        for name in (pair.first, pair.second)
    }

    def sides(connection: Connection) -> dict[str, Side]:
        lab, person = values["lab"], values["person"]
        return {name: _side(connection, lab, person, name) for name in named}

    shown = await service.read(sides) if named else {}
    return {**values, "ranking": ranking, "sides": shown}


def pair_page(admitted: Admitted, given: PairQuery) -> dict[str, Any]:
    """Show two sources of a lab side by side."""
    person = admitted.viewer.person
    pair = [
        _side(admitted.connection, admitted.lab, person, name)
        for name in (given.first, given.second)
    ]
    if not all(side.is_shown for side in pair):
        raise NotFound("There is no such submission of this lab.")
    return {"lab": admitted.lab, "pair": pair, "names": (given.first, given.second)}


async def with_lines(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    ranking = service.rankings.of(values["lab"].id)
    alike: tuple[set[int], set[int]] = set(), set()
    for pair in ranking.pairs if ranking else ():
        if (pair.first, pair.second) == values["names"]:
            alike = set(pair.first_lines), set(pair.second_lines)
    return {**values, "alike": alike, "zip_longest": zip_longest}


def _side(connection: Connection, lab: Publication, person: str, name: str) -> Side:
    """Give a source that was compared: the lab's, an earlier term's, the reference.

    Raises:
        NotFound: it is of no lab like this.
    """
    if name == REFERENCE:
        return Side("the reference", source=reference(connection, lab.id))
    row = connection.execute(
        select(
            PUBLICATIONS.c.lab,
            PUBLICATIONS.c.course,
            COURSES.c.title,
            PEOPLE.c.username,
            SUBMISSIONS.c.number,
            SUBMISSIONS.c.source,
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
        .join(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
        .where(SUBMISSIONS.c.id == name)
    ).first()
    if row is None or row.lab != lab.lab:
        raise NotFound("There is no such submission of this lab.")
    title = f"{row.username}, submission {row.number}"
    if row.course != lab.course:
        if row.course not in instructed_courses(connection, person):
            return Side("somebody of another course", is_shown=False)
        title += f", of {row.title}"
    return Side(title, f"courses/{row.course}/submissions/{name}", row.source)
