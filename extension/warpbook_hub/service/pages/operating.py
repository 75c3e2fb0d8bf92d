"""The page with which operators run the hub: what concerns all of its courses."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from warpbook_hub.course.courses import courses
from warpbook_hub.database.tables import PEOPLE
from warpbook_hub.queue import control
from warpbook_hub.queue.graders import graders
from warpbook_hub.queue.listing import queue
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.pages.teaching import entries_before
from warpbook_hub.service.parameters import LogQuery
from warpbook_hub.service.service import BACKUPS, Service


def hub_page(admitted: Admitted, given: LogQuery) -> dict[str, Any]:
    """Show the whole queue, the graders with their GPUs, and the hub's own log."""
    connection = admitted.connection
    jobs = queue(connection, admitted.now_ms)
    log = entries_before(admitted, given, course="")
    ids = {name for entry in log["entries"] for name in (entry.actor, entry.subject)}
    people = select(PEOPLE.c.id, PEOPLE.c.username).where(PEOPLE.c.id.in_(ids))
    return {
        "jobs": jobs,
        "running": {job.device: job for job in jobs if job.device},
        "graders": graders(connection, admitted.now_ms),
        "paused": control.pause_of(connection),
        "paused_courses": {
            one.id: reason
            for one in courses(connection)
            if (reason := control.pause_of(connection, one.id))
        },
        **log,
        "names": {row.id: row.username for row in connection.execute(people)},
    }


async def with_backups(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the backups that are there."""

    def look() -> list[tuple[str, int]]:
        folder = service.folder / BACKUPS
        files = sorted(folder.glob("*.db"), reverse=True) if folder.is_dir() else []
        return [(file.name, file.stat().st_size) for file in files[:100]]

    return {**values, "backups": await service.apart(look)}
