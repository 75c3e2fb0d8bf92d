"""Where a GPU's memory is heading: how fast it fills, and when it would be full."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from warpbook_monitors import units
from warpbook_monitors.frames import Device, Frame, Reading

WINDOW_S = 60.0
#: a trend is told from no less
MIN_WINDOW_S = 12.0
#: enough for a median of slopes, and cheap: 30 points give 435 pairs
_POINT_PERIOD_MS = 2000.0
#: growth below this over the window is noise: contexts come and go
_NOISE_BYTES = 32 * 2**20
_NOISE_RATIO = 0.001
#: into so many parts the window is cut, and in all but one memory must have moved
_PARTS = 4
#: a forecast further away is a guess
_FAR_S = 2 * 3600.0


class MemoryOutlook(Struct, frozen=True):
    """The memory of one GPU now, and its trend."""

    used_bytes: int
    total_bytes: int
    #: None where the readings do not suffice, or have no trend
    slope_bytes_per_s: float | None
    #: None unless memory grows steadily
    full_in_s: float | None
    #: the same for a person
    sentence: str


class MemoryTrends:
    """Follows the memory of every GPU over the last minute; for one thread."""

    def __init__(self) -> None:
        self._points: dict[str, deque[tuple[float, float]]] = {}
        #: by device: what programs can fill, which the driver's own part is no part of
        self._usable: dict[str, float] = {}
        self._taken_ms = 0.0

    def take(self, frame: Frame, devices: Sequence[Device]) -> None:
        """Keep the memory that a frame tells, every two seconds."""
        passed_ms = frame.time_ms - self._taken_ms
        if 0 <= passed_ms < _POINT_PERIOD_MS - 50:
            return
        if not 0 <= passed_ms < 5 * _POINT_PERIOD_MS:
            self.rest()  # nothing was read for long, or the clock was set
        self._taken_ms = frame.time_ms
        for reading in frame.readings:
            device = devices[reading.device]
            used = _value(device, reading, "memory_used_bytes")
            if used is not None:
                free = _value(device, reading, "memory_free_bytes")
                if free is not None:
                    self._usable[device.id] = used + free
                points = self._points.setdefault(device.id, deque())
                if points and points[-1][0] > frame.time_ms:
                    # the clock was set back: nothing would grow too old any more
                    points.clear()
                points.append((frame.time_ms, used))
                while frame.time_ms - points[0][0] > WINDOW_S * 1000:
                    points.popleft()

    def rest(self) -> None:
        """Forget everything: a trend must not span a time without readings."""
        self._points.clear()

    def outlooks(
        self, devices: Sequence[Device], now_ms: float
    ) -> dict[str, MemoryOutlook]:
        """Tell by device id what is known; a GPU without its memory is left out."""
        outlooks_of = {}
        for device in devices:
            points = self._points.get(device.id)
            total = device.facts.get("memory_total_bytes")
            if not points or not isinstance(total, (int, float)):
                continue
            if now_ms - points[-1][0] > 3 * _POINT_PERIOD_MS:
                continue  # lost or stale: how it was says nothing
            usable = self._usable.get(device.id, total)
            outlooks_of[device.id] = outlook(list(points), int(total), usable)
        return outlooks_of


def _value(device: Device, reading: Reading, name: str) -> float | None:
    if device.kind not in ("gpu", "mig") or reading.state != "ok":
        return None
    for metric, value in zip(device.metrics, reading.values, strict=False):
        if metric.name == name:
            return value
    return None


def outlook(
    points: Sequence[tuple[float, float]], total_bytes: int, usable_bytes: float
) -> MemoryOutlook:
    """Judge readings of memory, (Unix ms, bytes), oldest first; at least one.

    The slope is the median of the slopes between any two readings (Theil-Sen), so
    that a single step, as when a model is loaded, is no trend.
    """
    used = points[-1][1]
    now = f"{units.size(used)} of {units.size(total_bytes)} used"
    span_s = (points[-1][0] - points[0][0]) / 1000

    def outlook_of(
        words: str, slope: float | None = None, full_in_s: float | None = None
    ) -> MemoryOutlook:
        sentence = f"{now}; {words}."
        return MemoryOutlook(int(used), total_bytes, slope, full_in_s, sentence)

    if span_s < MIN_WINDOW_S:
        return outlook_of("not watched long enough to show a trend")
    slope = statistics.median(
        (after[1] - before[1]) / (after[0] - before[0]) * 1000
        for before, after in combinations(points, 2)
    )
    noise = max(_NOISE_BYTES, _NOISE_RATIO * total_bytes)
    if abs(slope) * span_s < noise or not _is_steady(points, slope):
        return outlook_of("no trend")
    rate = f"{units.size(abs(slope) * 60)} a minute"
    if slope < 0:
        return outlook_of(f"it falls by {rate}", slope)
    full_in_s = max(usable_bytes - used, 0) / slope
    if full_in_s > _FAR_S:
        return outlook_of(f"it grows by {rate}", slope)
    full = units.duration_about(full_in_s)
    return outlook_of(
        f"it grows by {rate}, full in {full} at this rate", slope, full_in_s
    )


def _is_steady(points: Sequence[tuple[float, float]], slope: float) -> bool:
    """Whether memory moved the slope's way in nearly every part of the window."""
    cuts = [points[(len(points) - 1) * part // _PARTS] for part in range(_PARTS + 1)]
    least = abs(slope) * (cuts[-1][0] - cuts[0][0]) / 1000 / _PARTS / 4
    moved = [
        (after[1] - before[1]) * (1 if slope > 0 else -1) > least
        for before, after in zip(cuts, cuts[1:], strict=False)
    ]
    # the newest part must: what has stopped growing is not getting full
    return moved[-1] and sum(moved) >= _PARTS - 1
