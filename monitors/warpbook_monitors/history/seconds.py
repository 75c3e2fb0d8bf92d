"""A summary of each second that was read, made as the frames come.

To read an hour of frames takes a second; an hour of these takes a tenth of it.
"""

from __future__ import annotations

import math
import zlib
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpbook_monitors.frames import Device, Frame
from warpbook_monitors.verdicts.health import REASON_BITS

SECOND_MS = 1000.0
REASONS = "clocks_event_reasons"

#: a longer span is answered from seconds: five minutes of frames take 0.1 s to read
LONGEST_OF_FRAMES_MS = 300_000.0

#: the energy counter is read once a second: the nearest reading is not farther away
COUNTER_REACH_MS = 1500.0
#: and to add up the power from there, the seconds before it are looked at
POWER_REACH_MS = COUNTER_REACH_MS + 4000.0

Rows = list[Sequence[float | None]]


@dataclass(frozen=True)
class Second:
    """All devices over one second; small, because an hour of them is kept."""

    __slots__ = ("at_ms", "packed", "widths")

    at_ms: float
    #: by position of the device, in the order of the table: how many metrics it had
    widths: tuple[tuple[int, int], ...]
    #: for each device the least, mean and most of its metrics, then the shares of
    #: its clocks-event reasons; float32, NaN where there is none, compressed
    packed: bytes


class Seconds:
    """The last seconds in which something was read; for one thread."""

    def __init__(self, seconds: float) -> None:
        self._kept: deque[Second] = deque(maxlen=round(seconds))
        self._at_ms: float | None = None
        #: the values of the second that is not over yet, by position of the device
        self._growing: dict[int, Rows] = {}

    @property
    def size_bytes(self) -> int:
        """What the summaries take of memory, but for Python's own overhead."""
        return sum(len(second.packed) for second in self._kept)

    def take(self, frame: Frame, devices: Sequence[Device]) -> None:
        # a frame stands for the time before it
        at_ms = (math.ceil(frame.time_ms / SECOND_MS) - 1) * SECOND_MS
        if at_ms != self._at_ms:
            if self._at_ms is not None:
                self._kept.append(_summary(self._at_ms, self._growing, devices))
            self._at_ms, self._growing = at_ms, {}
        for reading in frame.readings:
            if reading.values:
                self._growing.setdefault(reading.device, []).append(reading.values)

    def span(self, from_ms: float, to_ms: float) -> list[Second]:
        """Give the summaries of a span; any thread may read them."""
        return [
            second
            for second in self._kept
            if second.at_ms + SECOND_MS > from_ms and second.at_ms < to_ms
        ]


def _summary(
    at_ms: float, growing: Mapping[int, Rows], devices: Sequence[Device]
) -> Second:
    widths: list[tuple[int, int]] = []
    table = array("f")
    for position, rows in growing.items():
        names = [metric.name for metric in devices[position].metrics]
        # the description may have changed within the second
        columns = list(
            zip(*(row for row in rows if len(row) == len(names)), strict=True)
        )
        if not columns:
            continue
        known = [
            [value for value in column if value is not None]
            if None in column
            else column
            for column in columns
        ]
        widths.append((position, len(names)))
        table.extend(min(values, default=math.nan) for values in known)
        table.extend(_mean(values) for values in known)
        table.extend(max(values, default=math.nan) for values in known)
        flags = known[names.index(REASONS)] if REASONS in names else ()
        table.extend(
            _mean([bool(int(flag) & bit) for flag in flags]) for bit in REASON_BITS
        )
    return Second(at_ms, tuple(widths), zlib.compress(table.tobytes(), 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
