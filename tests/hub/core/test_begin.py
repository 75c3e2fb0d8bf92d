"""What a service does to its course whenever it starts."""

from __future__ import annotations

import pytest

from tests.hub.core.course import Classroom, person_of
from warpbook.hub.course.courses import Course, remove_staff, staff_names
from warpbook.hub.running.begin import begin_course

COURSE = Course("gpu101", "GPU programming")


@pytest.mark.parametrize(("only_new", "is_back"), [(True, False), (False, True)])
def test_an_instructor_who_was_removed_comes_back_only_where_the_owner_says_so(
    room: Classroom, only_new: bool, is_back: bool
) -> None:
    """Who starts `warpbook hub` by hand says so; a pod that starts anew does not."""
    with room.database.write() as connection:
        begin_course(connection, room.now_ms, COURSE, ["olga"], only_new=True)
        assert "olga" in staff_names(connection)
        olga = person_of(connection, "olga")
        remove_staff(connection, room.now_ms, room.instructor, COURSE.id, olga)
        begin_course(connection, room.now_ms, COURSE, ["olga"], only_new)
        assert ("olga" in staff_names(connection)) == is_back
