"""The WebSocket: one viewer, from its handshake to its close."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable
from typing import Any

import msgspec
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import ensure_async
from tornado import web, websocket
from tornado.iostream import IOStream, StreamClosedError

from warpbook.protocol import (
    MAX_CLIENT_MESSAGE_BYTES,
    ClientMessage,
    CloseCode,
    Error,
    Frame,
    Gap,
    Subscribe,
)
from warpbook.server.broadcast import Broadcaster
from warpbook.server.selection import Pace, Refused, Selection, encode, select
from warpbook_monitors.history import Piece, decode

#: messages that can't be understood, after which the connection is closed
MAX_GARBAGE = 10
#: of messages that must not be left out, while nothing gets through
MAX_WAITING_BYTES = 16_000_000
#: of frames in the kernel's send buffer, which a slow viewer sees late
_SEND_BUFFER_BYTES = 64 * 1024

_decode = msgspec.json.Decoder(ClientMessage).decode


class StreamHandler(WebSocketMixin, websocket.WebSocketHandler, JupyterHandler):
    """`GET <base_url>/warpbook/api/v1/stream`."""

    def initialize(self, broadcaster: Broadcaster, max_viewers: int) -> None:
        """Take what the application shares."""
        self._broadcaster = broadcaster
        self._max_viewers = max_viewers
        self._garbage = 0
        self._waiting_bytes = 0
        self._skipped_ms: float | None = None
        self._catch_up: asyncio.Task[None] | None = None

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Refuse whoever may not read, before the upgrade."""
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "read", "warpbook")
        )
        if not allowed:
            raise web.HTTPError(403)
        upgrade: Awaitable[None] | None = super().get(*args, **kwargs)
        if upgrade is not None:
            await upgrade

    @property
    def max_message_size(self) -> int:
        """Tornado closes with 1009 what is larger."""
        return MAX_CLIENT_MESSAGE_BYTES

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Say hello, once the devices are known."""
        super().open(*args, **kwargs)
        if not self._broadcaster.admit(self, self._max_viewers):
            self.close(
                CloseCode.TOO_MANY_VIEWERS,
                f"This server allows {self._max_viewers} viewers at a time.",
            )
            return
        self.set_nodelay(True)
        self._bound_send_buffer()
        await self._broadcaster.ready()
        self.send(encode(self._broadcaster.hello()))
        for greeting in self._broadcaster.greetings():
            self.send(greeting)
        self._broadcaster.connect(self)

    def on_message(self, message: str | bytes) -> None:
        """Serve a subscription, or say why not."""
        try:
            asked = _decode(message)
            if isinstance(asked, Subscribe):
                self._subscribe(asked)
            else:
                self._stop_frames()
        except msgspec.MsgspecError as error:
            self._refuse(Error("garbage", f"Not a message of this protocol: {error}"))
        except Refused as refused:
            self._refuse(refused.error)

    def on_close(self) -> None:
        """Forget this viewer."""
        self._stop_frames()
        self._broadcaster.disconnect(self)
        super().on_close()

    def send_frame(self, encoded: bytes, time_ms: float) -> bool:
        """Send a frame, or skip it while the one before is still on its way."""
        if self._busy():
            if self._skipped_ms is None:
                self._skipped_ms = time_ms
            return False
        if self._skipped_ms is not None:
            gap = Gap(
                self._skipped_ms,
                time_ms,
                "slow_reader",
                "The connection was too slow; ask again with since_ms.",
            )
            self._skipped_ms = None
            self.send(encode(gap))
        self._waiting_bytes = 0
        self._write(encoded)
        return True

    def send(self, encoded: bytes) -> None:
        """Send a message that must not be left out."""
        if self._busy():
            self._waiting_bytes += len(encoded)
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self.close(1013, "The connection is too slow.")
                return
        self._write(encoded)

    def _subscribe(self, asked: Subscribe) -> None:
        selection = select(
            asked, self._broadcaster.devices, self._broadcaster.sampler.rate_hz
        )
        self._stop_frames()
        if asked.since_ms is None:
            self._broadcaster.subscribe(self, selection)
            return
        self._catch_up = asyncio.create_task(
            self._send_since(selection, asked.since_ms)
        )

    async def _send_since(self, selection: Selection, since_ms: float) -> None:
        """Send what the history holds, as fast as it is taken; then go live."""
        history = self._broadcaster.history
        pace = Pace(selection.rate_hz, self._broadcaster.sampler.rate_hz)
        gap = history.lost_since(since_ms)
        number = history.after(since_ms)
        while (piece := history.piece(number)) is not None:
            if number < piece.first:
                # taken so slowly that the oldest went meanwhile
                gap = history.lost_since(since_ms)
                number = piece.first
            if gap is not None:
                self.send(encode(gap))
                gap = None
            # an hour of eight GPUs takes seconds to unpack, the loop has other work
            frames = await asyncio.to_thread(_pack, piece, number, selection, pace)
            number, since_ms = piece.end, piece.times_ms[-1]
            if not await self._written(frames):
                return
        if gap is not None:
            self.send(encode(gap))
        self._broadcaster.subscribe(self, selection)

    def _stop_frames(self) -> None:
        if self._catch_up is not None:
            self._catch_up.cancel()
            self._catch_up = None
        self._skipped_ms = None
        self._broadcaster.unsubscribe(self)

    def _refuse(self, error: Error) -> None:
        self.send(encode(error))
        self._garbage += 1
        if error.code == "protocol_version":
            self.close(CloseCode.PROTOCOL_VERSION, "protocol version")
        elif self._garbage >= MAX_GARBAGE:
            self.close(CloseCode.GARBAGE, "too many messages that were refused")

    def _busy(self) -> bool:
        stream = self._stream()
        return stream is not None and stream.writing()

    def _write(self, encoded: bytes) -> None:
        connection, stream = self.ws_connection, self._stream()
        if connection is None or stream is None or connection.is_closing():
            return
        # not awaited, and not by write_message, which makes a task for each message:
        # a burst to many viewers holds up other requests, and one slow viewer nobody
        with contextlib.suppress(StreamClosedError):
            stream.write(text_frame(encoded))

    async def _written(self, frames: bytes) -> bool:
        """Write frames and wait until they are on their way; False when closed."""
        stream = self._stream()
        if stream is None:
            return False
        try:
            await stream.write(frames)
        except StreamClosedError:
            return False
        return True

    def _bound_send_buffer(self) -> None:
        stream = self._stream()
        if stream is not None and stream.socket is not None:
            stream.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES
            )

    def _stream(self) -> IOStream | None:
        return None if self.ws_connection is None else self.ws_connection.stream


def _pack(piece: Piece, number: int, selection: Selection, pace: Pace) -> bytes:
    """Give the frames of a piece from `number` on, as they go over the wire."""
    packed = bytearray()
    for encoded in piece.messages()[number - piece.first :]:
        wanted = encoded
        message = decode(encoded)
        if isinstance(message, Frame):
            if not pace.takes(message.seq):
                continue
            wanted = selection.encode(message, encoded)
        packed += text_frame(wanted)
    return bytes(packed)


def text_frame(payload: bytes) -> bytes:
    """A whole text message from server to client: RFC 6455, section 5.2."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", 0x81, size) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", 0x81, 126, size) + payload
    return struct.pack("!BBQ", 0x81, 127, size) + payload
