"""What instructors do with their course's jobs, and operators with the queue."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select, update

from warpbook_hub import audit
from warpbook_hub.database import settings
from warpbook_hub.database.tables import COURSES, JOBS
from warpbook_hub.errors import Conflict, NotFound
from warpbook_hub.queue.entries import STAFF_LANE
from warpbook_hub.texts import reason_of


def pause(
    connection: Connection, now_ms: int, actor: str, reason: str, course: str = ""
) -> None:
    """Lease no more jobs; those that run go on, and submissions are still taken.

    Args:
        reason: why.
        course: whose jobs; those of all courses if left out.

    Raises:
        BadRequest: no reason is given.
    """
    why = reason_of(reason)
    _put_pause(connection, course, why)
    detail = {"reason": why}
    subject = course or "queue"
    audit.note(connection, now_ms, actor, "queue paused", subject, detail, course)


def resume(connection: Connection, now_ms: int, actor: str, course: str = "") -> None:
    """Lease jobs again: of a course, or of all that are not paused by themselves."""
    _put_pause(connection, course, "")
    subject = course or "queue"
    audit.note(connection, now_ms, actor, "queue resumed", subject, None, course)


def pause_of(connection: Connection, course: str = "") -> str:
    """Tell why a course's jobs are paused, or those of all; empty if they are not."""
    if not course:
        return settings.get(connection, settings.PAUSED) or ""
    query = select(COURSES.c.paused).where(COURSES.c.id == course)
    return str(connection.execute(query).scalar_one())


def _put_pause(connection: Connection, course: str, reason: str) -> None:
    if course:
        of_course = update(COURSES).where(COURSES.c.id == course)
        connection.execute(of_course.values(paused=reason))
    else:
        settings.put(connection, settings.PAUSED, reason or None)


def raise_job(connection: Connection, now_ms: int, actor: str, job: str) -> None:
    """Put a job into the instructors' lane, before all others.

    Raises:
        NotFound: there is no such job.
        Conflict: it does not wait.
    """
    _change(connection, job, ("queued",), lane=STAFF_LANE, not_before_ms=now_ms)
    audit.note(connection, now_ms, actor, "job raised", job)


def cancel(
    connection: Connection, now_ms: int, actor: str, job: str, reason: str
) -> None:
    """End a job that waits, runs or is parked; a result of it is refused then.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such job.
        Conflict: it has ended already.
    """
    why = reason_of(reason)
    states = ("queued", "leased", "parked")
    _change(connection, job, states, state="cancelled", finished_ms=now_ms, note=why)
    audit.note(connection, now_ms, actor, "job cancelled", job, {"reason": why})


def retry_parked(connection: Connection, now_ms: int, actor: str, job: str) -> None:
    """Put a parked job back into the queue, its crashes forgotten.

    Raises:
        NotFound: there is no such job.
        Conflict: it is not parked.
    """
    put_back(connection, now_ms, job)
    audit.note(connection, now_ms, actor, "job retried", job)


def put_back(connection: Connection, now_ms: int, job: str) -> None:
    """Do the same without a line in the log; see `retry_parked`."""
    _change(
        connection,
        job,
        ("parked",),
        state="queued",
        crashes=0,
        finished_ms=None,
        not_before_ms=now_ms,
        grader=None,
    )


def _change(
    connection: Connection, job: str, states: tuple[str, ...], **values: Any
) -> None:
    change = update(JOBS).where(JOBS.c.id == job, JOBS.c.state.in_(states))
    if connection.execute(change.values(**values)).rowcount:
        return
    state = connection.execute(select(JOBS.c.state).where(JOBS.c.id == job)).scalar()
    if state is None:
        raise NotFound("There is no such job.")
    raise Conflict(f"This job is {state}.")
