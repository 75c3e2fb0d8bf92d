"""A regrade that is cancelled changes nothing: whole results count, and no halves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import Classroom, classroom, facts
from warpbook.hub_protocol import GradedFacts, JobOrder, Ratio
from warpbook_hub.database.tables import JOBS
from warpbook_hub.queue import control
from warpbook_hub.rules.points import PointScheme, Threshold
from warpbook_hub.work.decisions import regrade
from warpbook_hub.work.marks import marks_of
from warpbook_hub.work.results import Standing, results, standing

GPU = "GPU-one-0"
SCHEME = PointScheme((Threshold("right", 1, 10), Threshold("of_baseline", 1.0, 5)))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Classroom]:
    made = classroom(tmp_path / "hub.db", scheme=SCHEME)
    yield made
    made.database.close()


def timed() -> GradedFacts:
    """What a GPU says of a source that is right and fast."""
    ratio = Ratio(1.4, 1.5, 1.6)
    return GradedFacts("right", "passed", "so it went", 4, 4, "", True, ratio, ratio)


def begin_regrade(room: Classroom, submission: str) -> None:
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor)
        assert regrade(connection, *who, [submission], "a mistake of ours") == 1


def cancel_open(room: Classroom) -> None:
    with room.database.write() as connection:
        is_open = JOBS.c.state.in_(("queued", "leased", "parked"))
        [job] = connection.execute(JOBS.select().where(is_open)).all()
        who = (room.now_ms, room.instructor)
        control.cancel(connection, *who, job.id, "the GPU is needed")


def state_of(room: Classroom, submission: str) -> tuple[Standing, float, float]:
    with room.database.read() as connection:
        now = standing(connection, submission)
        [mark] = marks_of(connection, room.now_ms, "gpu101", room.people["ada"])
    return now, mark.points, mark.most_points


def graded_whole(room: Classroom, grader: str) -> str:
    submission = room.submit("ada").submission
    room.grade(grader)
    room.grade(grader, timed(), GPU)
    return submission


def lease_on_gpu(room: Classroom, grader: str) -> JobOrder:
    (order,) = room.lease(grader, 0, (GPU,))
    return order


def test_a_regrade_cancelled_before_its_gpu_stage_leaves_the_old_result(
    room: Classroom,
) -> None:
    grader = room.grader(gpus=1)
    submission = graded_whole(room, grader)
    before = state_of(room, submission)
    assert before[1:] == (15, 15)
    begin_regrade(room, submission)
    room.grade(grader)
    cancel_open(room)
    assert state_of(room, submission)[1:] == (15, 15)
    now = state_of(room, submission)[0]
    assert (now.state, now.is_provisional) == ("graded", False)
    assert now.result == before[0].result
    # what the regrade came to is kept, to look at
    with room.database.read() as connection:
        runs = [(one.run, one.stage) for one in results(connection, submission)]
    assert runs == [(1, "cpu"), (1, "gpu"), (2, "cpu")]


def test_a_result_of_a_cancelled_gpu_stage_comes_too_late(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    submission = graded_whole(room, grader)
    before = state_of(room, submission)
    begin_regrade(room, submission)
    room.grade(grader)
    order = lease_on_gpu(room, grader)
    cancel_open(room)
    assert not room.finish(grader, order, facts("wrong", 1)).is_accepted
    assert state_of(room, submission)[0].result == before[0].result


def test_a_regrade_cancelled_at_once_leaves_the_old_result(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    submission = graded_whole(room, grader)
    begin_regrade(room, submission)
    cancel_open(room)
    now, points, _ = state_of(room, submission)
    assert (now.state, points) == ("graded", 15)


def test_a_regrade_after_a_cancelled_one_counts(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    submission = graded_whole(room, grader)
    begin_regrade(room, submission)
    room.grade(grader)
    cancel_open(room)
    begin_regrade(room, submission)
    room.grade(grader, facts("wrong", 1))
    now, points, _ = state_of(room, submission)
    assert now.result is not None and (now.result.run, points) == (3, 0)


def test_a_first_run_without_its_gpu_stage_keeps_what_is_known(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    submission = room.submit("ada").submission
    room.grade(grader)
    cancel_open(room)
    now, points, most = state_of(room, submission)
    # speed is out of reach, and costs nothing
    assert (now.state, points, most) == ("graded", 10, 10)


def test_what_is_cancelled_before_any_result_says_so(room: Classroom) -> None:
    room.grader()
    submission = room.submit("ada").submission
    cancel_open(room)
    assert state_of(room, submission)[0].state == "cancelled"
    begin_regrade(room, submission)
    cancel_open(room)
    assert state_of(room, submission)[0].state == "cancelled"
