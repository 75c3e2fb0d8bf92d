"""Pages that show the class as it is now: its rows, and the queue."""

from __future__ import annotations

from collections import Counter
from typing import Any

from warpbook.hub_protocol import Nothing
from warpbook_hub.course.courses import members
from warpbook_hub.course.publications import Publication, publications
from warpbook_hub.queue import control
from warpbook_hub.queue.graders import graders
from warpbook_hub.queue.overview import queue
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import ClassQuery
from warpbook_hub.service.row_view import STATES, row_view
from warpbook_hub.service.service import Service


def class_page(admitted: Admitted, given: ClassQuery) -> dict[str, Any]:
    """Choose the lab that the class is shown for; the rows come after."""
    connection, course = admitted.connection, admitted.course.id
    labs = [lab for lab in publications(connection, course) if not lab.is_withdrawn]
    people = members(connection, course)
    section = given.section
    if not admitted.is_instructor:
        own = [one.section for one in people if one.person == admitted.viewer.person]
        section = own[0] if own else section
    chosen = next((lab for lab in labs if lab.id == given.lab), None)
    return {
        "labs": labs,
        "lab": chosen or _opened_last(labs, admitted.now_ms),
        "section": section,
        "sections": sorted({one.section for one in people if one.role == "learner"}),
        "states": STATES,
    }


async def with_rows(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the rows, which are kept in memory."""
    lab = values["lab"]
    rows = await service.live.rows(service, values["course"].id)
    views = [
        row_view(row, lab.id if lab is not None else "")
        for row in rows
        if values["section"] in ("", row.section)
    ]
    return {**values, "rows": views}


def queue_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a course's jobs, and counts of the other courses' and of what grades."""
    connection, course = admitted.connection, admitted.course.id
    jobs = queue(connection, admitted.now_ms)
    heard = [
        grader
        for grader in graders(connection, admitted.now_ms)
        if grader.is_heard and grader.state == "active"
    ]
    return {
        "jobs": [job for job in jobs if job.course == course],
        "others": Counter(job.state for job in jobs if job.course != course),
        "graders": len(heard),
        "cpu_slots": sum(grader.cpu_slots for grader in heard),
        "gpus": sum(len(grader.devices) for grader in heard),
        "labs": {lab.id: lab for lab in publications(connection, course)},
        "paused": control.pause_of(connection, course),
        "all_paused": control.pause_of(connection),
    }


def _opened_last(labs: list[Publication], now_ms: int) -> Publication | None:
    """Give the lab that people most likely work at."""
    opened = [
        (min(window.opens_ms for window in lab.windows.values()), lab.lab, lab)
        for lab in labs
        if any(window.opens_ms <= now_ms for window in lab.windows.values())
    ]
    if opened:
        return max(opened, key=lambda one: one[:2])[2]
    return labs[0] if labs else None
