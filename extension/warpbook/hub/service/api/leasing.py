"""What people do with GPUs for their notebooks."""

from __future__ import annotations

from warpbook.hub.errors import Forbidden
from warpbook.hub.lease_protocol import OwnLease
from warpbook.hub.leases import asking, calendar
from warpbook.hub.leases.calendar import GpuSession
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.parameters import (
    LeaseFor,
    LeaseLonger,
    Nothing,
    SessionToCancel,
    SessionToReserve,
)


def own_lease(asked: Admitted, _: Nothing) -> OwnLease:
    """Tell how it stands with one's own lease."""
    return asking.own_lease(asked.connection, asked.now_ms, asked.actor)


def take(asked: Admitted, given: LeaseFor) -> OwnLease:
    """Ask for a GPU."""
    if asked.viewer.is_hidden:
        raise Forbidden("You are off the roster.")
    return asking.take(
        asked.connection,
        asked.now_ms,
        asked.course.id,
        asked.actor,
        given.minutes,
        given.model,
    )


def extend(asked: Admitted, given: LeaseLonger) -> OwnLease:
    """Have a lease last longer."""
    return asking.extend(asked.connection, asked.now_ms, asked.actor, given.minutes)


def give_back(asked: Admitted, _: Nothing) -> OwnLease:
    """End a lease, or leave the line."""
    return asking.give_back(asked.connection, asked.now_ms, asked.actor)


def reserve(asked: Admitted, given: SessionToReserve) -> GpuSession:
    """Reserve GPUs of a session of the course."""
    wanted = GpuSession(
        "", asked.course.id, given.title, given.gpus, given.starts_ms, given.ends_ms
    )
    return calendar.reserve(asked.connection, asked.now_ms, asked.actor, wanted)


def cancel(asked: Admitted, given: SessionToCancel) -> dict[str, str]:
    """Let others have the GPUs of a session."""
    calendar.cancel(
        asked.connection, asked.now_ms, asked.actor, asked.course.id, given.session
    )
    return {"session": given.session}
