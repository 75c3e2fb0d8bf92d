"""The routes of jupyterlab-nvdashboard, served from the shared sampler.

Its own prebuilt front end then runs on ours: `<base_url>/nvdashboard/...`, one socket a
chart. The server says `{"status": "connected"}`; the client may say
`{"updateFrequency": ms, "isPaused": bool}`, and is sent a sample at that period.
However many sockets there are, the devices are read once.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import math
from collections.abc import Callable
from typing import Any

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import CloseCode, Frame
from warpbook.server.broadcast import Broadcaster
from warpbook.server.nvdashboard_charts import (
    GPU_CHARTS,
    HostBytes,
    Now,
    Sample,
    cpu_resource,
    is_live_gpu,
)
from warpbook.server.page_request import Request
from warpbook.server.parameters import BadBody, NoQuery, read_json
from warpbook.server.selection import MIN_RATE_HZ, Pace, encode
from warpbook.server.sockets import AuthorizedSocket
from warpbook.server.stream import MAX_GARBAGE
from warpbook.server.stream_part import StreamPart
from warpbook_monitors.sampling.sampler import Message

#: the server extension of the peer; where it is enabled, the routes are its own
PEER = "jupyterlab_nvdashboard"

#: until the client says how often
_FIRST_PERIOD_MS = 1000.0
#: what its front end offers to load into a kernel, and the package behind it
_ACCELERATORS = {"cudf-pandas": "cudf", "cuml-accel": "cuml"}


class Asked(msgspec.Struct, rename="camel"):
    """What a client says; what else it says is ignored, as the peer does."""

    update_frequency: float
    is_paused: bool


_DECODER = msgspec.json.Decoder(Asked)


class Nvdashboard(StreamPart):
    """Feeds the charts: each is computed and encoded once a frame."""

    def __init__(self, broadcaster: Broadcaster, max_sockets: int) -> None:
        """Follow the stream; nothing is read before a socket is there."""
        self.broadcaster = broadcaster
        self._max_sockets = max_sockets
        self._sockets: set[ChartSocket] = set()
        self._host_bytes = HostBytes()
        self._charts: dict[str, Callable[[Now], Sample]] = {
            **GPU_CHARTS,
            "cpu_resource": lambda now: cpu_resource(now, self._host_bytes),
        }
        self._lease = broadcaster.demand.lease("nvdashboard")
        broadcaster.attach(self)

    def handlers(self) -> list[tuple[str, type[web.RequestHandler], dict[str, Any]]]:
        """The routes, below the base URL."""
        return [
            ("/nvdashboard/accelerators/check", AcceleratorsHandler, {"feed": self}),
            *(
                (f"/nvdashboard/{chart}", ChartSocket, {"feed": self, "chart": chart})
                for chart in self._charts
            ),
        ]

    async def live_gpus(self) -> int:
        """Count the GPUs that are measured, not played back."""
        await self.broadcaster.ready()
        return sum(is_live_gpu(device) for device in self.broadcaster.devices)

    def pace(self, period_ms: float) -> Pace:
        """Thin the frames to a period, within what this server can do."""
        base_hz = self.broadcaster.sampler.rate_hz
        return Pace(min(max(1000 / period_ms, MIN_RATE_HZ), base_hz), base_hz)

    def admit(self, socket: ChartSocket) -> bool:
        """Take a socket; False if there are too many already."""
        if len(self._sockets) >= self._max_sockets:
            return False
        self._sockets.add(socket)
        self.attend()
        return True

    def forget(self, socket: ChartSocket) -> None:
        """A socket was closed."""
        self._sockets.discard(socket)
        self.attend()

    def attend(self) -> None:
        """Have the devices read exactly while some chart moves."""
        if any(socket.pace is not None for socket in self._sockets):
            self._lease.begin()
        else:
            self._lease.end()

    def follow(self, message: Message) -> None:
        """Send each chart its sample of a frame."""
        if not self._sockets or not isinstance(message, Frame):
            return
        now = Now(message, self.broadcaster.devices)
        self._host_bytes.add(now)
        encoded: dict[str, bytes] = {}
        for socket in tuple(self._sockets):
            if socket.pace is None or not socket.pace.takes(message.seq):
                continue
            if socket.chart not in encoded:
                encoded[socket.chart] = encode(self._charts[socket.chart](now))
            socket.send_sample(encoded[socket.chart])


class ChartSocket(AuthorizedSocket):
    """`GET <base_url>/nvdashboard/<chart>`: one chart of one page.

    Cost: messages of at most 4,096 bytes; samples are encoded once for all charts.
    """

    def initialize(self, feed: Nvdashboard, chart: str) -> None:
        """Take what the application shares."""
        self.chart = chart
        #: how often; None while paused
        self.pace: Pace | None = None
        self._feed = feed
        self._garbage = 0

    async def before_upgrade(self) -> None:
        """Without a GPU there are no charts of one: 404, as the peer answers."""
        if self.chart in GPU_CHARTS and not await self._feed.live_gpus():
            raise web.HTTPError(404, "There is no GPU that is measured here.")

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Say that it works, and begin at once a second."""
        super().open(*args, **kwargs)
        self.pace = self._feed.pace(_FIRST_PERIOD_MS)
        if not self._feed.admit(self):
            self.close(CloseCode.TOO_MANY_VIEWERS, "This server allows no more charts.")
            return
        self.send_soon()
        self.write_text(encode({"status": "connected"}))

    def on_message(self, message: str | bytes) -> None:
        """Change the period, pause, or say why not."""
        try:
            request = read_json(message, _DECODER)
        except BadBody as error:
            self._refuse(f"Not a message of this protocol: {error}")
            return
        if not request.update_frequency > 0 or not math.isfinite(
            request.update_frequency
        ):
            self._refuse("updateFrequency must be a period in ms, more than 0.")
            return
        self.pace = None
        if not request.is_paused:
            self.pace = self._feed.pace(request.update_frequency)
        self._feed.attend()

    def on_close(self) -> None:
        """Forget this chart."""
        self.pace = None
        self._feed.forget(self)
        super().on_close()

    def send_sample(self, encoded: bytes) -> None:
        """Send it, or leave it out while the one before is still on its way."""
        if not self.busy():
            self.write_text(encoded)

    def _refuse(self, why: str) -> None:
        self.write_text(encode({"error": why}))
        self._garbage += 1
        if self._garbage >= MAX_GARBAGE:
            self.close(CloseCode.GARBAGE, "too many messages that were refused")


class AcceleratorsHandler(Request):
    """`GET <base_url>/nvdashboard/accelerators/check`: what a kernel could load.

    Cost: the metadata of every package that is installed, on a thread.
    """

    query_type = NoQuery

    def initialize(self, feed: Nvdashboard) -> None:
        """Take what the application shares."""
        self._feed = feed

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell what is installed; nothing is imported into the server for it."""
        gpus = await self._feed.live_gpus()
        # reads the metadata of every package that is installed
        accelerators = await asyncio.to_thread(_accelerators)
        answer = {"has_gpu": gpus > 0, "ngpus": gpus, "accelerators": accelerators}
        self.finish(encode(answer))


def _accelerators() -> dict[str, dict[str, bool | str | None]]:
    """Versions by whatever distribution brings a package: cudf comes as cudf-cu12."""
    distributions = importlib.metadata.packages_distributions()
    accelerators: dict[str, dict[str, bool | str | None]] = {}
    for name, package in _ACCELERATORS.items():
        packages = distributions.get(package)
        version = importlib.metadata.version(packages[0]) if packages else None
        accelerators[name] = {"available": version is not None, "version": version}
    return accelerators
