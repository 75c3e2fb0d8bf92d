"""What people do with queue, graders and GPUs."""

from __future__ import annotations

from warpbook.hub_protocol import LeaseFor, LeaseLonger, Nothing, OwnLease
from warpbook_hub.errors import Forbidden
from warpbook_hub.leases import calendar, requests
from warpbook_hub.leases.calendar import GpuSession
from warpbook_hub.queue import control, graders
from warpbook_hub.queue.overview import QueuedJob, queue
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import (
    GraderName,
    SessionToCancel,
    SessionToReserve,
    WithReason,
)


def queue_list(admitted: Admitted, _: Nothing) -> list[QueuedJob]:
    return queue(admitted.connection, admitted.now_ms, admitted.course.id)


def whole_queue(admitted: Admitted, _: Nothing) -> list[QueuedJob]:
    return queue(admitted.connection, admitted.now_ms)


def pause(admitted: Admitted, given: WithReason) -> dict[str, bool]:
    control.pause(*admitted.act, given.reason, admitted.course.id)
    return {"is_paused": True}


def resume(admitted: Admitted, _: Nothing) -> dict[str, bool]:
    """Let the jobs of a course go on."""
    control.resume(*admitted.act, admitted.course.id)
    return {"is_paused": False}


def pause_all(admitted: Admitted, given: WithReason) -> dict[str, bool]:
    control.pause(*admitted.act, given.reason)
    return {"is_paused": True}


def resume_all(admitted: Admitted, _: Nothing) -> dict[str, bool]:
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
    graders.retire(*admitted.act, admitted.grader)
    return {"grader": admitted.grader}


def own_lease(admitted: Admitted, _: Nothing) -> OwnLease:
    return requests.own_lease(*admitted.act)


def take(admitted: Admitted, given: LeaseFor) -> OwnLease:
    if admitted.viewer.is_hidden:
        raise Forbidden("You are off the roster.")
    return requests.take(
        admitted.connection,
        admitted.now_ms,
        admitted.course.id,
        admitted.actor,
        given.minutes,
        given.model,
    )


def extend(admitted: Admitted, given: LeaseLonger) -> OwnLease:
    return requests.extend(*admitted.act, given.minutes)


def give_back(admitted: Admitted, _: Nothing) -> OwnLease:
    """End a lease, or leave the line."""
    return requests.give_back(*admitted.act)


def reserve(admitted: Admitted, given: SessionToReserve) -> GpuSession:
    wanted = GpuSession(
        "", admitted.course.id, given.title, given.gpus, given.starts_ms, given.ends_ms
    )
    return calendar.reserve(*admitted.act, wanted)


def cancel(admitted: Admitted, given: SessionToCancel) -> dict[str, str]:
    """Let others have the GPUs of a session."""
    calendar.cancel(*admitted.act, admitted.course.id, given.session)
    return {"session": given.session}
