"""When a lab takes submissions: of sections, of people with extensions, of teams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import structs
from sqlalchemy import Connection, select

from warpbook_hub.database.tables import (
    COURSES,
    EXTENSIONS,
    MEMBERSHIPS,
    PUBLICATIONS,
    TEAM_MEMBERS,
    WINDOWS,
)
from warpbook_hub.outages import outages
from warpbook_hub.rules.lateness import MINUTE_MS, Window, extended_ms

#: in place of a section's id: all that have no window of their own
ANY_SECTION = ""


def window_of(
    connection: Connection, publication_id: str, person: str
) -> Window | None:
    """Give when a lab takes submissions of somebody; None if it is not for them."""
    return windows_of(connection, publication_id, [person]).get(person)


def windows_of(
    connection: Connection, publication_id: str, people: Sequence[str]
) -> dict[str, Window]:
    """Give when a lab takes submissions of some people, by person; see `window_of`.

    A team has one deadline: of a lab that teams work at, the latest of any member's.
    """
    return windows_of_labs(connection, [publication_id], people)[publication_id]


def windows_of_labs(
    connection: Connection, publication_ids: Sequence[str], people: Sequence[str]
) -> dict[str, dict[str, Window]]:
    """Give when some labs take submissions of some people, by lab and person."""
    mates = _mates(connection, publication_ids, people)
    everybody = set(people).union(*mates.values())
    own = _own_windows(connection, publication_ids, everybody)
    return {
        lab: _with_teams(own[lab], mates.get(lab, {}), people)
        for lab in publication_ids
    }


def windows_by_section(
    connection: Connection, publication_id: str
) -> dict[str, Window]:
    return _by_section(connection, [publication_id])[publication_id]


def all_windows(connection: Connection, publication_id: str) -> list[Window]:
    """Give the windows of all sections, and of all learners with an extension."""
    move = _mover(connection, [publication_id])
    extended = connection.execute(
        select(EXTENSIONS.c.due_ms, EXTENSIONS.c.closes_ms).where(
            EXTENSIONS.c.publication == publication_id
        )
    )
    return [
        *windows_by_section(connection, publication_id).values(),
        *(move(publication_id, Window(0, *dates)) for dates in extended),
    ]


def dates_after(connection: Connection, publication_id: str, now_ms: int) -> list[int]:
    """Give the moments to come at which a lab opens for anybody, or has closed."""
    dates = (
        date
        for window in all_windows(connection, publication_id)
        for date in (window.opens_ms, window.closes_end_ms + 1)
    )
    return [date for date in dates if date > now_ms]


def extended_after_reference(
    connection: Connection, course_id: str
) -> frozenset[tuple[str, str]]:
    """Tell of which labs learners could see the reference when they got an extension.

    Returns:
        Pairs of a publication and a person.
    """
    query = (
        select(EXTENSIONS.c.publication, EXTENSIONS.c.person)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == EXTENSIONS.c.publication)
        .where(
            PUBLICATIONS.c.course == course_id, EXTENSIONS.c.reference_ms.is_not(None)
        )
    )
    return frozenset((row.publication, row.person) for row in connection.execute(query))


def _mover(
    connection: Connection, publication_ids: Sequence[str]
) -> Callable[[str, Window], Window]:
    """Return what gives a lab's window its course's grace, and moves by outages."""
    query = select(PUBLICATIONS.c.id, COURSES.c.grace_min).join(
        COURSES, COURSES.c.id == PUBLICATIONS.c.course
    )
    of_labs = query.where(PUBLICATIONS.c.id.in_(publication_ids))
    grace_min = {lab: minutes for lab, minutes in connection.execute(of_labs)}
    away = outages(connection)

    def moved(lab: str, window: Window) -> Window:
        grace_ms = grace_min.get(lab, 0) * MINUTE_MS
        due_ms = extended_ms(window.due_ms, away, grace_ms)
        closes_ms = extended_ms(window.closes_ms, away, grace_ms)
        return structs.replace(
            window,
            due_ms=due_ms,
            closes_ms=max(due_ms, closes_ms),
            extended_ms=due_ms - window.due_ms,
            grace_ms=grace_ms,
        )

    return moved


def _with_teams(
    own: Mapping[str, Window], mates: Mapping[str, str], people: Sequence[str]
) -> dict[str, Window]:
    """Give people the latest dates of their teams."""
    by_team: dict[str, list[Window]] = {}
    for person, team in mates.items():
        if person in own:
            by_team.setdefault(team, []).append(own[person])
    return {
        person: _latest(own[person], by_team.get(mates.get(person, ""), []))
        for person in people
        if person in own
    }


def _latest(own: Window, of_team: Sequence[Window]) -> Window:
    """Give one's own window with the latest dates of a team."""
    if not of_team:
        return own
    every = (own, *of_team)
    last = max(every, key=lambda window: window.due_ms)
    closes_ms = max(window.closes_ms for window in every)
    return structs.replace(last, opens_ms=own.opens_ms, closes_ms=closes_ms)


