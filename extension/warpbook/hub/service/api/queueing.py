"""What staff do with the queue and the graders."""

from __future__ import annotations

from warpbook.hub.queue import control, graders
from warpbook.hub.queue.listing import QueuedJob, queue
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.parameters import GraderName, Nothing, WithReason


def queue_list(asked: Admitted, _: Nothing) -> list[QueuedJob]:
    """Give all jobs of a course that have not ended."""
    return queue(asked.connection, asked.now_ms, asked.course.id)


def pause(asked: Admitted, given: WithReason) -> dict[str, bool]:
    """Pause the queue."""
    control.pause(asked.connection, asked.now_ms, asked.actor, given.reason)
    return {"is_paused": True}


def resume(asked: Admitted, _: Nothing) -> dict[str, bool]:
    """Let the queue go on."""
    control.resume(asked.connection, asked.now_ms, asked.actor)
    return {"is_paused": False}


def raise_job(asked: Admitted, _: Nothing) -> dict[str, str]:
    """Put a job before all others."""
    control.raise_job(asked.connection, asked.now_ms, asked.actor, asked.job)
    return {"job": asked.job}


def cancel_job(asked: Admitted, given: WithReason) -> dict[str, str]:
    """End a job."""
    control.cancel(asked.connection, asked.now_ms, asked.actor, asked.job, given.reason)
    return {"job": asked.job}


def retry_job(asked: Admitted, _: Nothing) -> dict[str, str]:
    """Put a parked job back into the queue."""
    control.retry_parked(asked.connection, asked.now_ms, asked.actor, asked.job)
    return {"job": asked.job}


def register_grader(asked: Admitted, given: GraderName) -> dict[str, str]:
    """Make a grader known; its token is told once."""
    token = graders.register(asked.connection, asked.now_ms, asked.actor, given.name)
    return {"token": token}


def drain_grader(asked: Admitted, _: Nothing) -> dict[str, str]:
    """Give a grader no more jobs."""
    graders.drain(asked.connection, asked.now_ms, asked.actor, asked.grader)
    return {"grader": asked.grader}


def activate_grader(asked: Admitted, _: Nothing) -> dict[str, str]:
    """Give a drained grader jobs again."""
    graders.activate(asked.connection, asked.now_ms, asked.actor, asked.grader)
    return {"grader": asked.grader}


def retire_grader(asked: Admitted, _: Nothing) -> dict[str, str]:
    """Take a grader off for good."""
    graders.retire(asked.connection, asked.now_ms, asked.actor, asked.grader)
    return {"grader": asked.grader}
