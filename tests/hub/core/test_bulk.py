"""What is done to many cells of the gradebook at once, and taken back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from tests.hub.core.course import DUE_MS, Classroom, facts
from warpbook_hub import audit
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.mark_settings import hide_marks
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import BULK_ACTIONS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.work import bulk
from warpbook_hub.work.bulk import Done, carry_out, plan
from warpbook_hub.work.bulk_actions import Action, Order
from warpbook_hub.work.decisions import override
from warpbook_hub.work.marks import Mark, all_marks
from warpbook_hub.work.results import standing

DATABASES = ("sqlite", "postgres")
LATER_MS = DUE_MS + 24 * HOUR_MS


def order(
    room: Classroom, action: Action, names: Sequence[str], due_ms: int | None = None
) -> Order:
    return Order(action, {room.lab: [room.people[n] for n in names]}, "strike", due_ms)


def done(room: Classroom, of: Order, number: str = "r1") -> Done:
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor, "gpu101")
        return carry_out(connection, *who, number, of)


def undone(room: Classroom, number: str = "r1") -> int:
    with room.database.write() as connection:
        return bulk.undo(connection, room.now_ms, room.instructor, "gpu101", number)


def due(room: Classroom, name: str) -> int:
    with room.database.read() as connection:
        window = window_of(connection, room.lab, room.people[name])
    assert window is not None
    return window.due_ms


def log(room: Classroom) -> list[str]:
    with room.database.read() as connection:
        return [one.action for one in audit.entries(connection, course="gpu101")]


def test_an_extension_of_many_is_one_action_and_is_taken_back(room: Classroom) -> None:
    lines = len(log(room))
    wanted = order(room, "extend", ("ada", "bob"), LATER_MS)
    with room.database.read() as connection:
        told = [
            (one.from_ms, one.to_ms) for one in plan(connection, room.now_ms, wanted)
        ]
    assert told == [(DUE_MS, LATER_MS)] * 2
    first = done(room, wanted)
    # a double click
    assert done(room, wanted) == first
    assert first.changed == 2
    assert [due(room, name) for name in ("ada", "bob", "cyd")] == [
        *(LATER_MS, LATER_MS, DUE_MS)
    ]
    assert log(room)[lines:] == ["extend of a selection"]
    with pytest.raises(Conflict, match="something else"):
        done(room, order(room, "extend", ("cyd",), LATER_MS))
    # what somebody decided since stays
    at = (room.now_ms + 1, room.instructor, room.lab, room.people["bob"])
    with room.database.write() as connection:
        extend(connection, *at, LATER_MS + HOUR_MS, LATER_MS + HOUR_MS, "ill")
    assert undone(room) == 1
    assert [due(room, name) for name in ("ada", "bob")] == [DUE_MS, LATER_MS + HOUR_MS]
    with pytest.raises(Conflict, match="undone"):
        undone(room)
    for bad in (order(room, "extend", ("ada",)), Order("regrade", {}, " ")):
        with pytest.raises(BadRequest):
            done(room, bad, "r2")
    # who is erased is in no order
    done(room, order(room, "extend", ("cyd",), LATER_MS), "r3")
    with room.database.write() as connection:
        erase(connection, room.now_ms, "hub", room.people["cyd"], "asked for it")
        orders = connection.execute(select(BULK_ACTIONS.c.undo)).scalars().all()
    assert not any(room.people["cyd"] in one for one in orders)
    with pytest.raises(Conflict, match="can't be undone"):
        undone(room, "r3")


def test_a_regrade_of_many_is_cancelled_where_it_still_waits(room: Classroom) -> None:
    grader = room.grader()
    work = {name: room.submit(name).submission for name in ("ada", "bob")}
    for right in (4, 2):
        room.grade(grader, facts("right" if right == 4 else "wrong", right))
    waits = room.submit("cyd").submission
    names = ("ada", "bob", "cyd")
    with room.database.read() as connection:
        planned = plan(connection, room.now_ms, order(room, "regrade", names))
    assert {one.person: one.is_skipped for one in planned} == {
        room.people[name]: name == "cyd" for name in names
    }
    assert done(room, order(room, "regrade", names)).changed == 2
    room.grade(grader)
    room.grade(grader, facts("wrong", 1))
    assert undone(room) == 1
    with room.database.read() as connection:
        states = [standing(connection, one) for one in (*work.values(), waits)]
    assert [one.state for one in states] == ["graded"] * 3
    rights = [one.result.facts.right for one in states if one.result]
    # of two regrades one has ended, and the result before counts for the other
    assert sorted(rights[:2]) in ([1, 2], [1, 4])
    assert log(room)[-2:] == ["regrade of a selection", "regrade of a selection undone"]


def test_parked_jobs_of_a_selection_are_tried_again(room: Classroom) -> None:
    grader = room.grader()
    work = room.submit("ada").submission
    with room.database.write() as connection:
        connection.exec_driver_sql("UPDATE jobs SET state = 'parked', note = 'no GPU'")
    # a regrade that is taken back leaves it parked
    assert (
        done(room, order(room, "regrade", ("ada",)), "r0").changed,
        undone(room, "r0"),
    ) == (1, 1)
    assert marks(room)[0].state == "parked"
    wanted = order(room, "retry", ("ada", "bob"))
    with room.database.read() as connection:
        [only] = plan(connection, room.now_ms, wanted)
    assert "no GPU" in only.words
    assert not done(room, wanted).may_undo
    room.grade(grader)
    with room.database.read() as connection:
        assert standing(connection, work).state == "graded"
    with pytest.raises(Conflict, match="can't be undone"):
        undone(room)


def test_excuses_and_hidden_marks_are_taken_back(room: Classroom) -> None:
    room.submit("ada")
    room.grade(room.grader())
    at = (room.now_ms, room.instructor, room.lab, room.people["bob"])
    with room.database.write() as connection:
        override(connection, *at, 3, "by hand")
    assert done(room, order(room, "excuse", ("ada", "bob"))).changed == 2
    assert {one.state for one in marks(room)} == {"excused", "not handed in"}
    assert done(room, order(room, "hide", ("ada", "bob")), "r2").changed == 1
    assert done(room, order(room, "hide", ("cyd",)), "r3").changed == 0
    assert all(one.is_hidden for one in marks(room))
    assert (undone(room), undone(room, "r2")) == (2, 1)
    assert [one.points for one in marks(room)] == [10, 3, None]
    assert not any(one.is_hidden for one in marks(room))
    # somebody else has released and hidden them since
    assert done(room, order(room, "hide", ("ada",)), "r4").changed == 1
    with room.database.write() as connection:
        for later, is_hidden in ((1, False), (2, True)):
            who = (room.now_ms + later, room.instructor)
            hide_marks(connection, *who, [room.lab], is_hidden)
    assert undone(room, "r4") == 0
    assert all(one.is_hidden for one in marks(room))


def marks(room: Classroom) -> list[Mark]:
    with room.database.read() as connection:
        by_person = all_marks(connection, room.now_ms, "gpu101")
    return [by_person[room.people[name]][0] for name in ("ada", "bob", "cyd")]
