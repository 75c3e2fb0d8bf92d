"""Gives jobs to graders, for a time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    delete,
    func,
    insert,
    select,
    update,
)

from warpbook.hub_protocol import (
    Heartbeat,
    HeartbeatAnswer,
    JobOrder,
    Stage,
    Work,
    WorkRequest,
)
from warpbook_hub import audit
from warpbook_hub.database import settings
from warpbook_hub.database.tables import (
    COURSES,
    GRADERS,
    JOBS,
    PUBLICATIONS,
    SUBMISSIONS,
    TURNS,
    outside_finals,
)
from warpbook_hub.leases.grants import leased_gpus
from warpbook_hub.notices.notes import note_parked
from warpbook_hub.queue.entries import LEARNER_LANE
from warpbook_hub.queue.finals import next_of_final, of_paused_courses
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_monitors.plain_text import bounded

LEASE_S = 60.0
HEARTBEAT_S = 10.0
POLL_S = 1.0
#: leases without a result, after which a person has to look
MOST_CRASHES = 3
#: jobs that one request is answered with, of each stage
MOST_TOGETHER = 64
MOST_NOTE = 1_000
#: a grader that has had an answer for so long names what was in it
UNKNOWN_AFTER_S = 2 * HEARTBEAT_S


def lease(
    connection: Connection,
    now_ms: int,
    grader: str,
    request: WorkRequest,
    lease_s: float = LEASE_S,
) -> Work:
    """Lease as many jobs as a grader has room for, in the order of the queue.

    The order: instructors, learners, regrades; then the first of everybody before
    anybody's second; then who was served least recently; then who came first.
    """
    if state_of(connection, grader) != "active":
        return Work(is_draining=True)
    reclaim(connection, now_ms)
    if settings.get(connection, settings.PAUSED) is not None:
        return Work()
    until_ms = now_ms + int(lease_s * 1000)
    places: list[tuple[Stage, str]] = [("cpu", "")] * min(
        request.free_cpu_slots, MOST_TOGETHER
    )
    leased = leased_gpus(connection)
    places += [
        ("gpu", uuid)
        for uuid in request.free_devices[:MOST_TOGETHER]
        if uuid not in leased
    ]
    orders: list[JobOrder] = []
    #: stages in which nothing waits, however many places are free
    idle: set[Stage] = set()
    for stage, device in places:
        reserved, job = next_of_final(connection, now_ms, grader, device)
        if not reserved and stage not in idle:
            job = _next_job(connection, now_ms, stage)
            if job is None:
                idle.add(stage)
        if job is None:
            continue
        _take(connection, now_ms, until_ms, grader, job, device)
        waited_ms = max(0, now_ms - job.queued_ms)
        orders.append(_order(connection, job.id, waited_ms))
    return Work(tuple(orders))


def heartbeat(
    connection: Connection,
    now_ms: int,
    grader: str,
    beat: Heartbeat,
    lease_s: float = LEASE_S,
) -> HeartbeatAnswer:
    """Prolong leases, and tell which are lost."""
    until_ms = now_ms + int(lease_s * 1000)
    lost: list[str] = []
    for name in beat.leases:
        prolonged = connection.execute(
            update(JOBS)
            .where(
                JOBS.c.id == name.job,
                JOBS.c.fence == name.fence,
                JOBS.c.grader == grader,
                JOBS.c.state == "leased",
            )
            .values(lease_until_ms=until_ms)
        )
        if not prolonged.rowcount:
            lost.append(name.job)
    _take_back_unknown(connection, now_ms, grader, beat)
    is_draining = state_of(connection, grader) != "active"
    return HeartbeatAnswer(tuple(lost), is_draining)


def reclaim(connection: Connection, now_ms: int) -> int:
    """Take back what graders have not been heard of; three times parks a job.

    Returns:
        How many were taken back.
    """
    query = select(JOBS).where(JOBS.c.state == "leased", JOBS.c.lease_until_ms < now_ms)
    expired = connection.execute(query).all()
    for job in expired:
        words = "The grader had no contact until its lease ended."
        take_back(connection, now_ms, job, words, is_crash=True)
    return len(expired)


def grace(connection: Connection, now_ms: int, lease_s: float = LEASE_S) -> None:
    """Prolong all leases as the service begins, for graders that could not reach it."""
    until_ms = now_ms + int(lease_s * 1000)
    connection.execute(
        update(JOBS)
        .where(JOBS.c.state == "leased", JOBS.c.lease_until_ms < until_ms)
        .values(lease_until_ms=until_ms)
    )


def take_back(
    connection: Connection, now_ms: int, job: Row[Any], note: str, is_crash: bool
) -> str:
    """Queue a leased job again, or park it after its last crash; give its state.

    Its party was not served by it, and keeps its place.
    """
    crashes = job.crashes + is_crash
    state = "parked" if crashes >= MOST_CRASHES else "queued"
    connection.execute(
        update(JOBS)
        .where(JOBS.c.id == job.id)
        .values(
            state=state,
            grader=None,
            device="",
            lease_until_ms=None,
            not_before_ms=now_ms,
            crashes=crashes,
            note=bounded(note, MOST_NOTE),
        )
    )
    _give_turn_back(connection, job)
    if state == "parked":
        detail = {"crashes": crashes, "note": bounded(note, MOST_NOTE)}
        audit.note(connection, now_ms, "hub", "job parked", job.id, detail)
        note_parked(connection, now_ms, job.id)
    return state


def _give_turn_back(connection: Connection, job: Row[Any]) -> None:
    """Let a party have been served last by another of its jobs, or not at all."""
    before_ms = connection.execute(
        select(func.max(JOBS.c.leased_ms)).where(
            JOBS.c.party == job.party,
            JOBS.c.stage == job.stage,
            JOBS.c.id != job.id,
            JOBS.c.state.in_(("leased", "done")),
        )
    ).scalar_one()
    of = (TURNS.c.party == job.party) & (TURNS.c.stage == job.stage)
    if before_ms is None:
        connection.execute(delete(TURNS).where(of))
    else:
        connection.execute(update(TURNS).where(of).values(served_ms=before_ms))


def queue_order() -> tuple[ColumnElement[Any], ...]:
    """Order jobs, with `TURNS` joined to them, as they are leased."""
    return (
        JOBS.c.lane.asc(),
        JOBS.c.turn.asc(),
        func.coalesce(TURNS.c.served_ms, 0).asc(),
        JOBS.c.queued_ms.asc(),
        JOBS.c.id.asc(),
    )


def with_turns(query: Select[Any]) -> Select[Any]:
    """Join to each job when its party was served last in its stage."""
    same = (TURNS.c.party == JOBS.c.party) & (TURNS.c.stage == JOBS.c.stage)
    return query.outerjoin(TURNS, same)


def state_of(connection: Connection, grader: str) -> str:
    query = select(GRADERS.c.state).where(GRADERS.c.id == grader)
    return str(connection.execute(query).scalar_one())


def _next_job(connection: Connection, now_ms: int, stage: Stage) -> Row[Any] | None:
    while True:
        query = (
            with_turns(select(JOBS).select_from(JOBS))
            .where(
                JOBS.c.state == "queued",
                JOBS.c.stage == stage,
                JOBS.c.not_before_ms <= now_ms,
                outside_finals(),
                JOBS.c.publication.not_in(of_paused_courses()),
            )
            .order_by(*queue_order())
            .limit(1)
        )
        job = connection.execute(query).first()
        if job is None:
            return None
        wait_until_ms = _timed_run_from(connection, now_ms, job)
        if wait_until_ms <= now_ms:
            return job
        later = update(JOBS).where(JOBS.c.id == job.id)
        connection.execute(later.values(not_before_ms=wait_until_ms))


def _timed_run_from(connection: Connection, now_ms: int, job: Row[Any]) -> int:
    """Tell from when on a party may have a GPU again."""
    if job.stage != "gpu" or job.lane != LEARNER_LANE:
        return now_ms
    most = connection.execute(
        select(COURSES.c.timed_runs_per_hour)
        .join(PUBLICATIONS, PUBLICATIONS.c.course == COURSES.c.id)
        .where(PUBLICATIONS.c.id == job.publication)
    ).scalar_one()
    since = (
        select(JOBS.c.leased_ms)
        .where(
            JOBS.c.stage == "gpu",
            JOBS.c.party == job.party,
            JOBS.c.id != job.id,
            JOBS.c.leased_ms > now_ms - HOUR_MS,
            outside_finals(),
        )
        .order_by(JOBS.c.leased_ms.desc())
    )
    runs = connection.execute(since).scalars().all()
    return now_ms if len(runs) < most else int(runs[most - 1]) + HOUR_MS


def _take(
    connection: Connection,
    now_ms: int,
    until_ms: int,
    grader: str,
    job: Row[Any],
    device: str,
) -> None:
    connection.execute(
        update(JOBS)
        .where(JOBS.c.id == job.id)
        .values(
            state="leased",
            fence=JOBS.c.fence + 1,
            grader=grader,
            device=device,
            leased_ms=now_ms,
            lease_until_ms=until_ms,
        )
    )
    of = (TURNS.c.party == job.party) & (TURNS.c.stage == job.stage)
    connection.execute(delete(TURNS).where(of))
    served = {"party": job.party, "stage": job.stage, "served_ms": now_ms}
    connection.execute(insert(TURNS).values(**served))


def _order(connection: Connection, job: str, waited_ms: int) -> JobOrder:
    query = (
        select(
            JOBS.c.id.label("job"),
            JOBS.c.fence,
            JOBS.c.stage,
            PUBLICATIONS.c.lab,
            PUBLICATIONS.c.lab_digest,
            SUBMISSIONS.c.source,
            SUBMISSIONS.c.source_digest,
            SUBMISSIONS.c.seed,
            JOBS.c.device,
            (PUBLICATIONS.c.reference == "").label("wants_reference"),
            (PUBLICATIONS.c.asks_questions == 1).label("asks_questions"),
        )
        .join(SUBMISSIONS, SUBMISSIONS.c.id == JOBS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == JOBS.c.publication)
        .where(JOBS.c.id == job)
    )
    row = connection.execute(query).mappings().one()
    return JobOrder(**row, waited_ms=waited_ms)


def _take_back_unknown(
    connection: Connection, now_ms: int, grader: str, beat: Heartbeat
) -> None:
    """Queue again what a grader was given and does not know of: an answer was lost."""
    known = {name.job for name in beat.leases}
    query = select(JOBS).where(
        JOBS.c.grader == grader,
        JOBS.c.state == "leased",
        JOBS.c.leased_ms < now_ms - int(UNKNOWN_AFTER_S * 1000),
    )
    for job in connection.execute(query).all():
        if job.id not in known:
            words = "The grader did not get it."
            take_back(connection, now_ms, job, words, is_crash=False)
