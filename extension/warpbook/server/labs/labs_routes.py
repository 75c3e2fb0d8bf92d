"""`api/v1/labs`: the list of labs, opening one, its hints, and how submissions went."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

import msgspec
from jupyter_server.auth.decorator import authorized
from msgspec import Meta, Struct
from tornado import web

from warpbook.class_hub import ClassHub, hub_here
from warpbook.hub_client import HubProblem
from warpbook.lab_protocol import (
    CourseLab,
    CourseList,
    LabCards,
    LabHints,
    LabList,
    LabOpened,
    LabSolution,
    OwnCourse,
)
from warpbook.server.records.rest import Handler
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook_labs.errors import LabError
from warpbook_labs.lab.files import UnfitFile
from warpbook_monitors.plain_text import bounded

#: how ids look; what has another form is no route
LAB = "([a-z][a-z0-9-]{2,40})"
# msgspec and NVRTC take no two threads that load the same thing for the first time
_one_at_a_time = threading.Lock()
_MOST_WORDS = 500
_T = TypeVar("_T")


class LabsHandler(Handler):
    """`GET api/v1/labs`.

    Cost: the list of labs is read once; progress is one query.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the labs; no Python of theirs runs."""
        self.finish_json(encode(await lab_list(self._broadcaster)))


async def lab_list(broadcaster: Broadcaster) -> LabList:
    """List the labs, as far as they can be checked on the GPUs here.

    Raises:
        HTTPError: they can't be read.
    """
    await broadcaster.ready()
    sampler = broadcaster.sampler
    gpus = sum(it.index is not None for it in sampler.devices)
    return await done(_labs, gpus if sampler.replay is None else 0)


class LabOpenHandler(Handler):
    """`POST api/v1/labs/LAB/open`.

    Cost: one child process at a time.
    """

    @web.authenticated
    @authorized
    async def post(self, lab: str) -> None:
        """Put a lab's notebook below the folder that the server shows."""
        root = getattr(self.contents_manager, "root_dir", "")
        if not root or not Path(root).is_dir():
            raise web.HTTPError(
                409,
                "This server keeps its notebooks in no folder: open labs on a terminal "
                "with `warpbook labs open`.",
            )
        # one child at a time: opening is rare, and a person waits for it
        async with self.settings.setdefault("warpbook_opening_lab", asyncio.Lock()):
            with refusals():
                opened = await (await asyncio.to_thread(_opener))(lab, Path(root))
        self.finish_json(encode(opened))


class LabHintsHandler(Handler):
    """`GET` and `POST api/v1/labs/LAB/hints`.

    Cost: one lab is read; one request at a time.
    """

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        self.finish_json(encode(await done(_hints, lab, False)))

    @web.authenticated
    @authorized
    async def post(self, lab: str) -> None:
        """Open one more, and give all that are open."""
        self.finish_json(encode(await done(_hints, lab, True)))


class LabCardsHandler(Handler):
    """`GET api/v1/labs/LAB/cards`.

    Cost: fifty results; one request at a time.
    """

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        """Tell how the last submissions went."""
        self.finish_json(encode(await done(_cards, lab)))


class LabSolutionHandler(Handler):
    """`GET api/v1/labs/LAB/solution`.

    Cost: a few files; on a server of a hub two requests to it, one person at a time.
    """

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        """Give the reference and its discussion, as the rules permit."""
        # it may wait for the hub, which holds up no other question about labs
        async with self.settings.setdefault("warpbook_solution", asyncio.Lock()):
            with refusals():
                answer = await asyncio.to_thread(_solution, lab)
        self.finish_json(encode(answer))


async def done(work: Callable[..., _T], *arguments: object) -> _T:
    """Do it on a thread, one at a time."""

    def alone() -> _T:
        with _one_at_a_time:
            return work(*arguments)

    with refusals():
        return await asyncio.to_thread(alone)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Answer what can't be done with its reason."""
    try:
        yield
    except LookupError as problem:
        raise web.HTTPError(404, str(problem)) from None
    except (LabError, UnfitFile, OSError, msgspec.MsgspecError) as problem:
        raise web.HTTPError(409, bounded(str(problem), _MOST_WORDS)) from None


# the engine of labs takes 50 ms to load, which a server's start need not wait for


def _labs(gpus: int) -> LabList:
    from warpbook.server.labs.labs_work import labs

    return labs(gpus)


def _hints(lab: str, open_one: bool) -> LabHints:
    from warpbook.server.labs.labs_work import hints

    return hints(lab, open_one)


def _cards(lab: str) -> LabCards:
    from warpbook.server.labs.labs_work import cards

    return cards(lab)


def _solution(lab: str) -> LabSolution:
    from warpbook.server.labs.labs_work import solution

    return solution(lab)


def _opener() -> Callable[[str, Path], Awaitable[LabOpened]]:
    from warpbook.server.labs.labs_work import open_lab

    return open_lab


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
                _course_labs(hub, course.id),
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


def _course_labs(hub: ClassHub, course: str) -> tuple[CourseLab, ...]:
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


# the engine of labs takes 50 ms to load, which a server's start need not wait for


class QuizHandler(Handler):
    """`GET api/v1/quizzes/NAME`.

    Cost: the descriptions of the labs are read; one request at a time.
    """

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """List the questions; no Python of a lab runs."""
        from warpbook.server.labs.labs_work import quiz_sheet

        self.finish_json(encode(await done(quiz_sheet, name)))


class _Answer(Struct, frozen=True):
    #: from 1
    question: Annotated[int, Meta(ge=1, le=50)]
    #: of a choice, or "?"
    answer: Annotated[str, Meta(pattern=r"^[a-h?]$")]


class QuizMarkHandler(Handler):
    """`GET api/v1/quizzes/NAME/mark`.

    Cost: one child process at a time, which checks a choice after the other.
    """

    query_type = _Answer

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        from warpbook.server.labs.labs_work import quiz_mark

        query = self.query(_Answer)
        async with self.settings.setdefault("warpbook_marking", asyncio.Lock()):
            with refusals():
                mark = await quiz_mark(name, query.question, query.answer)
        self.finish_json(encode(mark))


class _Wrong(Struct, frozen=True):
    #: numbers of questions with commas between them
    wrong: Annotated[str, Meta(pattern=r"^(\d{1,2}(,\d{1,2}){0,49})?$")] = ""


class QuizBeginHandler(Handler):
    """`GET api/v1/quizzes/placement/begin`.

    Cost: the descriptions of the labs are read; one request at a time.
    """

    query_type = _Wrong

    @web.authenticated
    @authorized
    async def get(self) -> None:
        from warpbook.server.labs.labs_work import quiz_begin

        wrong = {
            int(number) for number in self.query(_Wrong).wrong.split(",") if number
        }
        self.finish_json(encode(await done(quiz_begin, wrong)))
