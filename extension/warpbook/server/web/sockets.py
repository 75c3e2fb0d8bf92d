"""A WebSocket of this server: who may open it, and writing that never waits."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Awaitable
from typing import Any

from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import ensure_async
from tornado import web, websocket
from tornado.iostream import IOStream, StreamClosedError

from warpbook.protocol import MAX_CLIENT_MESSAGE_BYTES
from warpbook.server.web.page_request import refuse_while_draining

#: of frames in the kernel's send buffer, which a slow viewer sees late
_SEND_BUFFER_BYTES = 64 * 1024


class AuthorizedSocket(WebSocketMixin, websocket.WebSocketHandler, JupyterHandler):
    """A socket for whoever may read the GPUs; anybody else is refused with 403."""

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Refuse whoever may not read, before the upgrade."""
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "read", "warpbook")
        )
        if not allowed:
            raise web.HTTPError(403)
        if self.request.headers.get("Upgrade", "").lower() != "websocket":
            raise web.HTTPError(400, "Only a WebSocket is served here.")
        # a browser always says here where it comes from, a program need not
        origin = self.request.headers.get("Origin")
        if origin is not None and not self.check_origin(origin):
            raise web.HTTPError(403)
        refuse_while_draining(self)
        await self.before_upgrade()
        upgrade: Awaitable[None] | None = super().get(*args, **kwargs)
        if upgrade is not None:
            await upgrade

    async def before_upgrade(self) -> None:
        """Raise an HTTPError where there is nothing to serve."""

    @property
    def max_message_size(self) -> int:
        """Tornado closes with 1009 what is larger."""
        return MAX_CLIENT_MESSAGE_BYTES

    def send_soon(self) -> None:
        """Let frames out at once, and few of them wait in the kernel."""
        self.set_nodelay(True)
        stream = self._stream()
        if stream is not None and stream.socket is not None:
            stream.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES
            )

    def busy(self) -> bool:
        """Whether an earlier message is still on its way."""
        stream = self._stream()
        return stream is not None and stream.writing()

    def write_text(self, encoded: bytes) -> None:
        """Write a message, or nothing if the viewer is gone."""
        connection, stream = self.ws_connection, self._stream()
        if connection is None or stream is None or connection.is_closing():
            return
        # not awaited, and not by write_message, which makes a task for each message:
        # a burst to many viewers holds up other requests, and one slow viewer nobody
        with contextlib.suppress(StreamClosedError):
            stream.write(text_frame(encoded))

    async def written(self, frames: bytes) -> bool:
        """Write whole frames and wait until they are on their way; False if closed."""
        stream = self._stream()
        if stream is None:
            return False
        try:
            await stream.write(frames)
        except StreamClosedError:
            return False
        return True

    def _stream(self) -> IOStream | None:
        return None if self.ws_connection is None else self.ws_connection.stream


def text_frame(payload: bytes) -> bytes:
    """A whole text message from server to client: RFC 6455, section 5.2."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", 0x81, size) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", 0x81, 126, size) + payload
    return struct.pack("!BBQ", 0x81, 127, size) + payload
