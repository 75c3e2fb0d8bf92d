"""`api/v1/courses`: what the courses of the hub publish that started this server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.class_hub import ClassHub, hub_here
from warpbook.hub_client import HubProblem
from warpbook.lab_protocol import CourseLab, CourseList, OwnCourse
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode

_MOST_COURSES, _MOST_LABS = 20, 200


class CoursesHandler(Handler):
    """`GET api/v1/courses`.

    Cost: one request to the hub, and one for each course; one person at a time.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List courses and labs as the hub tells them, with its own access rules."""
        async with self.settings.setdefault("warpbook_courses", asyncio.Lock()):
            courses = await asyncio.to_thread(own_courses)
        self.finish_json(encode(courses))


def own_courses() -> CourseList:
    """Ask the hub; where there is none, there are no courses."""
    try:
        hub = hub_here()
        if hub is None:
            return CourseList(())
        courses = hub.courses()[:_MOST_COURSES]
        listed = tuple(
            OwnCourse(
                course.title,
                course.role,
                hub.course_page(course.id),
                _labs(hub, course.id),
            )
            for course in courses
        )
    except HubProblem as problem:
        return CourseList((), problem=str(problem))
    return CourseList(listed, _next_lab(listed))


def _next_lab(courses: Sequence[OwnCourse]) -> str | None:
    """Give the first open lab, in the courses' order, that a learner has not tried."""
    return next(
        (
            lab.lab
            for course in courses
            if course.role == "learner"
            for lab in course.labs
            if lab.is_open and not lab.attempts
        ),
        None,
    )


def _labs(hub: ClassHub, course: str) -> tuple[CourseLab, ...]:
    return tuple(
        CourseLab(
            lab.lab,
            lab.title,
            f"{hub.course_page(course)}/labs/{quote(lab.id)}",
            lab.is_open,
            None if lab.window is None else float(lab.window.due_ms),
            lab.mark,
            lab.points,
            lab.most_points,
            lab.attempts,
            lab.attempts_left,
        )
        for lab in hub.labs(course)[:_MOST_LABS]
    )
