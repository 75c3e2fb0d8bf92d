"""The WebSocket: one viewer, from its handshake to its close."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Iterable
from itertools import chain, islice
from typing import Any

import msgspec
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import ensure_async
from msgspec.json import Decoder
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
    Unsubscribe,
)
from warpbook.server.consent.acts import Acts
from warpbook.server.past.history import Past
from warpbook.server.stream.selection import (
    BadSubscription,
    Pace,
    Selection,
    encode,
    select,
)
from warpbook.server.web.page_request import refuse_while_draining
from warpbook.server.web.parameters import BadBody, read_json
from warpbook_monitors.frames import end_ms
from warpbook_monitors.history.history import is_frame

#: messages that can't be understood, after which the connection is closed
MAX_GARBAGE = 10
#: of messages that must not be left out, while nothing gets through
MAX_WAITING_BYTES = 16_000_000

#: archived messages that are unpacked at a time: eight GPUs' take some 50 ms
_BATCH = 200

_MESSAGE = Decoder(ClientMessage)
_decode_frame = msgspec.json.Decoder(Frame).decode


class _FrameNumber(msgspec.Struct, tag="frame"):
    """A frame whose readings are not looked at."""

    seq: int


_decode_numbered = msgspec.json.Decoder(_FrameNumber).decode


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


class StreamHandler(AuthorizedSocket):
    """`GET <base_url>/warpbook/api/v1/stream`.

    Cost: messages of at most 4,096 bytes; frames are encoded once for all viewers.
    """

    def initialize(self, past: Past, acts: Acts, max_viewers: int) -> None:
        self._past = past
        self._acts = acts
        self._broadcaster = past.broadcaster
        self._max_viewers = max_viewers
        self._garbage = 0
        self._waiting_bytes = 0
        self._skipped_ms: float | None = None
        self._catch_up: asyncio.Task[None] | None = None

    async def before_upgrade(self) -> None:
        """Ask whether who looks may also answer for what an assistant asks."""
        allowed = self.authorizer.is_authorized(
            self, self.current_user, "execute", "kernels"
        )
        self._may_act = bool(await ensure_async(allowed))

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Say hello, once the devices are known."""
        super().open(*args, **kwargs)
        if not self._broadcaster.viewers.admit(self, self._max_viewers):
            self.close(
                CloseCode.TOO_MANY_VIEWERS,
                f"This server allows {self._max_viewers} viewers at a time.",
            )
            return
        self.send_soon()
        await self._broadcaster.ready()
        self.send(encode(self._broadcaster.hello()))
        for greeting in self._broadcaster.greetings():
            self.send(greeting)
        self._broadcaster.viewers.connect(self)

    def on_message(self, message: str | bytes) -> None:
        """Serve a subscription, or say why not."""
        try:
            request = read_json(message, _MESSAGE)
            if isinstance(request, Subscribe):
                self._subscribe(request)
            elif isinstance(request, Unsubscribe):
                self._stop_frames()
            elif self._may_act:
                self._acts.answer(self, request)
        except BadBody as error:
            self._refuse(Error("garbage", f"Not a message of this protocol: {error}"))
        except BadSubscription as refused:
            self._refuse(refused.error)

    def on_close(self) -> None:
        self._stop_frames()
        self._broadcaster.viewers.disconnect(self)
        self._acts.leave(self)
        super().on_close()

    def send_frame(self, encoded: bytes, time_ms: float) -> bool:
        """Send a frame, or skip it while the one before is still on its way."""
        if self.busy():
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
        self.write_text(encoded)
        return True

    def send(self, encoded: bytes) -> None:
        """Send a message that must not be left out."""
        if self.busy():
            self._waiting_bytes += len(encoded)
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self.close(1013, "The connection is too slow.")
                return
        else:
            self._waiting_bytes = 0
        self.write_text(encoded)

    def _subscribe(self, subscribe: Subscribe) -> None:
        selection = select(
            subscribe, self._broadcaster.devices, self._broadcaster.sampler.rate_hz
        )
        self._stop_frames()
        if subscribe.since_ms is None:
            self._broadcaster.viewers.subscribe(self, selection)
            return
        self._catch_up = asyncio.create_task(
            self._send_since(selection, subscribe.since_ms, subscribe.played_before)
        )

    async def _send_since(
        self, selection: Selection, since_ms: float, played_before: bool
    ) -> None:
        """Send what archive and history hold, as fast as it is taken; then go live."""
        history = self._broadcaster.history
        pace = Pace(selection.rate_hz, self._broadcaster.sampler.rate_hz)
        older = self._past.before_memory(since_ms)
        if played_before:
            older = chain(older, self._past.played(since_ms))
        while batch := await asyncio.to_thread(list, islice(older, _BATCH)):
            since_ms = max(since_ms, *map(end_ms, batch))
            frames = await asyncio.to_thread(pack, map(encode, batch), selection, pace)
            if not await self.written(frames):
                return
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
            unsent = piece.messages_from(number)
            frames = await asyncio.to_thread(pack, unsent, selection, pace)
            number, since_ms = piece.end, piece.times_ms[-1]
            if not await self.written(frames):
                return
        if gap is not None:
            self.send(encode(gap))
        self._broadcaster.viewers.subscribe(self, selection)

    def _stop_frames(self) -> None:
        if self._catch_up is not None:
            self._catch_up.cancel()
            self._catch_up = None
        self._skipped_ms = None
        self._broadcaster.viewers.unsubscribe(self)

    def _refuse(self, error: Error) -> None:
        self.send(encode(error))
        self._garbage += 1
        if error.code == "protocol_version":
            self.close(CloseCode.PROTOCOL_VERSION, "protocol version")
        elif self._garbage >= MAX_GARBAGE:
            self.close(CloseCode.GARBAGE, "too many messages that were refused")


def pack(messages: Iterable[bytes], selection: Selection, pace: Pace) -> bytes:
    """Give messages, of frames those that are wanted, as they go over the wire."""
    packed = bytearray()
    for encoded in messages:
        wanted = encoded
        if is_frame(encoded):
            if not pace.takes(_decode_numbered(encoded).seq):
                continue
            if selection.devices is not None:
                wanted = selection.encode(_decode_frame(encoded), encoded)
        packed += text_frame(wanted)
    return bytes(packed)