def _mates(
    connection: Connection, publication_ids: Sequence[str], people: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Give the teams of some people and of all in these, by lab that teams work at."""
    mate = TEAM_MEMBERS.alias()
    rows = connection.execute(
        select(PUBLICATIONS.c.id, mate.c.person, mate.c.team)
        .join(TEAM_MEMBERS, TEAM_MEMBERS.c.course == PUBLICATIONS.c.course)
        .join(mate, mate.c.team == TEAM_MEMBERS.c.team)
        .where(
            PUBLICATIONS.c.id.in_(publication_ids),
            PUBLICATIONS.c.is_team_work == 1,
            TEAM_MEMBERS.c.person.in_(people),
        )
        .distinct()
    )
    teams: dict[str, dict[str, str]] = {}
    for lab, person, team in rows:
        teams.setdefault(lab, {})[person] = team
    return teams


def _by_section(
    connection: Connection, publication_ids: Sequence[str]
) -> dict[str, dict[str, Window]]:
    of = WINDOWS.c
    query = select(of.publication, of.section, of.opens_ms, of.due_ms, of.closes_ms)
    move = _mover(connection, publication_ids)
    windows: dict[str, dict[str, Window]] = {lab: {} for lab in publication_ids}
    for lab, section, *dates in connection.execute(
        query.where(of.publication.in_(publication_ids))
    ):
        windows[lab][section] = move(lab, Window(*dates))
    return windows


def _own_windows(
    connection: Connection, publication_ids: Sequence[str], people: Collection[str]
) -> dict[str, dict[str, Window]]:
    """Give the windows of people by their own sections and extensions, by lab."""
    by_section = _by_section(connection, publication_ids)
    sections = connection.execute(
        select(PUBLICATIONS.c.id, MEMBERSHIPS.c.person, MEMBERSHIPS.c.section)
        .join(MEMBERSHIPS, MEMBERSHIPS.c.course == PUBLICATIONS.c.course)
        .where(PUBLICATIONS.c.id.in_(publication_ids), MEMBERSHIPS.c.person.in_(people))
    )
    windows: dict[str, dict[str, Window]] = {lab: {} for lab in publication_ids}
    for lab, person, section in sections:
        window = by_section[lab].get(section) or by_section[lab].get(ANY_SECTION)
        if window is not None:
            windows[lab][person] = window
    of = EXTENSIONS.c
    extended = connection.execute(
        select(of.publication, of.person, of.due_ms, of.closes_ms).where(
            of.publication.in_(publication_ids), of.person.in_(people)
        )
    )
    move = _mover(connection, publication_ids)
    for lab, person, *dates in extended:
        if person in windows[lab]:
            opens_ms = windows[lab][person].opens_ms
            windows[lab][person] = move(lab, Window(opens_ms, *dates))
    return windows
