"""Comments and rubrics: what people give a submission, and what it is worth then."""

from __future__ import annotations

import pytest

from tests.hub.core.course import Classroom, facts
from warpbook_hub.course.publications import publication, publish, set_rubric
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.rules.rubric import Rubric, RubricRow
from warpbook_hub.work.feedback import comment, comments, give_points, remove_comment
from warpbook_hub.work.marks import marks_of
from warpbook_hub.work.results import standing

DATABASES = ("sqlite", "postgres")
ROWS = (RubricRow("Style", 4), RubricRow("Reasons", 6))


def counted(
    room: Classroom, name: str = "ada"
) -> tuple[float | None, float, str | None]:
    with room.database.read() as connection:
        [mark] = marks_of(connection, room.now_ms, "gpu101", room.people[name])
    return mark.points, mark.most_points, mark.computed.submission


def test_a_rubric_adds_to_the_graders_points_or_replaces_them(room: Classroom) -> None:
    grader, now_ms, who = room.grader(), room.now_ms, room.instructor
    first = room.submit("ada", "// right").submission
    room.grade(grader)
    second = room.submit("ada", "// wrong, and well explained").submission
    room.grade(grader, facts("wrong", 1))
    with room.database.write() as connection:
        set_rubric(connection, now_ms, who, room.lab, Rubric(ROWS))
        give_points(connection, now_ms, who, second, {"Style": 3, "Reasons": 6})
    assert counted(room) == (10, 20, first)
    assert counted(room, "bob") == (None, 20, None)
    with room.database.write() as connection:
        set_rubric(connection, now_ms, who, room.lab, Rubric(ROWS, replaces=True))
    with room.database.read() as connection:
        results = [standing(connection, one).result for one in (first, second)]
    assert [one and one.is_marked for one in results] == [False, True]
    # what nobody has looked at has no points, and is not the best for it
    assert counted(room) == (9, 10, second)
    with room.database.write() as connection:
        give_points(connection, now_ms, who, second, {"Style": None})
    assert counted(room)[2] is None
    with room.database.write() as connection:
        # dates and points that are published anew leave the rubric
        publish(connection, now_ms, who, publication(connection, room.lab))
        assert publication(connection, room.lab).rubric.rows == ROWS
        for given in ({"Style": 5}, {"Style": -1}, {"Style": float("nan")}, {"": 1}):
            with pytest.raises(BadRequest):
                give_points(connection, now_ms, who, first, given)


def test_comments_are_of_lines_and_go_with_their_person(room: Classroom) -> None:
    work, who = room.submit("ada", "one\ntwo").submission, room.instructor
    with room.database.write() as connection:
        at = (connection, room.now_ms, who, work)
        last = comment(*at, 2, "<script>alert(1)</script>\u202e")
        comment(*at, 0, "Well done.")
        shown = [(one.line, one.note) for one in comments(connection, work)]
        assert shown == [(0, "Well done."), (2, "<script>alert(1)</script>")]
        for line, note in ((3, "x"), (-1, "x"), (1, " "), (1, "x" * 4_001)):
            with pytest.raises(BadRequest):
                comment(*at, line, note)
        remove_comment(*at, last)
        with pytest.raises(Conflict):
            remove_comment(*at, last)
        erase(connection, room.now_ms, who, room.people["ada"], "they asked")
        assert comments(connection, work) == []
