"""The history as figures: what was read in a span, and what it was like."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from warpbook.protocol import Device, DeviceSpan, Frame
from warpbook.server.broadcast import Broadcaster
from warpbook_monitors.sampler import Message
from warpbook_monitors.seconds import (
    COUNTER_REACH_MS,
    LONGEST_OF_FRAMES_MS,
    POWER_REACH_MS,
    SECOND_MS,
    Seconds,
)

if TYPE_CHECKING:
    from warpbook_monitors.readings import Readings


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
        before_ms, after_ms = from_ms - POWER_REACH_MS, to_ms + COUNTER_REACH_MS
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
