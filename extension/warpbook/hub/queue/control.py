"""What instructors do with the queue."""

from __future__ import annotations

from sqlalchemy import Connection


def pause(connection: Connection, now_ms: int, actor: str, reason: str) -> None:
    """Lease no more jobs; those that run go on, and submissions are still taken."""
    raise NotImplementedError


def resume(connection: Connection, now_ms: int, actor: str) -> None:
    """Lease jobs again."""
    raise NotImplementedError


def is_paused(connection: Connection) -> bool:
    """Whether the queue is paused."""
    raise NotImplementedError


def raise_job(connection: Connection, now_ms: int, actor: str, job: str) -> None:
    """Put a job into the instructors' lane, before all others.

    Raises:
        NotFound: there is no such job.
        Conflict: it does not wait.
    """
    raise NotImplementedError


def cancel(
    connection: Connection, now_ms: int, actor: str, job: str, reason: str
) -> None:
    """End a job that waits, runs or is parked; a result of it is refused then.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such job.
        Conflict: it has ended already.
    """
    raise NotImplementedError


def retry_parked(connection: Connection, now_ms: int, actor: str, job: str) -> None:
    """Put a parked job back into the queue, its crashes forgotten.

    Raises:
        NotFound: there is no such job.
        Conflict: it is not parked.
    """
    raise NotImplementedError
