"""Where the memory of each GPU is heading, told every two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from warpbook.protocol import (
    DeviceHolders,
    Frame,
    Gap,
    Holders,
    MemoryOutlook,
    Outlook,
    StateNow,
)
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors import units
from warpbook_monitors.memory.outlook import WINDOW_S, MemoryTrends
from warpbook_monitors.sampling.sampler import Message

PERIOD_MS = 2000.0
#: what is older says how things were
_FRESH_MS = 3 * PERIOD_MS
#: less kept in reserve by torch is not worth a word
_RESERVE_RATIO = 0.05


class OutlookWatch(StreamPart):
    """Follows the stream; for the event loop."""

    def __init__(
        self, broadcaster: Broadcaster, holders: Callable[[], Holders | None]
    ) -> None:
        self._broadcaster = broadcaster
        self._holders = holders
        self._trends = MemoryTrends()
        self._told = Outlook(0.0, WINDOW_S, {})
        broadcaster.attach(self)

    def follow(self, message: Message) -> None:
        """Follow a frame, and tell where memory is heading when it is time."""
        if isinstance(message, Gap):
            self._trends.rest()
            self._told = Outlook(message.to_ms, WINDOW_S, {})
        if not isinstance(message, Frame):
            return
        devices = self._broadcaster.devices
        self._trends.take(message, devices)
        # absolute, because the clock may be set back
        if abs(message.time_ms - self._told.time_ms) < PERIOD_MS:
            return
        holders = self._holders()
        held = holders.devices if holders else {}
        self._told = Outlook(
            message.time_ms,
            WINDOW_S,
            {
                device: _with_reserve(outlook, held.get(device))
                for device, outlook in self._trends.outlooks(
                    devices, message.time_ms
                ).items()
            },
        )
        self._broadcaster.viewers.send_watching(encode(self._told))

    async def complete(self, state: StateNow) -> StateNow:
        return replace(state, outlook=self._told.devices)

    def greeting(self) -> Iterable[bytes]:
        """Give the newest outlook while it holds."""
        # what nobody watched may have become anything
        is_fresh = abs(time.time() * 1000 - self._told.time_ms) < _FRESH_MS
        return (encode(self._told),) if self._told.devices and is_fresh else ()


def _with_reserve(trend: MemoryOutlook, held: DeviceHolders | None) -> MemoryOutlook:
    """Say how much torch keeps for itself: it can be used without growing."""
    idle = sum(
        holder.reserved_bytes - holder.allocated_bytes
        for holder in (held.holders if held else ())
        if holder.reserved_bytes is not None and holder.allocated_bytes is not None
    )
    if idle < _RESERVE_RATIO * trend.total_bytes:
        return trend
    words = f"torch keeps {units.size(idle)} of it in reserve, as of the last cells"
    return replace(trend, sentence=f"{trend.sentence[:-1]}; {words}.")
