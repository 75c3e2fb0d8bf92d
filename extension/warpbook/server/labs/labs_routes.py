"""`api/v1/labs`: the list of labs, opening one, its hints, and how submissions went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.server.labs.labs_work import (
    LabsProblem,
    alone,
    cards,
    hints,
    labs,
    open_lab,
    solution,
)
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import NoQuery

#: how ids look; what has another form is no route
LAB = "([a-z][a-z0-9-]{2,40})"
_T = TypeVar("_T")


class LabsHandler(Handler):
    """`GET api/v1/labs`.

    Cost: the list of labs is read once; progress is one query.
    """

    query_type = NoQuery

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the labs; no Python of theirs runs."""
        await self._broadcaster.ready()
        sampler = self._broadcaster.sampler
        gpus = sum(it.index is not None for it in sampler.devices)
        listing = await _done(labs, gpus if sampler.replay is None else 0)
        self.finish_json(encode(listing))


class LabOpenHandler(Handler):
    """`POST api/v1/labs/LAB/open`.

    Cost: one child process at a time.
    """

    query_type = NoQuery

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
            try:
                opened = await open_lab(lab, Path(root))
            except LookupError as problem:
                raise web.HTTPError(404, str(problem)) from None
            except (LabsProblem, OSError) as problem:
                raise web.HTTPError(409, str(problem)) from None
        self.finish_json(encode(opened))


class LabHintsHandler(Handler):
    """`GET` and `POST api/v1/labs/LAB/hints`.

    Cost: one lab is read; one request at a time.
    """

    query_type = NoQuery

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        """Give the hints that are open."""
        self.finish_json(encode(await _done(hints, lab, False)))

    @web.authenticated
    @authorized
    async def post(self, lab: str) -> None:
        """Open one more, and give all that are open."""
        self.finish_json(encode(await _done(hints, lab, True)))


class LabCardsHandler(Handler):
    """`GET api/v1/labs/LAB/cards`.

    Cost: fifty results; one request at a time.
    """

    query_type = NoQuery

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        """Tell how the last submissions went."""
        self.finish_json(encode(await _done(cards, lab)))


class LabSolutionHandler(Handler):
    """`GET api/v1/labs/LAB/solution`.

    Cost: a few files; on a server of a hub two requests to it, one person at a time.
    """

    query_type = NoQuery

    @web.authenticated
    @authorized
    async def get(self, lab: str) -> None:
        """Give the reference and its discussion, as the rules permit."""
        # it may wait for the hub, which holds up no other question about labs
        async with self.settings.setdefault("warpbook_solution", asyncio.Lock()):
            try:
                answer = await asyncio.to_thread(solution, lab)
            except LookupError as problem:
                raise web.HTTPError(404, str(problem)) from None
            except (LabsProblem, OSError) as problem:
                raise web.HTTPError(409, str(problem)) from None
        self.finish_json(encode(answer))


async def _done(work: Callable[..., _T], *arguments: object) -> _T:
    """Do it on a thread; what can't be done is told in words."""
    try:
        return await asyncio.to_thread(alone, work, *arguments)
    except LookupError as problem:
        raise web.HTTPError(404, str(problem)) from None
    except (LabsProblem, OSError) as problem:
        raise web.HTTPError(409, str(problem)) from None
