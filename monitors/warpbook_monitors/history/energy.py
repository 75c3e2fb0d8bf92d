"""The energy of a span: by NVML's counter where it brackets it, else by the power.

On Ampere and newer NVML's power v(t) is the mean over the second before t: v(t) joules
are what that second took, and nothing sharper is told. A span of s seconds is covered
by the n = ⌈s⌉ seconds that end with it, of which g = n - s seconds lie before it:

    joules = v(end) + v(end - 1) + … + v(end - n + 1) - before(begin)

What the g seconds before a moment took is known from what they took a second earlier,
since v(t) - v(t - g) is the difference of the two. So one may go back to the second, of
the last few, in which the power changed least, and take it to be as it was on average:

    before(t) = v(t) - v(t - g) + before(t - 1),    before(steady t) = g · v(t)

Whole seconds are exact, however the power changed. Between two readings v is taken to
be straight, and the driver may be a reading behind, so it is an estimate. Beside the
counter of an H200, spans of 0.1 to 3 s are 1 to 1.5 J off (root mean square), where the
mean of the readings half a second later was 3 to 6 J off, and 64 J at the worst.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from warpbook_monitors.frames import Device
from warpbook_monitors.history.readings import Floats, Readings
from warpbook_monitors.history.seconds import COUNTER_REACH_MS

#: over how long NVML's power is a mean (nvml.h), where it is one; the energy counters
#: of three H200s say 1,000 ms, read up to 60 ms late
POWER_MEAN_MS = 1000.0
#: on these and newer GPUs it is one
_POWER_IS_MEAN_SINCE = (8, 6)
#: how many seconds back the power before a span is followed, where they were read
_MOST_BACK = 3
#: at so many moments of a second it is seen whether the power is steady
_LOOKS = 11
#: readings farther apart don't tell where in between the power changed
_MOST_APART_MS = POWER_MEAN_MS / 2
#: of the span, that may be filled in from the power, and be called the counter's
_MOST_FILLED_RATIO = 0.25
#: a mean of what was seen is not told as that of a span that was mostly not seen
_LEAST_COVERED_RATIO = 0.5


def energy(
    device: Device, power: Power, counter: Readings, from_ms: float, to_ms: float
) -> tuple[float | None, Literal["counter", "power"] | None]:
    """Tell how many joules a span took, and what says so; None where nothing does.

    Args:
        device: its description.
        power: of the device, in the span and around it.
        counter: readings that hold the energy counter around both ends.
        from_ms: begin of the span.
        to_ms: end of the span, after its begin.
    """
    counted = _counted(device, counter, power, from_ms, to_ms)
    if counted is not None:
        return counted, "counter"
    estimated = power.joules(from_ms, to_ms)
    return estimated, None if estimated is None else "power"


def power_is_mean(device: Device) -> bool:
    """Whether NVML's power is the mean over a second; else it is of the moment."""
    version = str(device.facts.get("compute_capability", "")).split(".")
    try:
        return tuple(int(part) for part in version) >= _POWER_IS_MEAN_SINCE
    except ValueError:
        return False


def _counted(
    device: Device, readings: Readings, power: Power, from_ms: float, to_ms: float
) -> float | None:
    """The counter's difference, its ends moved to those of the span by the power."""
    names = [metric.name for metric in device.metrics]
    if "energy_joules" not in names:
        return None
    values = readings.mean[:, names.index("energy_joules")]
    known = np.flatnonzero(np.isfinite(values))
    # between two readings of the counter its frames repeat the older one
    read = known[1:][np.diff(values[known]) != 0]
    times, values = readings.ends_ms[read], values[read]
    if len(times) < 2:
        return None
    first = int(np.argmin(np.abs(times - from_ms)))
    last = int(np.argmin(np.abs(times - to_ms)))
    begin_ms, end_ms = float(times[first]), float(times[last])
    filled_ms = (abs(begin_ms - from_ms), abs(end_ms - to_ms))
    joules = float(values[last] - values[first])
    if (
        begin_ms >= end_ms
        or joules < 0
        or max(filled_ms) > COUNTER_REACH_MS
        or sum(filled_ms) > _MOST_FILLED_RATIO * (to_ms - from_ms)
    ):
        return None
    before = power.joules(from_ms, begin_ms)
    after = power.joules(end_ms, to_ms)
    if before is None or after is None:
        return None
    return max(joules + before + after, 0.0)


