"""What people do with GPUs for their notebooks."""

from __future__ import annotations

from warpbook.hub_protocol import LeaseFor, LeaseLonger, Nothing, OwnLease
from warpbook_hub.errors import Forbidden
from warpbook_hub.leases import calendar, requests
from warpbook_hub.leases.calendar import GpuSession
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import SessionToCancel, SessionToReserve


def own_lease(admitted: Admitted, _: Nothing) -> OwnLease:
    """Tell how it stands with one's own lease."""
    return requests.own_lease(*admitted.act)


def take(admitted: Admitted, given: LeaseFor) -> OwnLease:
    """Ask for a GPU."""
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
    """Have a lease last longer."""
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
