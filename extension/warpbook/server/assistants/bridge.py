"""The package `mcp` as an ASGI application behind a handler of Tornado's.

Nothing listens on a port of its own: requests come through Jupyter's server, after its
authentication.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler

from warpbook.mcp.protocol_server import Context, protocol_server
from warpbook.mcp.source import Source
from warpbook.mcp.tools import TOOLS

#: of a request; arguments are short
MOST_BODY_BYTES = 1_000_000
#: of what is handed on, what no tool may see
_CREDENTIALS = ("authorization", "cookie", "x-xsrftoken")
#: in ASGI's scope, what answers a request
_SOURCE = "warpbook.source"


class Bridge:
    """Hands requests on while it runs; made when the first of them comes."""

    def __init__(self) -> None:
        """Prepare; nothing runs yet."""
        self._manager = StreamableHTTPSessionManager(
            protocol_server(TOOLS, _source_of),
            json_response=True,
            stateless=True,
            max_request_body_size=MOST_BODY_BYTES,
        )
        self._is_over = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        # one task enters and leaves the manager's task group
        async with self._manager.run():
            self._is_ready.set()
            await self._is_over.wait()

    async def close(self) -> None:
        """End what is being answered."""
        self._is_over.set()
        await self._running

    async def answer(self, handler: RequestHandler, source: Source) -> None:
        """Answer the request of a handler, whose user is known, from a source."""
        await self._is_ready.wait()
        request = handler.request
        is_read = False

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read:
                # no event comes: when a client leaves, the handler's task is cancelled
                await asyncio.Event().wait()
            is_read = True
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                handler.set_status(message["status"])
                for name, value in message.get("headers", ()):
                    handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
            else:
                handler.write(message.get("body", b""))

        scope = {**_scope(request), _SOURCE: source}
        await self._manager.handle_request(scope, receive, send)


def _scope(request: HTTPServerRequest) -> dict[str, Any]:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in request.headers.get_all()
        if name.lower() not in _CREDENTIALS
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.protocol,
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": None,
        "server": None,
    }


def _source_of(context: Context) -> Source:
    assert context.request is not None
    source: Source = context.request.scope[_SOURCE]
    return source
