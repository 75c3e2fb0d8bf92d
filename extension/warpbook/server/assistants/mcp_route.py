"""`POST api/v1/mcp`: tools for assistants, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import importlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_server.utils import ensure_async
from tornado import web

from warpbook.mcp.marked import Own
from warpbook.server.assistants.server_actor import ServerActor
from warpbook.server.assistants.server_source import ServerParts, ServerSource
from warpbook.server.consent.acts import Acts
from warpbook.server.records.rest import Handler
from warpbook.server.reports.trace_route import found_file
from warpbook.server.stream.kernels import running_kernels

if TYPE_CHECKING:
    from warpbook.server.assistants.bridge import Bridge

#: what is said where the extra is not there
NOT_INSTALLED = (
    "This server has no tools for assistants. Install them beside it and start it "
    "anew: pip install 'warpbook[mcp]'"
)
NO_TOKEN = (
    "Give this server's token, as the header `Authorization: token ...`: "
    "`jupyter server list` shows it, and a hub's page of tokens gives one."
)


class Assistants:
    """The bridge, once somebody asks; on the event loop."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        self._making = asyncio.Lock()

    async def bridge(self) -> Bridge:
        """Give it.

        Raises:
            ImportError: the package `mcp` is not installed.
        """
        async with self._making:
            if self._bridge is None:
                # a second of imports, which others need not wait for
                name = "warpbook.server.assistants.bridge"
                module = await asyncio.to_thread(importlib.import_module, name)
                self._bridge = module.Bridge()
            return self._bridge

    async def close(self) -> None:
        """End what is being answered."""
        if self._bridge is not None:
            await self._bridge.close()


class McpHandler(Handler):
    """Hands a request on to the tools, with the rights of who asks.

    Cost: that of the tool; an answer has at most 40,000 bytes. The first request
    imports the package.
    """

    _assistants: Assistants
    _acts: Acts
    _parts: ServerParts
    _work: asyncio.Task[None] | None = None

    def skip_check_origin(self) -> bool:
        """A page of elsewhere is refused also where it knows the token."""
        return False

    def check_xsrf_cookie(self) -> None:
        """Let programs in by their token; they know no cookie.

        Raises:
            HTTPError: 403.
        """
        try:
            super().check_xsrf_cookie()
        except web.HTTPError:
            raise web.HTTPError(403, NO_TOKEN) from None

    async def prepare(self) -> None:  # type: ignore[override]
        """Check where a request comes from before anything else.

        Raises:
            HTTPError: 400, 403 or 503.
        """
        if not self.check_origin():
            raise web.HTTPError(403, "A page of another site asks.")
        await super().prepare()

    @web.authenticated
    async def post(self) -> None:
        """Answer one message of the protocol, to who may read."""
        await self._check_may_read("warpbook")
        try:
            bridge = await self._assistants.bridge()
        except ImportError:
            raise web.HTTPError(501, NOT_INSTALLED) from None
        name = Own("the Jupyter server")
        source = ServerSource(
            self._parts, self._find, self.base_url, name, self._actor()
        )
        self._work = asyncio.ensure_future(bridge.answer(self, source))
        try:
            await self._work
        except asyncio.CancelledError:
            # nobody waits for the answer
            return
        self.finish()

    def on_connection_close(self) -> None:
        """End the work for who has gone."""
        super().on_connection_close()
        if self._work is not None:
            self._work.cancel()

    def _actor(self) -> ServerActor:
        root = getattr(self.contents_manager, "root_dir", "")
        return ServerActor(
            self._acts,
            partial(running_kernels, self.serverapp),
            Path(root) if root else None,
            # the one name that comes with each request
            self.request.headers.get("User-Agent", ""),
            self._may_act,
        )

    async def _may_act(self) -> bool:
        allowed = self.authorizer.is_authorized(
            self, self.current_user, "execute", "kernels"
        )
        return bool(await ensure_async(allowed))

    async def _find(self, path: str) -> tuple[str, Path]:
        await self._check_may_read("contents")
        return await found_file(self.contents_manager, path)

    async def _check_may_read(self, resource: str) -> None:
        user = self.current_user
        allowed = self.authorizer.is_authorized(self, user, "read", resource)
        if not await ensure_async(allowed):
            raise web.HTTPError(403, f"You may not read {resource} of this server.")
