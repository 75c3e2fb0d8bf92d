"""The final of a competition: everybody's best, measured in turns on one GPU."""

from __future__ import annotations

import pytest

from tests.hub.core.competition import (
    GPUS,
    end,
    open_board,
    race,
    ranks,
    shown,
    speed_of,
    start_final,
)
from tests.hub.core.course import DUE_MS, Classroom, facts, timed
from warpbook.hub_protocol import Device, Hello, Ratio
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.queue import control, graders
from warpbook_hub.queue.overview import queue
from warpbook_hub.work.marks import marks_of
from warpbook_hub.work.results import results, standing

DATABASES = ("sqlite", "postgres")


def test_a_final_measures_everybody_in_turns_on_one_gpu(room: Classroom) -> None:
    grader = room.grader(gpus=2)
    other = room.grader("two", gpus=1)
    open_board(room, "ada", "bob", "cyd")
    race(room, grader, "ada", 2.0)
    best = race(room, grader, "ada", 2.5)
    race(room, grader, "bob", 2.4)
    race(room, grader, "cyd", 1.0)
    with room.database.read() as connection:
        before = standing(connection, best)
        marks = marks_of(connection, room.now_ms, "gpu101", room.people["ada"])
    with pytest.raises(Conflict, match="due date"):
        start_final(room, grader)
    room.now_ms = DUE_MS + 1
    assert start_final(room, grader).jobs == 9
    room.submit("bob", "// late")
    room.grade(grader)
    # the final's own GPU is for it alone, and no other takes part
    assert room.lease(other, 0, ("GPU-two-0",))[0].source == "// late"
    assert room.lease(grader, 0, (GPUS[1],)) == ()
    drawn: list[str] = []
    for _ in range(9):
        (order,) = room.lease(grader, 0, (GPUS[0],))
        assert room.lease(grader, 0, (GPUS[0],)) == ()
        drawn.append(order.source)
        # one is faster now than when it was handed in
        middle = speed_of(order) + (0.5 if order.source == "// 2.4" else 0.0)
        assert room.finish(grader, order, timed(middle)).is_accepted
    rounds = [sorted(drawn[start : start + 3]) for start in (0, 3, 6)]
    assert rounds == [["// 1.0", "// 2.4", "// 2.5"]] * 3
    assert room.lease(grader, 0, (GPUS[0],)) == ()
    # marks and results are what they were
    with room.database.read() as connection:
        assert standing(connection, best) == before
        assert marks_of(connection, room.now_ms, "gpu101", room.people["ada"]) == marks
        assert [result.run for result in results(connection, best)] == [1, 1]
    # learners see nothing of it until the end
    assert (shown(room, "ada").final, shown(room, "ada").final_entries) == (None, ())
    staff = shown(room, "grace")
    assert staff.final is not None
    assert (staff.final.done, staff.final.jobs) == (9, 9)
    # what is late holds nothing up, though it still runs
    end(room)
    final = [
        (entry.rank, entry.pseudonym) for entry in shown(room, "cyd").final_entries
    ]
    assert final == [(1, "bank conflict"), (2, "Warp Nine"), (3, "Ñandú 3")]
    # those of the submissions stay beside them
    assert ranks(room, "cyd") == [
        (1, "Warp Nine"),
        (1, "bank conflict"),
        (3, "Ñandú 3"),
    ]
    with pytest.raises(Conflict, match="ended"):
        start_final(room, grader)


def test_a_final_goes_on_where_it_was_after_kills(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    room.finish(grader, first, timed(speed_of(first)))
    (second,) = room.lease(grader, 0, (GPUS[0],))
    # the service is killed and begins anew, then the grader
    room.database.close()
    room.database = HubDatabase(room.database.path)
    with room.database.write() as connection:
        hello = Hello(1, (Device(GPUS[0], "H100"),))
        graders.hello(connection, room.now_ms, grader, hello)
    (again,) = room.lease(grader, 0, (GPUS[0],))
    assert (again.job, again.fence) == (second.job, second.fence + 1)
    assert not room.finish(grader, second).is_accepted
    assert room.finish(grader, again, timed(speed_of(again))).is_accepted
    for _ in range(4):
        (order,) = room.lease(grader, 0, (GPUS[0],))
        room.finish(grader, order, timed(speed_of(order)))
    final = [(one.rank, one.pseudonym) for one in shown(room, "grace").final_entries]
    assert final == [(1, "bank conflict"), (2, "Warp Nine")]


def test_the_order_of_a_final_waits_for_a_busy_gpu(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    room.finish(grader, first, facts("too busy"))
    assert room.lease(grader, 0, (GPUS[0],)) == ()
    room.now_ms += 60_000
    (again,) = room.lease(grader, 0, (GPUS[0],))
    assert again.job == first.job


def test_a_final_that_is_begun_anew_replaces_the_one_before(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    again = start_final(room, grader, 4)
    assert (again.number, again.jobs) == (2, 4)
    assert not room.finish(grader, first, timed(9.0)).is_accepted
    middles = (2.1, 2.2, 2.3, 9.9)
    for middle in middles:
        (order,) = room.lease(grader, 0, (GPUS[0],))
        room.finish(grader, order, timed(middle))
    [entry] = shown(room, "grace").final_entries
    assert entry.of_baseline == Ratio(2.1, 2.25, 9.9)


def test_the_end_waits_for_what_counts(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    room.submit("ada", "// 3.0")
    room.now_ms = DUE_MS + 1
    for begin in (lambda: start_final(room, grader), lambda: end(room)):
        with pytest.raises(Conflict, match="not graded yet: 1"):
            begin()
    room.grade(grader)
    room.grade(grader, timed(3.0), GPUS[0])
    start_final(room, grader)
    with pytest.raises(Conflict, match="not graded yet: 1"):
        end(room)
    with room.database.write() as connection:
        for job in queue(connection, room.now_ms, "gpu101"):
            who = (room.now_ms, room.instructor)
            control.cancel(connection, *who, job.job, "the GPU is needed")
    end(room)
    # without three rounds there is no final speed
    assert (shown(room, "ada").final_entries, ranks(room, "ada")) == (
        (),
        [(1, "Warp Nine")],
    )


def test_a_final_needs_a_gpu_that_is_there(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    room.now_ms = DUE_MS + 1
    with pytest.raises(Conflict, match="Nobody"):
        start_final(room, grader)
    with pytest.raises(Conflict, match="Choose another"):
        start_final(room, room.grader("two", gpus=1))
    with pytest.raises(BadRequest, match="3 to 15"):
        start_final(room, grader, 2)


def test_a_paused_final_holds_no_gpu_from_other_courses(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob", "cyd")
    race(room, grader, "ada", 2.0)
    room.now_ms = DUE_MS + 1
    jobs = start_final(room, grader).jobs
    with room.database.write() as connection:
        control.pause(connection, room.now_ms, room.instructor, "a wrong lab", "gpu101")
    room.submit_elsewhere("// theirs")
    room.grade(grader)
    room.grade(grader, timed(2.0), GPUS[0])
    assert room.lease(grader, 0, (GPUS[0],)) == ()
    with room.database.write() as connection:
        control.resume(connection, room.now_ms, room.instructor, "gpu101")
    for _ in range(jobs):
        room.grade(grader, timed(2.0), GPUS[0])
