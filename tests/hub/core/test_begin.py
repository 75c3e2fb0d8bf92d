"""A start adds whom the database does not know, and changes no other member."""

from __future__ import annotations

import pytest

from tests.hub.core.course import Classroom, person_of
from warpbook_hub import audit
from warpbook_hub.course.courses import (
    Course,
    add_staff,
    members,
    remove_staff,
    staff_names,
)
from warpbook_hub.course.operators import operator
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.running.begin import begin_course

DATABASES = ("sqlite", "postgres")
COURSE = Course("gpu101", "GPU programming")


def started(
    room: Classroom, *instructors: str, operators: tuple[str, ...] = ("opal",)
) -> str:
    """Start the hub, and give what it says of people."""
    with room.database.write() as connection:
        return begin_course(
            connection, room.now_ms, COURSE, instructors, operators, ("opal",)
        )


def roles(room: Classroom) -> dict[str, str]:
    with room.database.read() as connection:
        return {
            one.username: "off" if one.is_hidden else one.role
            for one in members(connection, COURSE.id)
        }


def test_a_start_adds_an_instructor_once_and_says_so(room: Classroom) -> None:
    assert "Added as instructor: olga" in started(room, "Olga ")
    assert started(room, "olga").count("olga") == 1
    with room.database.read() as connection:
        olga = person_of(connection, "olga")
        (entry,) = audit.entries(connection, subject=olga)
    assert (entry.actor, entry.action, entry.course) == ("hub", "staff added", "gpu101")


def test_a_start_changes_no_role_that_the_database_has(room: Classroom) -> None:
    started(room, "olga", "otto")
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.instructor, COURSE.id)
        remove_staff(*who, person_of(connection, "olga"))
        add_staff(*who, "otto", "assistant")
    before = roles(room)
    said = started(room, "olga", "otto", "ada")
    for name in ("olga was removed", "otto is assistant", "ada is learner"):
        assert f"NOT ADDED: {name}" in said
    assert roles(room) == before
    assert "Run by grace\n" in said
    # who runs the course brings them back
    with room.database.write() as connection:
        add_staff(connection, 2, room.instructor, COURSE.id, "olga", "instructor")
    assert roles(room)["olga"] == "instructor"


def test_a_new_course_has_somebody_who_runs_it(room: Classroom) -> None:
    with room.database.write() as connection, pytest.raises(BadRequest, match="--inst"):
        begin_course(connection, 1, Course("new", "New"), [], ["opal"])
    with room.database.write() as connection:
        begin_course(connection, 1, Course("new", "New"), [], ["opal"], ["opal"])
        assert [one.username for one in members(connection, "new")] == ["opal"]


def test_operators_are_those_of_the_last_start(room: Classroom) -> None:
    started(room, operators=("Opal", "grace"))
    with room.database.write() as connection:
        opal = operator(connection, "opal")
        assert opal and operator(connection, "grace") == room.instructor
        # a demo and a platform take them for staff
        assert {"opal", "grace"} <= staff_names(connection)
        # an instructor puts them on a roster, and does not get rid of them so
        add_staff(connection, 1, room.instructor, COURSE.id, "opal", "assistant")
        with pytest.raises(Conflict, match="operates the hub"):
            erase(connection, 1, room.instructor, opal, "a grudge")
    assert "Operated by grace" in started(room, operators=("grace",))
    with room.database.read() as connection:
        assert operator(connection, "opal") == ""
        actions = [one.action for one in audit.entries(connection, course="")]
    assert actions == ["operator added", "operator added", "operator removed"]
