"""A real server and a real kernel on a real GPU, for the tests here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.gpu.used_gpu import used_index, used_uuid


@dataclass
class Frames:
    """What the WebSocket delivered."""

    hello: dict[str, Any] = field(default_factory=dict)
    frames: list[dict[str, Any]] = field(default_factory=list)
    #: the newest of each other type
    newest: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def gpu(self) -> dict[str, Any]:
        """Give the GPU that torch works on, as the greeting describes it."""
        devices: list[dict[str, Any]] = self.hello["devices"]
        return next(
            device for device in devices if device["id"] == f"gpu:{used_uuid()}"
        )

    def mean(self, metric: str, frames: slice, device: str | None = None) -> float:
        """Mean of a metric over some of the frames, by default of the used GPU."""
        return statistics.fmean(self.values(metric, frames, device))

    def values(
        self, metric: str, frames: slice = slice(None), device: str | None = None
    ) -> list[float]:
        """What was read of "gpu 0", "gpu 1", ..., "host" or "monitor".

        By default of the GPU that torch works on.
        """
        kind, _, index = (device or f"gpu {used_index()}").partition(" ")
        devices = self.hello["devices"]
        at = next(
            position
            for position, candidate in enumerate(devices)
            if candidate["kind"] == kind and index in ("", str(candidate["index"]))
        )
        column = [described["name"] for described in devices[at]["metrics"]].index(
            metric
        )
        return [
            reading["values"][column]
            for frame in self.frames[frames]
            for reading in frame["readings"]
            if reading["device"] == at
            and reading["state"] == "ok"
            and reading["values"][column] is not None
        ]


@contextlib.asynccontextmanager
async def frames(jp_ws_fetch: Any) -> AsyncIterator[Frames]:
    """Take frames, ten a second, as long as the context lasts."""
    seen = Frames()
    # once, before there are frames to wait for
    used_index()
    socket = await jp_ws_fetch("warpbook", "api", "v1", "stream")

    async def collect() -> None:
        while (text := await socket.read_message()) is not None:
            message = json.loads(text)
            if message["type"] == "hello":
                seen.hello = message
            elif message["type"] == "frame":
                seen.frames.append(message)
            else:
                seen.newest[message["type"]] = message

    collecting = asyncio.create_task(collect())
    await socket.write_message('{"type":"subscribe","protocol":1,"rate_hz":10}')
    while not seen.frames:
        await asyncio.sleep(0.05)
    try:
        yield seen
    finally:
        collecting.cancel()
        socket.close()


class Kernel:
    """A kernel of the server."""

    def __init__(self, socket: Any, kernel_id: str) -> None:
        """Talk over this WebSocket."""
        self.id = kernel_id
        self._socket = socket

    async def begin(self, code: str) -> None:
        """Start a cell."""
        # a kernel takes no message twice
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request"}
        header |= {"session": "s"}
        header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
        content = {"code": code, "silent": False, "store_history": False}
        content |= {"user_expressions": {}, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}}
        message |= {"content": content, "channel": "shell", "buffers": []}
        await self._socket.write_message(json.dumps(message))

    async def finish(self) -> str:
        """Wait for the cell's reply; give what it printed. A failed cell fails."""
        printed = ""
        while True:
            message = json.loads(await self._socket.read_message())
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
            if message["msg_type"] == "execute_reply":
                assert message["content"]["status"] == "ok", message["content"]
                return printed


@contextlib.asynccontextmanager
async def kernel(jp_fetch: Any, jp_ws_fetch: Any) -> AsyncIterator[Kernel]:
    """Start a kernel, and shut it down at the end."""
    response = await jp_fetch("api", "kernels", method="POST", body="{}")
    kernel_id = json.loads(response.body)["id"]
    socket = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    try:
        yield Kernel(socket, kernel_id)
    finally:
        socket.close()
        await jp_fetch("api", "kernels", kernel_id, method="DELETE")
