"""A team has one deadline: the latest of any member, by section or extension."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import (
    CLOSES_MS,
    DUE_MS,
    START_MS,
    WINDOW,
    Classroom,
    classroom,
    publish_lab,
)
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.course.windows import windows_of
from warpbook_hub.errors import NotOpen
from warpbook_hub.rules.lateness import HOUR_MS, Window
from warpbook_hub.work.marks import marks_of
from warpbook_hub.work.submissions import receipt

#: after the lab has closed for everybody else
EXTENDED_DUE_MS, EXTENDED_CLOSES_MS = CLOSES_MS + HOUR_MS, CLOSES_MS + 2 * HOUR_MS


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Classroom]:
    """A lab of teams: bob of monday and cyd of tuesday are one, ada is in none."""
    made = classroom(tmp_path / "hub.db", is_team_work=True, late_percent_per_day=25)
    yield made
    made.database.close()


def extend_for(room: Classroom, name: str, due_ms: int, closes_ms: int) -> None:
    with room.database.write() as connection:
        given = (room.lab, room.people[name], due_ms, closes_ms, "was ill")
        extend(connection, room.now_ms, room.instructor, *given)


def points_of(room: Classroom, name: str) -> list[float]:
    with room.database.read() as connection:
        marks = marks_of(connection, room.now_ms, "gpu101", room.people[name])
    return [mark.points for mark in marks if mark.publication == room.lab]


def test_an_extension_of_one_holds_for_the_whole_team(room: Classroom) -> None:
    room.now_ms = CLOSES_MS + 1
    for name in ("bob", "cyd"):
        with pytest.raises(NotOpen):
            room.submit(name)
    extend_for(room, "cyd", EXTENDED_DUE_MS, EXTENDED_CLOSES_MS)
    # her mate hands in for both, and is in time as she would be
    given = room.submit("bob")
    assert given.late_hours == 0
    room.grade(room.grader())
    assert points_of(room, "bob") == points_of(room, "cyd") == [10]
    with pytest.raises(NotOpen):
        room.submit("ada")


def test_an_extension_after_handing_in_late_takes_the_penalty_from_all(
    room: Classroom,
) -> None:
    room.now_ms = DUE_MS + HOUR_MS
    given = room.submit("bob")
    assert given.late_hours == 2
    room.grade(room.grader())
    assert points_of(room, "bob") == points_of(room, "cyd") == [7.5]
    extend_for(room, "cyd", EXTENDED_DUE_MS, EXTENDED_CLOSES_MS)
    assert points_of(room, "bob") == points_of(room, "cyd") == [10]
    with room.database.read() as connection:
        assert receipt(connection, given.submission).late_hours == 0


def test_the_latest_date_of_any_member_counts(room: Classroom) -> None:
    extend_for(room, "bob", EXTENDED_DUE_MS, EXTENDED_DUE_MS)
    extend_for(room, "cyd", DUE_MS + HOUR_MS, EXTENDED_CLOSES_MS)
    people = [room.people[name] for name in ("ada", "bob", "cyd")]
    with room.database.read() as connection:
        ada, bob, cyd = windows_of(connection, room.lab, people).values()
        alone = windows_of(connection, room.lab, people[2:]).values()
    assert ada == WINDOW
    assert bob == cyd == Window(START_MS, EXTENDED_DUE_MS, EXTENDED_CLOSES_MS)
    assert list(alone) == [cyd]


def test_a_member_of_a_later_section_counts_too(room: Classroom) -> None:
    later = Window(START_MS + HOUR_MS, DUE_MS + 9 * HOUR_MS, CLOSES_MS + 9 * HOUR_MS)
    with room.database.write() as connection:
        windows = {"": WINDOW, "tuesday": later}
        publish_lab(connection, "gpu101", is_team_work=True, windows=windows)
        people = [room.people[name] for name in ("bob", "cyd")]
        bob, cyd = windows_of(connection, room.lab, people).values()
    # when it opens stays a matter of the section
    assert bob == Window(START_MS, later.due_ms, later.closes_ms)
    assert cyd == later


def test_a_mate_who_left_the_roster_still_counts(room: Classroom) -> None:
    extend_for(room, "cyd", EXTENDED_DUE_MS, EXTENDED_CLOSES_MS)
    with room.database.write() as connection:
        rows = read_roster(b"username\nada\nbob\n")
        import_roster(connection, room.now_ms, room.instructor, "gpu101", rows)
    room.now_ms = EXTENDED_DUE_MS - HOUR_MS
    assert room.submit("bob").late_hours == 0


def test_where_each_works_alone_an_extension_is_of_one(room: Classroom) -> None:
    with room.database.write() as connection:
        room.lab = publish_lab(connection, "gpu101", lab="transpose")
    extend_for(room, "cyd", EXTENDED_DUE_MS, EXTENDED_CLOSES_MS)
    room.now_ms = CLOSES_MS + 1
    assert room.submit("cyd").late_hours == 0
    with pytest.raises(NotOpen):
        room.submit("bob")