class Power:
    """The power of one device, to be added up over a time."""

    def __init__(self, device: Device, readings: Readings) -> None:
        """Take the readings of the time, and of some seconds before and after it."""
        names = [metric.name for metric in device.metrics]
        # not every device tells its power
        column = names.index("power_watts") if "power_watts" in names else -1
        known = np.isfinite(readings.mean[:, column]) & (column >= 0)
        self._is_mean = power_is_mean(device)
        self._watts = readings.mean[known, column]
        self._starts_ms = readings.starts_ms[known]
        self._read_ms = readings.ends_ms[known]

    def joules(self, from_ms: float, to_ms: float) -> float | None:
        """Energy of a time; negative if it runs backwards, None if it is unknown."""
        if from_ms == to_ms:
            return 0.0
        if from_ms > to_ms:
            backwards = self.joules(to_ms, from_ms)
            return None if backwards is None else -backwards
        by_seconds = self._by_seconds(from_ms, to_ms) if self._is_mean else None
        if by_seconds is not None:
            return by_seconds
        return self._by_average(from_ms, to_ms)

    def _by_seconds(self, from_ms: float, to_ms: float) -> float | None:
        """What the seconds that cover the time took, less what they have before it."""
        # no second is looked at of which there can be no reading
        if not len(self._read_ms) or not (
            self._read_ms[0] - POWER_MEAN_MS <= from_ms and to_ms <= self._read_ms[-1]
        ):
            return None
        count = math.ceil((to_ms - from_ms) / POWER_MEAN_MS)
        before_ms = count * POWER_MEAN_MS - (to_ms - from_ms)
        seconds = self._at(_seconds_to(to_ms, count))
        if seconds is None:
            return None
        joules = seconds.sum() * POWER_MEAN_MS / 1000
        if before_ms:
            before = self._before(from_ms, before_ms)
            if before is None:
                return None
            joules -= before
        return max(float(joules), 0.0)

    def _before(self, time_ms: float, before_ms: float) -> float | None:
        """What the time before a moment took; less than a second."""
        moments_ms = _seconds_to(time_ms, _MOST_BACK + 1)
        back = int(np.argmin([self._unrest(moment_ms) for moment_ms in moments_ms]))
        moments_ms = moments_ms[: back + 1]
        watts = self._at(np.append(moments_ms, moments_ms[:-1] - before_ms))
        if watts is None:
            return None
        changed = (watts[:back] - watts[back + 1 :]).sum() * POWER_MEAN_MS
        return float(changed + watts[back] * before_ms) / 1000

    def _unrest(self, time_ms: float) -> float:
        """By how much the power changed in the second before a moment."""
        watts = self._at(time_ms - np.linspace(0, POWER_MEAN_MS, _LOOKS))
        return math.inf if watts is None else float(np.ptp(watts))

    def _at(self, times_ms: Floats) -> Floats | None:
        """The power as it is read at some times; None if one of them has no reading."""
        steps_ms = np.diff(self._read_ms)
        if not len(steps_ms) or (steps_ms <= 0).any():
            return None  # too few, or the clock was set back
        after = np.searchsorted(self._read_ms, times_ms)
        if after.max() == len(self._read_ms):
            return None
        exact = self._read_ms[after] == times_ms
        near = (after > 0) & (steps_ms[after - 1] <= _MOST_APART_MS)
        if not (exact | near).all():
            return None
        watts: Floats = np.interp(times_ms, self._read_ms, self._watts)
        return watts

    def _by_average(self, from_ms: float, to_ms: float) -> float | None:
        """The average of what was read, each reading weighted by its time."""
        # a mean is of the time before it; what is of a moment, of the time around it
        half_ms = (self._read_ms - self._starts_ms) / 2
        later_ms = -POWER_MEAN_MS / 2 if self._is_mean else half_ms
        starts_ms, ends_ms = self._starts_ms + later_ms, self._read_ms + later_ms
        within_ms = np.minimum(ends_ms, to_ms) - np.maximum(starts_ms, from_ms)
        weights_ms = np.clip(within_ms, 0.0, None)
        seen_ms = float(weights_ms.sum())
        if seen_ms < _LEAST_COVERED_RATIO * (to_ms - from_ms):
            return None
        watts = float(weights_ms @ self._watts) / seen_ms
        return watts * (to_ms - from_ms) / 1000


def _seconds_to(time_ms: float, count: int) -> Floats:
    """The ends of so many seconds in a row, the latest first."""
    return time_ms - POWER_MEAN_MS * np.arange(count, dtype=np.float64)
