"""Pages about what courses share: the hub for its operators, GPUs, the platform."""

from __future__ import annotations

import os
from typing import Any

from warpbook.hub_protocol import LEAST_MINUTES, MOST_MINUTES, Nothing
from warpbook_hub.course.courses import courses
from warpbook_hub.leases import board, calendar, grants, requests
from warpbook_hub.lti.ledger import ledger
from warpbook_hub.lti.links import context_of
from warpbook_hub.notices import outbox
from warpbook_hub.notices.smtp import MAIL
from warpbook_hub.queue import control
from warpbook_hub.queue.graders import graders
from warpbook_hub.queue.overview import queue
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.pages.staff_pages import entries_before
from warpbook_hub.service.parameters import LogQuery
from warpbook_hub.service.service import BACKUPS, Service

_WEEK_MS = 7 * 24 * 3_600_000
STATES = {
    "free": "free",
    "leased": "leased",
    "ending": "is taken back",
    "grades": "grades",
    "unclear": "is used without a lease",
    "unfit": "can't be leased",
    "lost": "no contact",
}


def hub_page(admitted: Admitted, given: LogQuery) -> dict[str, Any]:
    """Show the whole queue, the graders with their GPUs, and the hub's own log."""
    connection = admitted.connection
    jobs = queue(connection, admitted.now_ms)
    return {
        "jobs": jobs,
        "mails": outbox.counts(connection) if MAIL in os.environ else None,
        "running": {job.device: job for job in jobs if job.device},
        "graders": graders(connection, admitted.now_ms),
        "paused": control.pause_of(connection),
        "paused_courses": {
            one.id: reason
            for one in courses(connection)
            if (reason := control.pause_of(connection, one.id))
        },
        **entries_before(admitted, given, course=""),
    }


async def with_backups(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    def look() -> list[tuple[str, int]]:
        folder = service.folder / BACKUPS
        files = sorted(folder.glob("*.db"), reverse=True) if folder.is_dir() else []
        return [(file.name, file.stat().st_size) for file in files[:100]]

    return {**values, "backups": await service.apart(look)}


def platform_page(request: Admitted, _: Nothing) -> dict[str, Any]:
    """Show what the course is there, its roster, and scores that did not go through."""
    connection, course = request.connection, request.course.id
    context = context_of(connection, course)
    scores = None
    if context is not None:
        scores = ledger(connection, request.now_ms, course, context.issuer)
    return {"context": context, "scores": scores}


def gpu_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the GPUs; who of the course has one is shown to its staff."""
    connection, now_ms = admitted.connection, admitted.now_ms
    course = admitted.course.id
    all_gpus = board.gpus(connection, now_ms)
    return {
        "lease": requests.own_lease(connection, now_ms, admitted.actor),
        "gpus": all_gpus,
        "models": sorted({gpu.name for gpu in all_gpus if gpu.state != "lost"}),
        "free": sorted({gpu.name for gpu in all_gpus if gpu.state == "free"}),
        "line": len(grants.waiting(connection, now_ms)),
        "use": [
            use
            for use in board.use_of_courses(connection, now_ms)
            if admitted.operator or (admitted.is_staff and use.course == course)
        ],
        "sessions": calendar.sessions(connection, now_ms, now_ms + _WEEK_MS),
        "minutes": range(LEAST_MINUTES, MOST_MINUTES + 1, 10),
        "states": STATES,
    }
