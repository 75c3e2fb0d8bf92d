"""What staff do with their course's jobs, and operators with queue and graders."""

from __future__ import annotations

from warpbook.hub_protocol import Nothing
from warpbook_hub.queue import control, graders
from warpbook_hub.queue.overview import QueuedJob, queue
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import GraderName, WithReason


def queue_list(admitted: Admitted, _: Nothing) -> list[QueuedJob]:
    """Give all jobs of a course that have not ended."""
    return queue(admitted.connection, admitted.now_ms, admitted.course.id)


def whole_queue(admitted: Admitted, _: Nothing) -> list[QueuedJob]:
    """Give all jobs of all courses that have not ended."""
    return queue(admitted.connection, admitted.now_ms)


def pause(admitted: Admitted, given: WithReason) -> dict[str, bool]:
    """Pause the jobs of a course."""
    control.pause(*admitted.act, given.reason, admitted.course.id)
    return {"is_paused": True}


def resume(admitted: Admitted, _: Nothing) -> dict[str, bool]:
    """Let the jobs of a course go on."""
    control.resume(*admitted.act, admitted.course.id)
    return {"is_paused": False}


def pause_all(admitted: Admitted, given: WithReason) -> dict[str, bool]:
    """Pause the queue of all courses."""
    control.pause(*admitted.act, given.reason)
    return {"is_paused": True}


def resume_all(admitted: Admitted, _: Nothing) -> dict[str, bool]:
    """Let the queue go on."""
    control.resume(*admitted.act)
    return {"is_paused": False}


def raise_job(admitted: Admitted, _: Nothing) -> dict[str, str]:
    """Put a job before all others, of whatever course."""
    control.raise_job(*admitted.act, admitted.job)
    return {"job": admitted.job}


def cancel_job(admitted: Admitted, given: WithReason) -> dict[str, str]:
    control.cancel(*admitted.act, admitted.job, given.reason)
    return {"job": admitted.job}


def retry_job(admitted: Admitted, _: Nothing) -> dict[str, str]:
    """Put a parked job back into the queue."""
    control.retry_parked(*admitted.act, admitted.job)
    return {"job": admitted.job}


def register_grader(admitted: Admitted, given: GraderName) -> dict[str, str]:
    """Make a grader known; its token is shown once."""
    token = graders.register(*admitted.act, given.name)
    return {"token": token}


def drain_grader(admitted: Admitted, _: Nothing) -> dict[str, str]:
    graders.drain(*admitted.act, admitted.grader)
    return {"grader": admitted.grader}


def activate_grader(admitted: Admitted, _: Nothing) -> dict[str, str]:
    """Give a drained grader jobs again."""
    graders.activate(*admitted.act, admitted.grader)
    return {"grader": admitted.grader}


def retire_grader(admitted: Admitted, _: Nothing) -> dict[str, str]:
    """Take a grader off for good."""
    graders.retire(*admitted.act, admitted.grader)
    return {"grader": admitted.grader}
