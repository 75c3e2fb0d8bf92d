"""Takes what graders give back: exactly one result of each job is accepted."""

from __future__ import annotations

from sqlalchemy import Connection

from warpbook.hub.grader_protocol import JobResult, Receipt, Release, Released

#: leases without a result, after which a person has to look
MOST_CRASHES = 3
#: results "too busy", after which the last one is kept
MOST_BUSY = 5


def finish(
    connection: Connection, now_ms: int, grader: str, result: JobResult
) -> Receipt:
    """Accept a result, if its lease is the job's last one.

    A result that was accepted before is acknowledged once more; one of a lost lease is
    refused, and noted. "Too busy" goes back into the queue behind first runs. A right
    source of a timed lab goes on to a GPU where there is one.
    """
    raise NotImplementedError


def release(
    connection: Connection, now_ms: int, grader: str, given_back: Release
) -> Released:
    """Take a job back without a result: it is queued again, or parked for a person."""
    raise NotImplementedError
