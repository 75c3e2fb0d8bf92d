"""Waits until a class is graded, and says how far it is and where time goes."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.hub.core.course import Classroom
from tests.hub.core.started_hub import Hub
from warpbook_hub.database.tables import JOBS, RESULTS, SUBMISSIONS
from warpbook_hub.grader.labs import GRADING, QUEUE_WAIT
from warpbook_hub.work.results import Standing, standings

#: of all that is done of a job, but its wait in the queue
START, TOOK = "process start", "in all"
_LOOK_S = 0.5


class NotGraded(AssertionError):
    """Submissions are not graded, and won't be; the message says what is known."""


class Patience(NamedTuple):
    """Seconds after which something has to have happened."""

    #: a grader has come up, and has leased a job
    lease_s: float = 120.0
    #: another job has a result; the first on a GPU waits for the limits, too
    result_s: float = 180.0
    #: another line is said
    line_s: float = 20.0


def wait_until_graded(
    hub: Hub,
    submissions: Sequence[str],
    say: Callable[[str], None],
    every: int = 10,
    patience: Patience | None = None,
) -> dict[str, Standing]:
    """Wait for the results of some submissions; a line is said for so many of them.

    The first is told of as well, and how things stand where no line was due for long.

    Raises:
        NotGraded: a job is parked or cancelled, a program has fallen, or what has to
            happen for long has not.
    """
    patience = patience or Patience()
    began_s = said_s = last_s = time.monotonic()
    done = reported = graded = 0
    while True:
        # before results are read: what has fallen since may have brought the last ones
        fallen = hub.fallen()
        with hub.room.database.read() as connection:
            which = SUBMISSIONS.c.id.in_(list(submissions))
            by_submission = standings(connection, which)
            jobs = connection.execute(JOBS.select()).all()
        now_s = time.monotonic()
        before, done = done, sum(job.state == "done" for job in jobs)
        if done != before:
            last_s = now_s
        graded = _count(by_submission, "graded")
        is_over = graded == len(submissions)
        is_due = graded // every > reported // every or (graded and not reported)
        if is_over or is_due or now_s - said_s > patience.line_s:
            reported, said_s = graded, now_s
            say(_head(by_submission, now_s - began_s))
            for line in stage_lines(hub.room):
                say(f"  {line}")
        if is_over:
            return by_submission
        is_leased = any(job.fence for job in jobs)
        patience_s = patience.result_s if is_leased else patience.lease_s
        is_stalled = now_s - last_s > patience_s
        states = ("parked", "cancelled", "replaced")
        if fallen or is_stalled or any(_count(by_submission, one) for one in states):
            told_of = [f"{graded} are graded.", *open_lines(hub.room)]
            raise NotGraded("\n".join([*told_of, *hub.last_words()]))
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
    """Give the jobs that have no result, with their notes; like ones together."""
    with room.database.read() as connection:
        unfinished = JOBS.select().where(JOBS.c.state != "done")
        jobs = connection.execute(unfinished).all()
    counts = Counter(
        f"{job.stage} {job.state}, leased {job.fence} times, "
        f"{job.busy} times too busy: {job.note or 'no note'}"
        for job in jobs
    )
    return [f"{count} x {words}" for words, count in counts.most_common()]


def _parts(job: Any, result: Any) -> dict[str, float]:
    noted = json.loads(result.evidence).get("seconds", {})
    parts = {QUEUE_WAIT: (job.leased_ms - job.queued_ms) / 1000}
    took_s = result.took_ms / 1000
    if GRADING in noted:
        parts[START] = took_s - noted[GRADING]
    parts |= {k: v for k, v in noted.items() if k not in (QUEUE_WAIT, GRADING)}
    return {**parts, TOOK: took_s}


def _head(by_submission: dict[str, Standing], passed_s: float) -> str:
    graded = _count(by_submission, "graded")
    words = f"{graded} of {len(by_submission)} graded after {passed_s:.0f} s"
    others = Counter(
        f"{now.stage} {now.state}"
        for now in by_submission.values()
        if now.state != "graded"
    )
    parts = [f"{count} {where}" for where, count in sorted(others.items())]
    return f"{words}; {', '.join(parts)}" if parts else words


def _count(by_submission: dict[str, Standing], state: str) -> int:
    return sum(now.state == state for now in by_submission.values())
