"""A deadline of 300 learners, in a time that the test makes: no clock is waited for."""

from __future__ import annotations

import heapq
import random
from pathlib import Path
from statistics import median

from tests.hub.core.course import FOREVER, LAB_DIGEST, START_MS, classroom, facts
from warpbook.hub_protocol import (
    Device,
    Heartbeat,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    WorkRequest,
)
from warpbook_hub.course.courses import Course
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import JOBS, PEOPLE, RESULTS, SUBMISSIONS
from warpbook_hub.queue import completion, dispatch, graders, overview
from warpbook_hub.work.submissions import receive

LEARNERS = 300
WITHIN_S = 600
CPU_SLOTS, CPU_S = 4, 2.4
GPUS, GPU_S = 2, 5.0


def test_a_deadline_of_300_is_graded_in_order_and_as_estimated(tmp_path: Path) -> None:
    course = Course("gpu101", "GPU programming", timed_runs_per_hour=60)
    room = classroom(tmp_path / "hub.db", course, windows={"": FOREVER})
    names = [f"learner{number}" for number in range(LEARNERS)]
    rng = random.Random(8)
    estimates: list[tuple[str, float, float]] = []
    finished_s: dict[str, float] = {}
    with room.database.write() as connection:
        roster = read_roster(("username\n" + "\n".join(names)).encode())
        import_roster(connection, START_MS, "hub", "gpu101", roster)
        people = connection.execute(
            PEOPLE.select().where(PEOPLE.c.username.in_(names))
        ).all()
        token = graders.register(connection, START_MS, "hub", "one")
        grader = graders.authenticate(connection, token)
        gpus = tuple(Device(f"SIM-{number}", "simulated") for number in range(GPUS))
        graders.hello(connection, START_MS, grader, Hello(CPU_SLOTS, gpus))
        # who hands in comes nearer and nearer to the deadline
        events = [
            (WITHIN_S * rng.random() ** 0.5, n, p.id) for n, p in enumerate(people)
        ]
        heapq.heapify(events)
        running: dict[str, JobOrder] = {}
        while events:
            now_s, _, what = heapq.heappop(events)
            now_ms = START_MS + int(now_s * 1000)
            graders.seen(connection, now_ms, grader)
            if what in running:
                order = running.pop(what)
                finished_s[order.job] = now_s
                result = JobResult(
                    LeaseName(order.job, order.fence),
                    facts("right" if rng.random() < 0.7 else "wrong", 4),
                    LAB_DIGEST,
                    order.source_digest,
                    1,
                )
                assert completion.finish(connection, now_ms, grader, result).is_accepted
            else:
                source = f"// {what}"
                receive(connection, now_ms, room.lab, what, source, replace=True)
            beat = Heartbeat(
                tuple(LeaseName(order.job, order.fence) for order in running.values())
            )
            dispatch.heartbeat(connection, now_ms, grader, beat)
            taken = {order.device for order in running.values()}
            free = tuple(gpu.uuid for gpu in gpus if gpu.uuid not in taken)
            on_cpu = sum(order.stage == "cpu" for order in running.values())
            room_left = WorkRequest(CPU_SLOTS - on_cpu, free)
            for order in dispatch.lease(connection, now_ms, grader, room_left).jobs:
                running[order.job] = order
                took_s = CPU_S if order.stage == "cpu" else GPU_S
                took_s *= rng.uniform(0.7, 1.3)
                heapq.heappush(events, (now_s + took_s, len(finished_s), order.job))
            if rng.random() < 0.1:
                for job, place in overview.places(connection, now_ms).items():
                    if place.before and place.eta_s is not None:
                        estimates.append((job, now_s, place.eta_s))
        jobs = connection.execute(JOBS.select()).all()
        results = connection.execute(RESULTS.select()).all()
        received = {
            row.id: row.received_ms for row in connection.execute(SUBMISSIONS.select())
        }
    assert all(job.state == "done" for job in jobs)
    assert sum(result.stage == "cpu" for result in results) == LEARNERS
    # nobody has had a turn before, so each stage is in the order of arrival
    for stage in ("cpu", "gpu"):
        of_stage = sorted(
            (job for job in jobs if job.stage == stage), key=lambda j: j.leased_ms
        )
        assert [job.queued_ms for job in of_stage] == sorted(
            job.queued_ms for job in of_stage
        )
    errors = [
        abs(now_s + eta_s - finished_s[job]) / (finished_s[job] - now_s)
        for job, now_s, eta_s in estimates
        if finished_s[job] - now_s > 30
    ]
    assert len(errors) > 20 and median(errors) < 0.25
    waits_s = sorted(
        finished_s[job.id] - (received[job.submission] - START_MS) / 1000
        for job in jobs
    )
    assert waits_s[int(0.95 * len(waits_s))] < 15 * 60
    room.database.close()
