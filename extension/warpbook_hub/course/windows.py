"""When a lab takes submissions: of sections, of people with extensions, of teams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

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
    mates = _mates(connection, publication_id, people)
    own = _own_windows(connection, publication_id, {*people, *mates})
    by_team: dict[str, list[Window]] = {}
    for person, team in mates.items():
        if person in own:
            by_team.setdefault(team, []).append(own[person])
    windows: dict[str, Window] = {}
    for person in people:
        if person in own:
            of_team = by_team.get(mates.get(person, ""), [])
            windows[person] = _latest(own[person], of_team)
    return windows


def windows_by_section(
    connection: Connection, publication_id: str
) -> dict[str, Window]:
    query = select(WINDOWS).where(WINDOWS.c.publication == publication_id)
    move = _mover(connection, publication_id)
    return {
        row.section: move(Window(row.opens_ms, row.due_ms, row.closes_ms))
        for row in connection.execute(query)
    }


def all_windows(connection: Connection, publication_id: str) -> list[Window]:
    """Give the windows of all sections, and of all learners with an extension."""
    move = _mover(connection, publication_id)
    extended = connection.execute(
        select(EXTENSIONS.c.due_ms, EXTENSIONS.c.closes_ms).where(
            EXTENSIONS.c.publication == publication_id
        )
    )
    return [
        *windows_by_section(connection, publication_id).values(),
        *(move(Window(0, row.due_ms, row.closes_ms)) for row in extended),
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


def _mover(connection: Connection, publication_id: str) -> Callable[[Window], Window]:
    """Return what gives a window its course's grace, and what outages have moved."""
    query = select(COURSES.c.grace_min).join(
        PUBLICATIONS, PUBLICATIONS.c.course == COURSES.c.id
    )
    of_lab = query.where(PUBLICATIONS.c.id == publication_id)
    grace_ms = (connection.execute(of_lab).scalar() or 0) * MINUTE_MS
    away = outages(connection)

    def moved(window: Window) -> Window:
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


def _latest(own: Window, of_team: Sequence[Window]) -> Window:
    """Give one's own window with the latest dates of a team."""
    every = (own, *of_team)
    last = max(every, key=lambda window: window.due_ms)
    closes_ms = max(window.closes_ms for window in every)
    return structs.replace(last, opens_ms=own.opens_ms, closes_ms=closes_ms)


def _mates(
    connection: Connection, publication_id: str, people: Sequence[str]
) -> dict[str, str]:
    """Give the teams of some people and of all in these; none unless teams work."""
    teams = (
        select(TEAM_MEMBERS.c.team)
        .join(PUBLICATIONS, PUBLICATIONS.c.course == TEAM_MEMBERS.c.course)
        .where(
            PUBLICATIONS.c.id == publication_id,
            PUBLICATIONS.c.is_team_work == 1,
            TEAM_MEMBERS.c.person.in_(list(people)),
        )
    )
    query = select(TEAM_MEMBERS.c.person, TEAM_MEMBERS.c.team)
    rows = connection.execute(query.where(TEAM_MEMBERS.c.team.in_(teams)))
    return {row.person: row.team for row in rows}


def _own_windows(
    connection: Connection, publication_id: str, people: Collection[str]
) -> dict[str, Window]:
    """Give the windows of people by their own sections and extensions."""
    by_section = windows_by_section(connection, publication_id)
    sections = connection.execute(
        select(MEMBERSHIPS.c.person, MEMBERSHIPS.c.section)
        .join(PUBLICATIONS, PUBLICATIONS.c.course == MEMBERSHIPS.c.course)
        .where(
            PUBLICATIONS.c.id == publication_id, MEMBERSHIPS.c.person.in_(list(people))
        )
    )
    windows: dict[str, Window] = {}
    for person, section in sections:
        window = by_section.get(section) or by_section.get(ANY_SECTION)
        if window is not None:
            windows[person] = window
    extended = connection.execute(
        select(EXTENSIONS.c.person, EXTENSIONS.c.due_ms, EXTENSIONS.c.closes_ms).where(
            EXTENSIONS.c.publication == publication_id,
            EXTENSIONS.c.person.in_(list(windows)),
        )
    )
    move = _mover(connection, publication_id)
    for person, due_ms, closes_ms in extended:
        windows[person] = move(Window(windows[person].opens_ms, due_ms, closes_ms))
    return windows
