"""The queue as people see it: places, estimates, and what runs where."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from statistics import mean
from typing import Any, get_args

from msgspec import Struct
from sqlalchemy import Connection, Row, select

from warpbook.hub_protocol import Place, Stage
from warpbook_hub.database import settings
from warpbook_hub.database.tables import (
    JOBS,
    PEOPLE,
    PUBLICATIONS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.queue.dispatch import queue_order, with_turns
from warpbook_hub.queue.finals import of_paused_courses
from warpbook_hub.queue.graders import graders

#: how long a job of a lab is thought to take that none was done of
OTHERWISE_S = {"cpu": 5.0, "gpu": 10.0}
_IN_QUEUE = ("queued", "leased")
_MOST_DURATIONS = 500
_MOST_RECENT = 20


class QueuedJob(Struct, frozen=True):
    """A job that waits, runs, or is parked."""

    job: str
    submission: str
    course: str
    publication: str
    party: str
    person: str
    username: str
    stage: str
    state: str
    lane: int
    queued_ms: int
    leased_ms: int | None
    grader: str
    device: str
    crashes: int
    note: str
    place: Place | None


def place(connection: Connection, now_ms: int, submission_id: str) -> Place | None:
    """Tell where a submission is in the queue; None if it is not."""
    query = (
        select(JOBS.c.id)
        .where(
            JOBS.c.submission == submission_id,
            JOBS.c.state.in_(_IN_QUEUE),
            outside_finals(),
        )
        .order_by(JOBS.c.run.desc())
    )
    job = connection.execute(query).scalar()
    return None if job is None else places(connection, now_ms).get(job)


def queue(connection: Connection, now_ms: int, course_id: str = "") -> list[QueuedJob]:
    """Give all jobs that have not ended, in the order of the queue.

    Args:
        course_id: only its jobs, with places that count jobs of other courses, too.
    """
    where = places(connection, now_ms)
    query = (
        with_turns(
            select(JOBS, SUBMISSIONS.c.person, PEOPLE.c.username, PUBLICATIONS.c.course)
            .select_from(JOBS)
            .join(SUBMISSIONS, SUBMISSIONS.c.id == JOBS.c.submission)
            .join(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
            .join(PUBLICATIONS, PUBLICATIONS.c.id == JOBS.c.publication)
        )
        .where(JOBS.c.state.in_((*_IN_QUEUE, "parked")))
        .order_by(JOBS.c.state, *queue_order())
    )
    if course_id:
        query = query.where(PUBLICATIONS.c.course == course_id)
    return [
        QueuedJob(
            row.id,
            row.submission,
            row.course,
            row.publication,
            row.party,
            row.person,
            row.username,
            row.stage,
            row.state,
            row.lane,
            row.queued_ms,
            row.leased_ms if row.state == "leased" else None,
            row.grader or "",
            row.device,
            row.crashes,
            row.note,
            where.get(row.id),
        )
        for row in connection.execute(query)
    ]


def places(connection: Connection, now_ms: int) -> dict[str, Place]:
    """Give the places of all jobs that wait or run, by their ids; none of a final."""
    rows = connection.execute(
        with_turns(
            select(
                JOBS.c.id,
                JOBS.c.stage,
                JOBS.c.state,
                JOBS.c.publication,
                JOBS.c.leased_ms,
                JOBS.c.not_before_ms,
                JOBS.c.publication.in_(of_paused_courses()).label("is_paused"),
            ).select_from(JOBS)
        )
        .where(JOBS.c.state.in_(_IN_QUEUE), outside_finals())
        .order_by(*queue_order())
    ).all()
    is_paused = settings.get(connection, settings.PAUSED) is not None
    took = _durations(connection)
    by_job: dict[str, Place] = {}
    for stage in get_args(Stage):
        slots = 0 if is_paused else _slots(connection, now_ms, stage)
        running = [row for row in rows if (row.stage, row.state) == (stage, "leased")]
        # what may not begin yet is behind what may, and what is paused behind both
        waiting = sorted(
            (row for row in rows if (row.stage, row.state) == (stage, "queued")),
            key=lambda row: (row.is_paused, row.not_before_ms > now_ms),
        )

        def expected(row: Row[Any], of: str = stage) -> float:
            recent = took.get((row.publication, of), [])
            return expected_s(recent, OTHERWISE_S[of])

        left_s = [
            max(0.0, expected(row) - (now_ms - row.leased_ms) / 1000) for row in running
        ]
        for row, seconds in zip(running, left_s, strict=True):
            by_job[row.id] = Place(stage, 0, seconds)
        ends_s = finish_times_s([expected(row) for row in waiting], slots, left_s)
        for before, (row, end_s) in enumerate(zip(waiting, ends_s, strict=True)):
            held_s = max(0.0, (row.not_before_ms - now_ms) / 1000)
            eta_s = max(end_s, held_s + expected(row))
            is_known = math.isfinite(eta_s) and not row.is_paused
            known = eta_s if is_known else None
            by_job[row.id] = Place(stage, before, known)
    return by_job


def _durations(connection: Connection) -> dict[tuple[str, str], list[float]]:
    """Give how many seconds the last jobs of each lab and stage held a slot."""
    rows = connection.execute(
        select(JOBS.c.publication, JOBS.c.stage, JOBS.c.leased_ms, JOBS.c.finished_ms)
        .where(JOBS.c.state == "done", JOBS.c.leased_ms.is_not(None))
        .order_by(JOBS.c.finished_ms.desc())
        .limit(_MOST_DURATIONS)
    )
    by_lab: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        recent = by_lab.setdefault((row.publication, row.stage), [])
        if len(recent) < _MOST_RECENT:
            recent.append(max(0, row.finished_ms - row.leased_ms) / 1000)
    return by_lab


def _slots(connection: Connection, now_ms: int, stage: str) -> int:
    """Count the slots of graders that were heard of and take jobs."""
    heard = [
        grader
        for grader in graders(connection, now_ms)
        if grader.is_heard and grader.state == "active"
    ]
    if stage == "cpu":
        return sum(grader.cpu_slots for grader in heard)
    return sum(len(grader.devices) for grader in heard)


def finish_times_s(
    durations_s: Sequence[float], slots: int, running_s: Sequence[float] = ()
) -> list[float]:
    """Give for each job of a queue in how many seconds it will be done.

    Args:
        durations_s: how long each is thought to take, the first of the queue first.
        slots: how many are done at the same time.
        running_s: how much longer each job that runs is thought to take.

    Returns:
        Infinity for all where there is no slot.
    """
    if slots <= 0:
        return [math.inf] * len(durations_s)
    # when each slot is free; more may run than there are slots now
    free_s = sorted(max(0.0, left_s) for left_s in running_s)
    free_s = [0.0] * (slots - len(free_s)) + free_s[-slots:]
    heapq.heapify(free_s)
    finished: list[float] = []
    for duration_s in durations_s:
        end_s = heapq.heappop(free_s) + max(0.0, duration_s)
        heapq.heappush(free_s, end_s)
        finished.append(end_s)
    return finished


def expected_s(recent_s: Sequence[float], otherwise_s: float) -> float:
    """Estimate how long a job of a lab takes, by those that were done last."""
    return mean(recent_s) if recent_s else otherwise_s
