"""The tools over a pipe, for an editor that starts `warpbook mcp` as its child."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from warpbook.mcp.protocol_server import INSTRUCTIONS, Context
from warpbook_monitors._version import __version__
from warpbook_monitors.plain_text import bounded

ROUTE = "warpbook/api/v1/mcp"
#: a cell that an acting tool waits for takes longest, after the person's answer
_LONGEST_S = 660.0
_MOST_WORDS = 300
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PING = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_GONE = (
    "The Jupyter server does not answer. If it was started anew, start `warpbook mcp` "
    "anew, too."
)


class NoServer(Exception):
    """The Jupyter server can't be asked; the message says why."""


async def over_pipe(server: Server[Any]) -> None:
    """Answer on stdin and stdout until stdin ends."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def forwarding(url: str, token: str) -> AsyncIterator[Server[Any]]:
    """Give a server that hands each request on to a Jupyter server's route.

    Args:
        url: of the Jupyter server, with a slash at its end.
        token: for it; only ever in a header.

    Raises:
        NoServer: it does not answer, or refuses.
    """
    http = httpx2.AsyncClient(
        headers={"Authorization": f"token {token}"},
        timeout=_LONGEST_S,
        # the token is for nobody between
        trust_env=urlsplit(url).hostname not in _LOOPBACK,
    )
    async with http:
        await _check(http, url)
        transport = streamable_http_client(f"{url}{ROUTE}", http_client=http)
        async with Client(transport) as client:
            yield _forwarding(client)


async def _check(http: httpx2.AsyncClient, url: str) -> None:
    try:
        answer = await http.post(f"{url}{ROUTE}", json=_PING, headers=_ACCEPT)
    except httpx2.HTTPError as problem:
        raise NoServer(f"{url} does not answer: {bounded(str(problem))}") from None
    if answer.status_code in (302, 401, 403):
        raise NoServer(f"{url} does not accept the token.")
    if answer.status_code == 404:
        raise NoServer(f"{url} is no Jupyter server with warpbook.")
    if answer.status_code != 200:
        words = bounded(answer.text, _MOST_WORDS)
        raise NoServer(f"{url} refuses ({answer.status_code}): {words}")


def _forwarding(client: Client) -> Server[Any]:
    async def list_tools(
        _: Context, asked: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return await client.list_tools(cursor=asked.cursor if asked else None)

    async def call_tool(_: Context, asked: CallToolRequestParams) -> CallToolResult:
        try:
            return await client.call_tool(asked.name, asked.arguments)
        except (MCPError, httpx2.HTTPError):
            return CallToolResult(content=[TextContent(text=_GONE)], is_error=True)

    return Server(
        "warpbook",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
