"""Brings a course's learners to what a roster says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, structs
from sqlalchemy import Connection, delete, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.courses import (
    MAIN_SECTION,
    Member,
    course,
    ensure_person,
    members,
    person_of,
    section_id,
)
from warpbook_hub.course.roster_columns import key_of
from warpbook_hub.course.roster_csv import Roster, RosterColumn, RosterRow
from warpbook_hub.course.roster_text import ENCODINGS
from warpbook_hub.database.tables import MEMBERSHIPS, TEAM_MEMBERS, TEAMS
from warpbook_hub.errors import RosterProblem
from warpbook_hub.ids import new_id

_NAMES = ("first_name", "last_name", "email")
#: of the people of a file, so that a preview fits a page
_MOST_SHOWN = 10


class RosterChanges(Struct, frozen=True):
    """What an import changes, by user name."""

    added: tuple[str, ...] = ()
    #: names, section or team
    changed: tuple[str, ...] = ()
    #: no more on the roster: their work is kept, and they submit nothing
    hidden: tuple[str, ...] = ()
    #: were hidden before
    returned: tuple[str, ...] = ()
    unchanged: int = 0
    #: what somebody should look at
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Return how many of each kind of change there are."""
        kinds = ("added", "changed", "hidden", "returned")
        return {kind: len(getattr(self, kind)) for kind in kinds}


class RosterShown(RosterChanges, frozen=True):
    """How a file was read, and what it changes; of a preview it may have problems."""

    problems: tuple[RosterProblem, ...] = ()
    program: str = ""
    encoding: str = ""
    is_encoding_sure: bool = True
    #: in words: the one that was taken, then others that it may be as well
    encodings: dict[str, str] = {}
    separator: str = ""
    columns: tuple[RosterColumn, ...] = ()
    #: columns that nothing was taken from
    unused_columns: tuple[str, ...] = ()
    skipped: tuple[RosterProblem, ...] = ()
    #: how many people, and the first of them
    people: int = 0
    first_people: tuple[RosterRow, ...] = ()


def shown(roster: Roster, changes: RosterChanges) -> RosterShown:
    """Join how a file was read and what it changes."""
    encodings = (roster.encoding, *roster.other_encodings)
    return RosterShown(
        **structs.asdict(changes),
        problems=roster.problems,
        program=roster.program,
        encoding=roster.encoding,
        is_encoding_sure=roster.is_encoding_sure,
        encodings={name: ENCODINGS[name] for name in encodings},
        separator=roster.separator,
        columns=roster.columns,
        unused_columns=tuple(one.name for one in roster.columns if not one.field),
        skipped=roster.skipped,
        people=len(roster.rows),
        first_people=roster.rows[:_MOST_SHOWN],
    )


def import_roster(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    rows: Sequence[RosterRow],
    hides: bool = True,
) -> RosterChanges:
    """Add, change and hide learners; doing it twice changes nothing the second time.

    Instructors and assistants are left as they are, also where the roster names them.

    Args:
        rows: the roster.
        hides: learners whom it does not name are hidden.

    Raises:
        NotFound: there is no such course.
    """
    changes = put_roster(connection, now_ms, course_id, rows, hides)
    counts = changes.counts
    if any(counts.values()):
        audit.note(connection, now_ms, actor, "roster imported", course_id, counts)
    return changes


def put_roster(
    connection: Connection,
    now_ms: int,
    course_id: str,
    rows: Sequence[RosterRow],
    hides: bool = True,
) -> RosterChanges:
    """Import a roster without a line in the log; see `import_roster`."""
    plan = _plan(connection, course_id, rows, hides)
    changes = plan.changes
    touched = {*changes.added, *changes.changed, *changes.returned}
    for row in rows:
        if row.username in touched:
            _put(connection, now_ms, course_id, row)
    for username in changes.hidden:
        connection.execute(
            update(MEMBERSHIPS)
            .where(
                MEMBERSHIPS.c.course == course_id,
                MEMBERSHIPS.c.person == plan.people[username],
            )
            .values(hidden_ms=now_ms)
        )
    return changes


def add_learner(
    connection: Connection, now_ms: int, actor: str, course_id: str, row: RosterRow
) -> None:
    """Add one learner, who is not of the course yet."""
    _put(connection, now_ms, course_id, row)
    person = person_of(connection, row.username)
    audit.note(connection, now_ms, actor, "learner added", person, None, course_id)


def preview(
    connection: Connection, course_id: str, rows: Sequence[RosterRow]
) -> RosterChanges:
    """Tell what an import would change.

    Raises:
        NotFound: there is no such course.
    """
    return _plan(connection, course_id, rows).changes


class _Plan(NamedTuple):
    changes: RosterChanges
    #: ids by user name, of those who are there
    people: dict[str, str]


