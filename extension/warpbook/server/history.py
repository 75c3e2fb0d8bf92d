"""The history as figures: a span's statistics, and a long time in few steps."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import (
    Detail,
    DetailColumn,
    Device,
    DeviceSpan,
    Frame,
    SpanStatistics,
)
from warpbook.server.broadcast import Broadcaster
from warpbook.server.reports import Reports
from warpbook.server.rest import Handler
from warpbook.server.selection import encode
from warpbook_monitors.sampler import Message
from warpbook_monitors.seconds import (
    COUNTER_REACH_MS,
    LONGEST_OF_FRAMES_MS,
    SECOND_MS,
    Seconds,
)

if TYPE_CHECKING:
    from warpbook_monitors.readings import Readings

#: of a detail: more than any chart has pixels
MAX_STEPS = 4000
_DEFAULT_STEPS = 600


class Past:
    """What was read: by frames for a short span, by seconds for a long one."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        """Follow the stream."""
        self.broadcaster = broadcaster
        #: time of the newest frame that is in the history
        self.newest_ms = 0.0
        self._seconds = Seconds(broadcaster.history.seconds)
        broadcaster.follow(self._follow)

    def _follow(self, message: Message) -> None:
        if isinstance(message, Frame):
            self.newest_ms = message.time_ms
            self._seconds.take(message, self.broadcaster.devices)

    def reader(
        self, from_ms: float, to_ms: float, devices: Mapping[int, Device]
    ) -> Callable[[], dict[int, Readings]]:
        """Give what reads a span as it is known now; call it off the event loop."""
        by_seconds = to_ms - from_ms > LONGEST_OF_FRAMES_MS
        seconds = self._seconds.span(from_ms, to_ms) if by_seconds else ()
        messages = self.broadcaster.history.entries(from_ms, to_ms)

        def read() -> dict[int, Readings]:
            # numpy must not be imported on the event loop
            from warpbook_monitors.readings import (  # noqa: PLC0415
                read_frames,
                read_seconds,
            )

            if by_seconds:
                return read_seconds(seconds, devices)
            return read_frames(messages, devices)

        return read

    async def spans(
        self, from_ms: float, to_ms: float, devices: Mapping[int, Device]
    ) -> tuple[DeviceSpan, ...]:
        """Tell what some devices, by position, did in a span."""
        before_ms, after_ms = from_ms - COUNTER_REACH_MS, to_ms + COUNTER_REACH_MS
        read = self.reader(before_ms, after_ms, devices)
        history = self.broadcaster.history
        ends = itertools.chain(
            history.entries(before_ms, from_ms + COUNTER_REACH_MS),
            history.entries(to_ms - COUNTER_REACH_MS, after_ms),
        )

        def tell() -> tuple[DeviceSpan, ...]:
            # numpy must not be imported on the event loop
            from warpbook_monitors.readings import read_frames  # noqa: PLC0415
            from warpbook_monitors.span_statistics import device_span  # noqa: PLC0415

            readings = read()
            by_seconds = after_ms - before_ms > LONGEST_OF_FRAMES_MS
            counters = read_frames(ends, devices) if by_seconds else readings
            return tuple(
                device_span(device, readings[at], from_ms, to_ms, counters[at])
                for at, device in devices.items()
            )

        return await asyncio.to_thread(tell)

    def missing(self, from_ms: float, to_ms: float) -> str:
        """Say in words what the history does not hold of a span; empty if nothing."""
        lost = self.broadcaster.history.lost_since(from_ms)
        if lost is not None and lost.to_ms > from_ms:
            return f"Not all of it is there. {lost.message}"
        if to_ms > self.newest_ms + SECOND_MS:
            return "Not all of it is there: nothing was read at its end."
        return ""


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
