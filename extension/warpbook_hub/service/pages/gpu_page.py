"""The GPUs of the hub: one's own lease, the line, the week, and every GPU."""

from __future__ import annotations

from typing import Any

from warpbook.hub_protocol import Nothing
from warpbook_hub.leases import asking, board, calendar, granting
from warpbook_hub.leases.calendar import LEAST_MINUTES, MOST_MINUTES
from warpbook_hub.service.admitted import Admitted

_WEEK_MS = 7 * 24 * 3_600_000
STATES = {
    "free": "free",
    "leased": "leased",
    "ending": "is taken back",
    "grades": "grades",
    "unclear": "is used without a lease",
    "unfit": "can't be leased",
    "lost": "not heard of",
}


def gpu_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the GPUs; who of the course has one is shown to its staff."""
    connection, now_ms = admitted.connection, admitted.now_ms
    course = admitted.course.id
    all_gpus = board.gpus(connection, now_ms)
    return {
        "lease": asking.own_lease(connection, now_ms, admitted.actor),
        "gpus": all_gpus,
        "models": sorted({gpu.name for gpu in all_gpus if gpu.state != "lost"}),
        "free": sorted({gpu.name for gpu in all_gpus if gpu.state == "free"}),
        "line": len(granting.waiting(connection, now_ms)),
        "use": [
            use
            for use in board.use_of_courses(connection, now_ms)
            if admitted.operator or (admitted.is_staff and use.course == course)
        ],
        "sessions": calendar.sessions(connection, now_ms, now_ms + _WEEK_MS),
        "minutes": range(LEAST_MINUTES, MOST_MINUTES + 1, 10),
        "states": STATES,
    }
