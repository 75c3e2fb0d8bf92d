"""`GET api/v1/history/...`: a span's statistics, its figure, a long time in steps."""

from __future__ import annotations

import asyncio
import math

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import Detail, DetailColumn, Device, SpanStatistics
from warpbook.server.broadcast import Broadcaster
from warpbook.server.history import Past
from warpbook.server.reports import Reports
from warpbook.server.rest import Handler
from warpbook.server.selection import encode
from warpbook_monitors.seconds import LONGEST_OF_FRAMES_MS, SECOND_MS

#: of a detail: more than any chart has pixels
MAX_STEPS = 4000
_DEFAULT_STEPS = 600


class PastHandler(Handler):
    """A request about the past of some devices."""

    def initialize(  # type: ignore[override]
        self, broadcaster: Broadcaster, reports: Reports, past: Past
    ) -> None:
        """Take who knows the past."""
        super().initialize(broadcaster, reports)
        self._past = past


class SpanHandler(PastHandler):
    """`GET api/v1/history/span?from_ms=&to_ms=`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give each device's statistics over a span."""
        await self._broadcaster.ready()
        from_ms, to_ms = self.span_arguments()
        devices = dict(enumerate(self._broadcaster.devices))
        spans = await self._past.spans(from_ms, to_ms, devices)
        note = self._past.missing(from_ms, to_ms)
        self.finish_json(encode(SpanStatistics(from_ms, to_ms, spans, note)))


class HistoryFigureHandler(PastHandler):
    """`GET api/v1/history/figure?device=ID&from_ms=&to_ms=`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Draw one device's history in a span of time."""
        await self._broadcaster.ready()
        from_ms, to_ms = self.span_arguments()
        position, device = self.device_argument()
        replay = self._broadcaster.sampler.replay
        read = self._past.reader(from_ms, to_ms, {position: device})

        def draw(theme: str) -> str:
            # bokeh must not be imported on the event loop
            from warpbook.figures.history import history_item  # noqa: PLC0415

            label = replay.name if replay and device.origin == "replay" else None
            return history_item(device, read()[position], theme, label)

        await self.finish_figure(draw)


class DetailHandler(PastHandler):
    """`GET api/v1/history/detail?device=&metrics=a,b&from_ms=&to_ms=&steps=`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give some metrics of a device in at most as many steps as asked for."""
        await self._broadcaster.ready()
        from_ms, to_ms = self.span_arguments()
        position, device = self.device_argument()
        columns = self._columns(device)
        step_ms = (to_ms - from_ms) / self._steps()
        if to_ms - from_ms > LONGEST_OF_FRAMES_MS:
            # nothing finer is at hand, and a step holds whole seconds
            step_ms = math.ceil(step_ms / SECOND_MS) * SECOND_MS
            from_ms = math.floor(from_ms / SECOND_MS) * SECOND_MS
        count = math.ceil((to_ms - from_ms) / step_ms)
        # a reading stands for the time before it: the first may end in the first step
        read = self._past.reader(from_ms, to_ms + SECOND_MS, {position: device})

        def tell() -> bytes:
            # numpy must not be imported on the event loop
            from warpbook_monitors.detail import in_steps, rounded  # noqa: PLC0415

            chosen = list(columns.values())
            steps = in_steps(read()[position], chosen, from_ms, step_ms, count)
            tables = [rounded(each) for each in (steps.least, steps.mean, steps.most)]
            told = {
                name: DetailColumn(*(tuple(table[at]) for table in tables))
                for at, name in enumerate(columns)
            }
            return encode(Detail(device.id, from_ms, step_ms, told))

        self.finish_json(await asyncio.to_thread(tell))

    def _columns(self, device: Device) -> dict[str, int]:
        """By name, the place of each metric that is asked for."""
        places = {metric.name: at for at, metric in enumerate(device.metrics)}
        asked = self.get_query_argument("metrics").split(",")
        for name in asked:
            if name not in places:
                raise web.HTTPError(400, f"{device.id} has no metric {name[:80]!r}.")
        return {name: places[name] for name in asked}

    def _steps(self) -> int:
        text = self.get_query_argument("steps", str(_DEFAULT_STEPS))
        steps = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= steps <= MAX_STEPS:
            raise web.HTTPError(400, f"steps is a number from 1 to {MAX_STEPS}.")
        return steps
