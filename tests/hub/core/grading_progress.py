"""Waits until a class is graded, and says how far it is and where time goes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.hub.core.course import Classroom
from warpbook.hub.database.tables import JOBS, RESULTS, SUBMISSIONS
from warpbook.hub.grader.labs import GRADING, QUEUE_WAIT
from warpbook.hub.work.results import Standing, standings

#: of all that is done of a job, but its wait in the queue
START, TOOK = "process start", "in all"
_LOOK_S = 0.5


class NotGraded(AssertionError):
    """Submissions are not graded, and won't be; the message says what is known."""


def wait_until_graded(
    room: Classroom,
    submissions: Sequence[str],
    say: Callable[[str], None],
    every: int = 10,
    stalled_s: float = 180.0,
) -> dict[str, Standing]:
    """Wait for the results of some submissions; a line is said for so many of them.

    Raises:
        NotGraded: a job is parked or cancelled, or none has ended for long.
    """
    began_s = last_s = time.monotonic()
    told = graded = 0
    while True:
        with room.database.read() as connection:
            which = SUBMISSIONS.c.id.in_(list(submissions))
            by_submission = standings(connection, which)
        before, graded = graded, _count(by_submission, "graded")
        is_over = graded == len(submissions)
        if graded != before:
            last_s = time.monotonic()
        if is_over or graded // every > told // every:
            told = graded
            passed_s = time.monotonic() - began_s
            say(f"{graded} of {len(submissions)} graded after {passed_s:.0f} s")
            for line in stage_lines(room):
                say(f"  {line}")
        if is_over:
            return by_submission
        is_stalled = time.monotonic() - last_s > stalled_s
        states = ("parked", "cancelled", "replaced")
        if is_stalled or any(_count(by_submission, state) for state in states):
            raise NotGraded("\n".join([f"{graded} are graded.", *open_lines(room)]))
        time.sleep(_LOOK_S)


def stage_lines(room: Classroom) -> list[str]:
    """Give the mean seconds of each part of what was graded, a line for each stage."""
    with room.database.read() as connection:
        jobs = {job.id: job for job in connection.execute(JOBS.select())}
        results = connection.execute(RESULTS.select()).all()
    seconds: dict[str, dict[str, list[float]]] = {}
    for result in results:
        of_stage = seconds.setdefault(result.stage, {})
        for part, taken_s in _parts(jobs[result.job], result).items():
            of_stage.setdefault(part, []).append(taken_s)
    lines = []
    for name, parts in sorted(seconds.items()):
        means = [
            f"{part} {statistics.mean(all_s):.2f}" for part, all_s in parts.items()
        ]
        count = len(parts[TOOK])
        lines.append(f"{name}, {count} jobs, mean seconds: {', '.join(means)}")
    busy, crashes = (
        sum(getattr(job, column) for job in jobs.values())
        for column in ("busy", "crashes")
    )
    if busy or crashes:
        lines.append(f"put back: {busy} times for a busy GPU, {crashes} after a crash")
    return lines


def open_lines(room: Classroom) -> list[str]:
    """Give the jobs that have no result, with their notes."""
    with room.database.read() as connection:
        unfinished = JOBS.select().where(JOBS.c.state != "done")
        jobs = connection.execute(unfinished).all()
    return [
        f"{job.stage} {job.state}, leased {job.fence} times, "
        f"{job.busy} times too busy: {job.note or 'no note'}"
        for job in jobs
    ]


def _parts(job: Any, result: Any) -> dict[str, float]:
    noted = json.loads(result.evidence).get("seconds", {})
    parts = {QUEUE_WAIT: (job.leased_ms - job.queued_ms) / 1000}
    took_s = result.took_ms / 1000
    if GRADING in noted:
        parts[START] = took_s - noted[GRADING]
    parts |= {k: v for k, v in noted.items() if k not in (QUEUE_WAIT, GRADING)}
    return {**parts, TOOK: took_s}


def _count(by_submission: dict[str, Standing], state: str) -> int:
    return sum(now.state == state for now in by_submission.values())
