"""The order of the queue, its leases, and that each job has exactly one result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.core.course import (
    CLOSES_MS,
    START_MS,
    Classroom,
    classroom,
    facts,
    publish_lab,
)
from warpbook.hub_protocol import Heartbeat, LeaseName, Release
from warpbook_hub.course.courses import Course
from warpbook_hub.database.tables import JOBS, REFUSED_RESULTS, RESULTS
from warpbook_hub.errors import Conflict, NoAttemptLeft, NotOpen, StillPending
from warpbook_hub.queue import completion, control, dispatch, graders, overview
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.work.decisions import regrade
from warpbook_hub.work.results import standing
from warpbook_hub.work.submissions import receive, submission

DATABASES = ("sqlite", "postgres")


def state(room: Classroom, submission_id: str) -> tuple[str, str]:
    with room.database.read() as connection:
        now = standing(connection, submission_id)
    return now.state, now.stage


def rows(room: Classroom, table: object) -> list[object]:
    with room.database.read() as connection:
        return list(connection.execute(table.select()).all())  # type: ignore[attr-defined]


def order_of(room: Classroom, grader: str, jobs: int) -> list[str]:
    """Grade so many jobs one after another, and tell whose each was."""
    names = {person: name for name, person in room.people.items()}
    served = []
    for _ in range(jobs):
        order = room.grade(grader, facts("wrong", 1))
        with room.database.read() as connection:
            job = connection.execute(JOBS.select().where(JOBS.c.id == order.job)).one()
            served.append(names[submission(connection, job.submission).person])
    return served


def test_everybodys_first_comes_before_anybodys_second(room: Classroom) -> None:
    grader = room.grader()
    room.submit("ada")
    assert order_of(room, grader, 1) == ["ada"]
    # ada is quicker with her second than others with their first
    room.submit("ada", "// second")
    room.now_ms += 1000
    room.submit("bob")
    room.now_ms += 1000
    room.submit("cyd")
    assert order_of(room, grader, 3) == ["bob", "cyd", "ada"]


def test_who_was_served_least_recently_is_next(room: Classroom) -> None:
    grader = room.grader()
    for name in ("cyd", "bob", "ada"):
        room.submit(name)
        room.now_ms += 1000
    assert order_of(room, grader, 3) == ["cyd", "bob", "ada"]
    for name in ("ada", "bob", "cyd"):
        room.submit(name, "// again")
        room.now_ms += 1000
    assert order_of(room, grader, 3) == ["cyd", "bob", "ada"]


def test_instructors_have_a_lane_and_raise_others_into_it(room: Classroom) -> None:
    grader = room.grader()
    for name in ("ada", "bob", "cyd", "grace"):
        room.submit(name)
        room.now_ms += 1000
    with room.database.write() as connection:
        jobs = overview.queue(connection, room.now_ms, "gpu101")
        [raised] = [job.job for job in jobs if job.person == room.people["cyd"]]
        control.raise_job(connection, room.now_ms, room.instructor, raised)
    assert order_of(room, grader, 4) == ["cyd", "grace", "ada", "bob"]


def test_regrades_wait_for_learners(room: Classroom) -> None:
    grader = room.grader()
    graded = room.submit("ada")
    room.grade(grader, facts("wrong", 1))
    with room.database.write() as connection:
        why = "the checker had a mistake"
        ids = [graded.submission]
        assert regrade(connection, room.now_ms, room.instructor, ids, why) == 1
        assert regrade(connection, room.now_ms, room.instructor, ids, why) == 0
    room.submit("bob")
    assert order_of(room, grader, 2) == ["bob", "ada"]


def test_one_waits_and_a_newer_one_takes_its_place_on_request(room: Classroom) -> None:
    grader = room.grader()
    first = room.submit("ada", "// one")
    with pytest.raises(StillPending, match="replace") as refused:
        room.submit("ada", "// two")
    assert refused.value.submission == first.submission
    second = room.submit("ada", "// two", replace=True)
    assert state(room, first.submission) == ("replaced", "cpu")
    order = room.grade(grader, facts("wrong", 1))
    assert order.source == "// two" and second.number == 2
    assert room.lease(grader) == ()
    # while it runs another one may wait
    room.submit("ada", "// three")
    room.lease(grader)
    room.submit("ada", "// four")


def test_a_replaced_submission_takes_no_attempt(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", most_attempts=2)
    grader = room.grader()
    room.submit("ada", "// one")
    room.submit("ada", "// two", replace=True)
    room.grade(grader, facts("wrong", 1))
    room.submit("ada", "// three")
    with pytest.raises(NoAttemptLeft, match="2 attempts"):
        room.submit("ada", "// four", replace=False) if room.grade(grader) else None
    room.database.close()


def test_a_parked_submission_takes_no_attempt(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", most_attempts=1)
    grader = room.grader()
    for source in ("// one", "// two"):
        room.submit("ada", source)
        (order,) = room.lease(grader)
        lease = LeaseName(order.job, order.fence)
        given_back = Release(lease, "can't grade", "no PyTorch here")
        with room.database.write() as connection:
            completion.release(connection, room.now_ms, grader, given_back)
    room.submit("ada", "// three")
    room.grade(grader, facts("wrong", 1))
    with pytest.raises(NoAttemptLeft, match="1 attempts"):
        room.submit("ada", "// four")
    room.database.close()


def test_a_team_has_one_turn_and_shares_its_work(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", is_team_work=True)
    receipt = room.submit("bob")
    with pytest.raises(StillPending):
        room.submit("cyd")
    room.submit("ada")
    with room.database.read() as connection:
        kept = submission(connection, receipt.submission)
    assert set(kept.members) == {room.people["bob"], room.people["cyd"]}
    room.database.close()


def test_a_late_result_of_a_lost_lease_is_refused_and_noted(room: Classroom) -> None:
    paused, quick = room.grader("paused"), room.grader("quick")
    receipt = room.submit("ada")
    (late,) = room.lease(paused)
    room.now_ms += int(dispatch.LEASE_S * 1000) + 1
    (order,) = room.lease(quick)
    assert (order.job, order.fence) == (late.job, late.fence + 1)
    refused = room.finish(paused, late, facts("right"))
    assert not refused.is_accepted and "lease" in refused.reason
    assert room.finish(quick, order, facts("wrong", 1)).is_accepted
    # a second time, because the answer was lost: acknowledged, and not kept twice
    assert room.finish(quick, order, facts("wrong", 1)).is_accepted
    assert not room.finish(paused, late, facts("right")).is_accepted
    with room.database.read() as connection:
        counted = standing(connection, receipt.submission).result
    assert counted is not None and counted.facts.verdict == "wrong"
    assert len(rows(room, RESULTS)) == 1
    assert len(rows(room, REFUSED_RESULTS)) == 2


def test_a_result_that_comes_after_its_lease_but_before_another_counts(
    room: Classroom,
) -> None:
    """The service was down for long, and nobody else has the job yet."""
    grader = room.grader()
    room.submit("ada")
    (order,) = room.lease(grader)
    room.now_ms += HOUR_MS
    assert room.finish(grader, order).is_accepted


def test_three_crashes_park_a_job_and_give_no_mark(room: Classroom) -> None:
    grader = room.grader()
    receipt = room.submit("ada")
    for crash in range(3):
        assert state(room, receipt.submission)[0] == "waits"
        (order,) = room.lease(grader)
        if crash == 1:
            # the grader itself was killed, and began anew
            room.grader()
            continue
        if crash == 2:
            room.now_ms += int(dispatch.LEASE_S * 1000) + 1
            continue
        given = Release(LeaseName(order.job, order.fence), "crashed", "signal 9")
        with room.database.write() as connection:
            completion.release(connection, room.now_ms, grader, given)
    assert room.lease(grader) == ()
    assert state(room, receipt.submission) == ("parked", "cpu")
    with room.database.write() as connection:
        assert standing(connection, receipt.submission).result is None
        [parked] = overview.queue(connection, room.now_ms, "gpu101")
        assert parked.crashes == 3 and parked.note
        control.retry_parked(connection, room.now_ms, room.instructor, parked.job)
        with pytest.raises(Conflict):
            control.retry_parked(connection, room.now_ms, room.instructor, parked.job)
    room.grade(grader)
    assert state(room, receipt.submission)[0] == "graded"


def test_returned_work_is_no_crash_and_what_cant_be_graded_is_parked_at_once(
    room: Classroom,
) -> None:
    grader = room.grader()
    receipt = room.submit("ada")
    for _ in range(5):
        (order,) = room.lease(grader)
        given = Release(LeaseName(order.job, order.fence), "returned")
        with room.database.write() as connection:
            released = completion.release(connection, room.now_ms, grader, given)
        assert released.state == "queued"
    (order,) = room.lease(grader)
    given = Release(
        LeaseName(order.job, order.fence), "can't grade", "no \x1b[2Jcompiler"
    )
    with room.database.write() as connection:
        released = completion.release(connection, room.now_ms, grader, given)
    assert released.state == "parked"
    with room.database.read() as connection:
        [job] = connection.execute(JOBS.select()).all()
    assert job.note == "can't grade: no ?[2Jcompiler"
    assert state(room, receipt.submission)[0] == "parked"


def test_a_right_source_goes_on_to_a_gpu_and_a_wrong_one_does_not(
    room: Classroom,
) -> None:
    grader = room.grader(gpus=1)
    wrong, right = room.submit("ada"), room.submit("bob")
    room.grade(grader, facts("wrong", 1))
    room.grade(grader)
    assert state(room, wrong.submission) == ("graded", "cpu")
    assert state(room, right.submission) == ("waits", "gpu")
    with room.database.read() as connection:
        assert standing(connection, right.submission).is_provisional
    order = room.grade(grader, device="GPU-one-0")
    assert order.device == "GPU-one-0" and order.stage == "gpu"
    assert state(room, right.submission) == ("graded", "gpu")
    assert room.lease(grader, 4, ("GPU-one-0",)) == ()


def test_without_a_gpu_the_first_result_is_final(room: Classroom) -> None:
    grader = room.grader()
    receipt = room.submit("ada")
    room.grade(grader)
    assert state(room, receipt.submission) == ("graded", "cpu")


def test_where_the_last_gpu_goes_what_waited_for_it_counts_as_it_is(
    room: Classroom,
) -> None:
    grader = room.grader("with", gpus=1)
    receipt = room.submit("ada")
    room.grade(grader)
    with room.database.write() as connection:
        graders.retire(connection, room.now_ms, room.instructor, grader)
        now = standing(connection, receipt.submission)
    assert (now.state, now.is_provisional) == ("graded", False)
    assert now.result is not None and now.result.stage == "cpu"


def test_too_busy_goes_back_behind_first_runs(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    for name in ("ada", "bob"):
        room.submit(name)
        room.grade(grader)
    busy = room.grade(grader, facts("too busy"), device="GPU-one-0")
    room.now_ms += completion.BUSY_WAIT_MS
    room.submit("cyd")
    room.grade(grader)
    served = [room.grade(grader, device="GPU-one-0").job for _ in range(3)]
    assert served[2] == busy.job


def test_a_gpu_that_is_always_busy_gives_no_mark_for_speed(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    receipt = room.submit("ada")
    room.grade(grader)
    for _ in range(completion.MOST_BUSY):
        assert state(room, receipt.submission) == ("waits", "gpu")
        room.grade(grader, facts("too busy"), device="GPU-one-0")
        room.now_ms += completion.BUSY_WAIT_MS
    with room.database.read() as connection:
        now = standing(connection, receipt.submission)
    assert now.state == "graded" and now.result is not None
    assert now.result.facts.verdict == "too busy"
    assert now.result.points.points == 10


def test_timed_runs_are_limited_per_hour_and_wait(tmp_path: Path) -> None:
    course = Course("gpu101", "GPUs", timed_runs_per_hour=2)
    room = classroom(tmp_path / "hub.db", course)
    grader = room.grader(gpus=1)
    for number in range(2):
        room.submit("ada", f"// {number}")
        room.grade(grader)
        room.grade(grader, device="GPU-one-0")
    room.submit("ada", "// once more")
    room.grade(grader)
    assert room.lease(grader, 0, ("GPU-one-0",)) == ()
    # others are not held up by it
    room.submit("bob")
    room.grade(grader)
    room.grade(grader, device="GPU-one-0")
    room.now_ms += HOUR_MS
    assert len(room.lease(grader, 0, ("GPU-one-0",))) == 1
    room.database.close()


def test_a_result_of_another_source_or_lab_is_refused(room: Classroom) -> None:
    grader = room.grader()
    first, second = room.submit("ada"), room.submit("bob")
    room.grade(grader)
    with room.database.write() as connection:
        # the first result holds the lab to its version
        publish_lab(connection, "gpu101", lab_digest="cd" * 32)
    (order,) = room.lease(grader)
    refused = room.finish(grader, order)
    assert not refused.is_accepted and "version" in refused.reason
    assert state(room, second.submission)[0] == "parked"
    assert state(room, first.submission)[0] == "graded"


def test_cancelled_and_drained_and_paused(room: Classroom) -> None:
    grader = room.grader()
    room.submit("ada")
    room.submit("bob")
    (order,) = room.lease(grader)
    beat = Heartbeat((LeaseName(order.job, order.fence),))
    with room.database.write() as connection:
        alive = dispatch.heartbeat(connection, room.now_ms, grader, beat)
        control.cancel(connection, room.now_ms, room.instructor, order.job, "a test")
        ended = dispatch.heartbeat(connection, room.now_ms, grader, beat)
    assert (alive.lost, ended.lost) == ((), (order.job,))
    assert not room.finish(grader, order).is_accepted
    with room.database.write() as connection:
        control.pause(connection, room.now_ms, room.instructor, "a new driver")
    assert room.lease(grader) == ()
    with room.database.write() as connection:
        control.resume(connection, room.now_ms, room.instructor)
        graders.drain(connection, room.now_ms, room.instructor, grader)
        beaten = dispatch.heartbeat(connection, room.now_ms, grader, Heartbeat(()))
    assert beaten.is_draining and room.lease(grader) == ()
    assert len(room.lease(room.grader("other"))) == 1


def test_heartbeats_hold_a_lease_and_tell_of_answers_that_were_lost(
    room: Classroom,
) -> None:
    grader = room.grader()
    room.submit("ada")
    room.submit("bob")
    (kept,) = room.lease(grader)
    # the answer to this request never came back
    (lost,) = room.lease(grader)
    beat = Heartbeat((LeaseName(kept.job, kept.fence),))
    for _ in range(20):
        room.now_ms += int(dispatch.HEARTBEAT_S * 1000)
        with room.database.write() as connection:
            dispatch.heartbeat(connection, room.now_ms, grader, beat)
    (again,) = room.lease(grader)
    assert again.job == lost.job
    with room.database.read() as connection:
        job = connection.execute(JOBS.select().where(JOBS.c.id == lost.job)).one()
    assert job.crashes == 0
    assert room.finish(grader, kept).is_accepted


def test_leases_outlive_a_service_that_was_down(room: Classroom) -> None:
    grader, other = room.grader(), room.grader("other")
    room.submit("ada")
    (order,) = room.lease(grader)
    room.now_ms += HOUR_MS
    with room.database.write() as connection:
        dispatch.grace(connection, room.now_ms)
    assert room.lease(other) == ()
    assert room.finish(grader, order).is_accepted


def test_places_and_estimates_follow_the_order_of_the_queue(room: Classroom) -> None:
    grader = room.grader(cpu_slots=2)
    receipts = {name: room.submit(name) for name in ("ada", "bob", "cyd")}
    room.lease(grader)
    room.now_ms += 1000
    place_of = {}
    with room.database.read() as connection:
        for name, receipt in receipts.items():
            place_of[name] = overview.place(connection, room.now_ms, receipt.submission)
    places = {name: place.before for name, place in place_of.items() if place}
    etas = {name: place.eta_s for name, place in place_of.items() if place}
    assert places == {"ada": 0, "bob": 0, "cyd": 1}
    # five seconds each: the first has run for one of them
    assert etas == pytest.approx({"ada": 4, "bob": 5, "cyd": 9}, abs=0.1)
    room.now_ms += HOUR_MS
    with room.database.read() as connection:
        away = overview.place(connection, room.now_ms, receipts["bob"].submission)
    assert away is not None and away.eta_s is None


def test_nothing_is_taken_before_it_opens_after_it_closes_or_of_who_left(
    room: Classroom,
) -> None:
    room.now_ms = CLOSES_MS + 1
    with pytest.raises(NotOpen, match="closed"):
        room.submit("ada")
    room.now_ms = START_MS
    room.submit("ada")
    with room.database.write() as connection:
        again = receive(
            connection, START_MS, room.lab, room.people["bob"], "// x", "r1"
        )
        same = receive(
            connection, START_MS + 9, room.lab, room.people["bob"], "// x", "r1"
        )
        assert again == same
        with pytest.raises(Conflict, match="something else"):
            receive(connection, START_MS, room.lab, room.people["bob"], "// y", "r1")


def test_a_paused_course_waits_and_holds_up_no_other(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    mine = room.submit("grace")
    room.submit_elsewhere("// theirs")
    with room.database.write() as connection:
        control.pause(connection, room.now_ms, room.instructor, "a wrong lab", "gpu101")
    with room.database.read() as connection:
        waits = overview.place(connection, room.now_ms, mine.submission)
        (other,) = overview.queue(connection, room.now_ms, "other")
        assert len(overview.queue(connection, room.now_ms)) == 2
    assert waits is not None and waits.eta_s is None and waits.before == 1
    assert other.place is not None and other.place.before == 0
    assert [order.source for order in room.lease(grader, 2)] == ["// theirs"]
    with room.database.write() as connection:
        # who operates the hub lets all go on, but for what a course itself holds back
        control.resume(connection, room.now_ms, "hub")
    assert room.lease(grader, 2) == ()
    with room.database.write() as connection:
        control.resume(connection, room.now_ms, room.instructor, "gpu101")
    assert [order.source for order in room.lease(grader, 2)] == ["// mine"]
