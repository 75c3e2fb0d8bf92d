"""`api/v1/labs`: the list of labs, opening one, its hints, and how submissions went."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.lab_protocol import LabCards, LabHints, LabList, LabOpened, LabSolution
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
        """Give the hints that are open."""
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
