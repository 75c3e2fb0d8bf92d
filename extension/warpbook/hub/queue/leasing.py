"""Gives jobs to graders, for a time."""

from __future__ import annotations

from sqlalchemy import Connection

from warpbook.hub.grader_protocol import (
    Heartbeat,
    HeartbeatAnswer,
    Work,
    WorkRequest,
)

LEASE_S = 60.0
HEARTBEAT_S = 10.0
POLL_S = 1.0


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
    raise NotImplementedError


def heartbeat(
    connection: Connection,
    now_ms: int,
    grader: str,
    beat: Heartbeat,
    lease_s: float = LEASE_S,
) -> HeartbeatAnswer:
    """Prolong leases, and tell which are lost."""
    raise NotImplementedError


def reclaim(connection: Connection, now_ms: int) -> int:
    """Take back what graders have not been heard of; three times parks a job.

    Returns:
        How many were taken back.
    """
    raise NotImplementedError


def grace(connection: Connection, now_ms: int, lease_s: float = LEASE_S) -> None:
    """Prolong all leases as the service begins, for graders that could not reach it."""
    raise NotImplementedError
