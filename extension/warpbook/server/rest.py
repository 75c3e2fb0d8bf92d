"""The plain requests: what is there, how it is now, and figures to explore."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from warpbook._version import __version__
from warpbook.protocol import PROTOCOL_VERSION, Capabilities, CellReport, Device
from warpbook.server.bokehjs import bokeh_version
from warpbook.server.broadcast import Broadcaster
from warpbook.server.holders import HolderWatch
from warpbook.server.reports import Reports
from warpbook.server.selection import MIN_RATE_HZ, encode
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.recording import MAX_TIME_MS

#: one figure at a time: bokeh is slow to import and keeps state of its own
_drawing = threading.Lock()


class Handler(APIHandler):
    """A request of a view; polling is not a person's activity."""

    auth_resource = "warpbook"
    _track_activity = False

    def initialize(self, broadcaster: Broadcaster, reports: Reports) -> None:
        """Take what the application shares."""
        self._broadcaster = broadcaster
        self._reports = reports

    def finish_json(self, encoded: bytes) -> None:
        """Answer with JSON that is encoded already."""
        self.set_header("Content-Type", "application/json")
        self.finish(encoded)

    def time_argument(self, name: str, default: float | None = None) -> float:
        """Read a Unix time in ms from the query."""
        text = self.get_query_argument(name, None)
        if text is None and default is not None:
            return default
        try:
            time_ms = float(text or "")
        except ValueError:
            time_ms = math.nan
        if not math.isfinite(time_ms):
            raise web.HTTPError(400, f"{name} must be a Unix time in ms.")
        return time_ms

    def span_arguments(self) -> tuple[float, float]:
        """Read a span of time from the query."""
        from_ms, to_ms = self.time_argument("from_ms"), self.time_argument("to_ms")
        if not 0 <= from_ms < to_ms <= MAX_TIME_MS:
            raise web.HTTPError(400, "from_ms must be a time before to_ms.")
        return from_ms, to_ms

    def device_argument(self) -> tuple[int, Device]:
        """Read the id of a device from the query; give its position too."""
        device_id = self.get_query_argument("device")
        for position, device in enumerate(self._broadcaster.devices):
            if device.id == device_id:
                return position, device
        raise web.HTTPError(404, f"There is no device {device_id[:80]!r}.")

    async def kept_report(self, report_id: str) -> CellReport:
        """Find a report that the server still keeps, in memory or on disk."""
        try:
            report = await self._reports.find(report_id)
        except ArchiveError as problem:
            raise web.HTTPError(503, str(problem)) from None
        if report is None:
            raise web.HTTPError(
                404, "This server keeps no such report; run the cell again."
            )
        return report

    async def finish_figure(self, draw: Callable[[str], str]) -> None:
        """Draw off the event loop: the first time imports bokeh, almost a second."""
        theme = "dark" if self.get_query_argument("theme", "") == "dark" else "light"

        def drawn() -> str:
            with _drawing:
                return draw(theme)

        self.finish_json((await asyncio.to_thread(drawn)).encode())


class CapabilitiesHandler(Handler):
    """`GET api/v1/capabilities`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell what is there and why something is not."""
        await self._broadcaster.ready()
        sampler = self._broadcaster.sampler
        self.finish_json(
            encode(
                Capabilities(
                    protocol=PROTOCOL_VERSION,
                    version=__version__,
                    min_rate_hz=MIN_RATE_HZ,
                    max_rate_hz=sampler.rate_hz,
                    history_seconds=self._broadcaster.history.seconds,
                    devices=sampler.devices,
                    absences=sampler.absences,
                    replay=sampler.replay,
                    bokeh=bokeh_version(),
                )
            )
        )


class StateHandler(Handler):
    """`GET api/v1/state`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give the newest frame; asking counts as watching for a few seconds."""
        self.finish_json(encode(await self._broadcaster.state()))


class HoldersHandler(Handler):
    """`GET api/v1/holders`."""

    def initialize(  # type: ignore[override]
        self, broadcaster: Broadcaster, reports: Reports, holders: HolderWatch
    ) -> None:
        """Take who knows the holders."""
        super().initialize(broadcaster, reports)
        self._holders = holders

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell who holds the memory of each GPU now."""
        self.finish_json(encode(await self._holders.read()))