def _plan(
    connection: Connection,
    course_id: str,
    rows: Sequence[RosterRow],
    hides: bool = True,
) -> _Plan:
    course(connection, course_id)
    there = {member.username: member for member in members(connection, course_id)}
    added, changed, returned, unchanged = [], [], [], 0
    for row in rows:
        member = there.get(row.username)
        if member is None:
            added.append(row.username)
        elif member.role != "learner":
            unchanged += 1
        elif member.is_hidden:
            returned.append(row.username)
        elif _differs(member, row):
            changed.append(row.username)
        else:
            unchanged += 1
    named = {row.username for row in rows}
    hidden = sorted(
        member.username
        for member in there.values()
        if hides
        and member.role == "learner"
        and not member.is_hidden
        and member.username not in named
    )
    changes = RosterChanges(
        tuple(added),
        tuple(changed),
        tuple(hidden),
        tuple(returned),
        unchanged,
        alike(rows, there.values()),
    )
    return _Plan(changes, {name: member.person for name, member in there.items()})


def _differs(member: Member, row: RosterRow) -> bool:
    """Whether a roster says something else; of a column it lacks it says nothing."""
    return any(
        getattr(row, name) not in (None, getattr(member, name))
        for name in (*_NAMES, "section", "team")
    )


def _put(connection: Connection, now_ms: int, course_id: str, row: RosterRow) -> None:
    person = ensure_person(connection, now_ms, row.username)
    _put_membership(connection, course_id, person, row)
    if row.team is not None:
        _put_team(connection, course_id, person, row.team)


def _put_membership(
    connection: Connection, course_id: str, person: str, row: RosterRow
) -> None:
    key = (MEMBERSHIPS.c.course == course_id) & (MEMBERSHIPS.c.person == person)
    names = {name: getattr(row, name) for name in _NAMES}
    values: dict[str, str | None] = {
        "hidden_ms": None,
        **{name: text for name, text in names.items() if text is not None},
    }
    is_new = connection.execute(select(MEMBERSHIPS).where(key)).first() is None
    if row.section is not None or is_new:
        name = row.section or MAIN_SECTION
        values["section"] = section_id(connection, course_id, name)
    if is_new:
        begun = {"course": course_id, "person": person, "role": "learner", **values}
        connection.execute(insert(MEMBERSHIPS).values(**begun))
    else:
        connection.execute(update(MEMBERSHIPS).where(key).values(**values))


def _put_team(connection: Connection, course_id: str, person: str, name: str) -> None:
    connection.execute(
        delete(TEAM_MEMBERS).where(
            TEAM_MEMBERS.c.course == course_id, TEAM_MEMBERS.c.person == person
        )
    )
    if name:
        team = _team_id(connection, course_id, name)
        connection.execute(
            insert(TEAM_MEMBERS).values(course=course_id, person=person, team=team)
        )


def _team_id(connection: Connection, course_id: str, name: str) -> str:
    query = select(TEAMS.c.id).where(TEAMS.c.course == course_id, TEAMS.c.name == name)
    team = connection.execute(query).scalar()
    if team is None:
        team = new_id()
        connection.execute(insert(TEAMS).values(id=team, course=course_id, name=name))
    return team


_MOST_NOTES = 30
_MOST_NAMES = 10


def alike(rows: Sequence[RosterRow], there: Iterable[Member]) -> tuple[str, ...]:
    """Say which names differ in little, and which addresses are of several people.

    Args:
        rows: of a roster.
        there: who is in the course; what the roster says of them is in its place.
    """
    named = {row.username for row in rows}
    people: list[RosterRow | Member] = [*rows]
    people += [one for one in there if one.username not in named]
    notes = [
        *_spellings("sections", (one.section for one in people)),
        *_spellings("teams", (one.team for one in people)),
        *_shared("one e-mail address", people, _email),
        *_shared("one name, but for case and accents,", people, _name),
    ]
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], *([f"and {more:,} more"] if more > 0 else []))


def _spellings(what: str, names: Iterable[str | None]) -> Iterator[str]:
    by_key: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name:
            by_key[key_of(name) or name].add(name)
    for spelled in by_key.values():
        if len(spelled) > 1:
            words = f"{what} that differ in case, accents or signs alone"
            yield f"{words}: {_listed(sorted(spelled))}"


def _shared(
    what: str,
    people: Iterable[RosterRow | Member],
    key: Callable[[RosterRow | Member], str],
) -> Iterator[str]:
    # each once: a line that comes twice is still one person
    by_key: dict[str, dict[str, None]] = defaultdict(dict)
    for one in people:
        if key(one):
            by_key[key(one)][one.username] = None
    for usernames in by_key.values():
        if len(usernames) > 1:
            yield f"{what} of several people: {_listed([*usernames])}"


def _email(one: RosterRow | Member) -> str:
    return (one.email or "").casefold()


def _name(one: RosterRow | Member) -> str:
    """Write a whole name so that Müller, Muller and MUELLER are equal."""
    if not (one.first_name and one.last_name):
        return ""
    return re.sub("(?<=[aou])e", "", key_of(f"{one.first_name} {one.last_name}"))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
