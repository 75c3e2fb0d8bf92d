"""The plain requests: what is there, how it is now, and figures to explore."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import PROTOCOL_VERSION, Capabilities, CellReport, Device
from warpbook.server.records.reports import Reports
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import MIN_RATE_HZ, encode
from warpbook.server.web.bokehjs import bokeh_version
from warpbook.server.web.page_request import Request
from warpbook.server.web.parameters import Theme
from warpbook_monitors._version import __version__
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.machine import this_machine

#: one figure at a time: bokeh is slow to import and keeps state of its own
_drawing = threading.Lock()


class Handler(Request):
    """A request about what the server reads and keeps."""

    _broadcaster: Broadcaster
    _reports: Reports

    def device(self, device_id: str) -> tuple[int, Device]:
        """Find a device that is read, with its position."""
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
                404,
                "This server keeps no such report: run the cell, or open the file, "
                "again.",
            )
        return report

    async def finish_figure(self, draw: Callable[[str], str], theme: Theme) -> None:
        """Draw off the event loop: the first time imports bokeh, almost a second."""

        def drawn() -> str:
            with _drawing:
                return draw(theme)

        self.finish_json((await asyncio.to_thread(drawn)).encode())


class CapabilitiesHandler(Handler):
    """`GET api/v1/capabilities`.

    Cost: nothing is read; the first request of all opens the GPUs.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
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
                    machine=this_machine(),
                )
            )
        )


class StateHandler(Handler):
    """`GET api/v1/state`.

    Cost: the sampler runs for five seconds, however many ask.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give the newest frame; asking counts as watching for a few seconds."""
        self.finish_json(encode(await self._broadcaster.state()))
