"""What a span of time was like: each metric's mean, least and most, and the energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.health import clocks_conditions
from warpbook_monitors.readings import Floats, Readings
from warpbook_monitors.seconds import COUNTER_REACH_MS
from warpbook_monitors.span import DeviceSpan, MetricSpan

#: of the span, that may be filled in from the power, and be called the counter's
_MOST_FILLED_RATIO = 0.25
#: a mean of what was seen is not told as that of a span that was mostly not seen
_LEAST_COVERED_RATIO = 0.5
#: on these and newer GPUs NVML's power is a mean over the second before (nvml.h;
#: on an H200, half a second's shift makes it fit the energy counter)
_POWER_IS_MEAN_SINCE = (8, 6)
_POWER_MEAN_MS = 1000.0


def device_span(
    device: Device,
    readings: Readings,
    from_ms: float,
    to_ms: float,
    counter: Readings | None = None,
) -> DeviceSpan:
    """Tell what one device did in a span, weighting each reading by its time.

    Args:
        device: its description.
        readings: of the span, and a little before and after it.
        from_ms: begin of the span.
        to_ms: end of the span, after its begin.
        counter: readings that hold the energy counter around both ends, where
            `readings` are summaries of seconds.
    """
    starts, ends = _times(device, readings)
    within_ms = np.minimum(ends, to_ms) - np.maximum(starts, from_ms)
    known = np.isfinite(readings.mean) & (within_ms > 0)
    weights_ms = np.where(known, within_ms, 0.0)
    # a peak of a window that lies mostly outside is not the span's
    mostly = known & (within_ms >= 0.499 * (ends - starts))
    mostly |= known & ~mostly.any(axis=0)
    seen_ms = weights_ms.sum(axis=0)
    total = (weights_ms * np.where(known, readings.mean, 0.0)).sum(axis=0)
    metrics = {}
    for column, metric in enumerate(device.metrics):
        if metric.state != "ok" or _only_grows(metric):
            continue
        at = mostly[:, column]
        if not at.any():
            metrics[metric.name] = MetricSpan(None, None, None, 0.0)
            continue
        least = float(readings.least[at, column].min())
        most = float(readings.most[at, column].max())
        # readings at the edges count for the mean by their part, and for no peak
        mean = min(max(float(total[column] / seen_ms[column]), least), most)
        covered = min(float(seen_ms[column]) / (to_ms - from_ms), 1.0)
        metrics[metric.name] = MetricSpan(mean, least, most, round(covered, 4))
    power = _Power(device, readings)
    counted = _counted(device, counter or readings, power, from_ms, to_ms)
    estimated = power.joules(from_ms, to_ms)
    return DeviceSpan(
        device.id,
        metrics,
        estimated if counted is None else counted,
        "counter" if counted is not None else None if estimated is None else "power",
        clocks_conditions(device, _reason_shares(readings, from_ms, to_ms), "the span"),
    )


def _times(device: Device, readings: Readings) -> tuple[Floats, Floats]:
    """From when to when each value tells something, metric by metric."""
    half = (readings.ends_ms - readings.starts_ms)[:, None] / 2
    shifts = [_shift_ms(device, metric) for metric in device.metrics]
    # what is read of a moment stands for the time around it
    later = np.where(np.isnan(shifts), half, np.nan_to_num(shifts))
    return readings.starts_ms[:, None] + later, readings.ends_ms[:, None] + later


def _shift_ms(device: Device, metric: Metric) -> float:
    """How much later than its row a value's time is; NaN for one of a moment."""
    if metric.name == "power_watts" and _power_is_mean(device):
        return -_POWER_MEAN_MS / 2
    return 0.0 if metric.unit in ("ratio", "bytes_per_s") else np.nan


def _power_is_mean(device: Device) -> bool:
    version = str(device.facts.get("compute_capability", "")).split(".")
    try:
        return tuple(int(part) for part in version) >= _POWER_IS_MEAN_SINCE
    except ValueError:
        return False


def _only_grows(metric: Metric) -> bool:
    if metric.unit == "count":
        return metric.name.endswith("_count") and metric.name != "process_count"
    return metric.unit in ("flags", "joules")


def _reason_shares(readings: Readings, from_ms: float, to_ms: float) -> Sequence[float]:
    within_ms = np.minimum(readings.ends_ms, to_ms) - np.maximum(
        readings.starts_ms, from_ms
    )
    known = np.isfinite(readings.reasons[:, 0]) & (within_ms > 0)
    weights_ms = within_ms[known]
    if not len(weights_ms):
        return [0.0] * readings.reasons.shape[1]
    shares = weights_ms @ readings.reasons[known] / weights_ms.sum()
    return [float(share) for share in shares]


def _counted(
    device: Device, readings: Readings, power: _Power, from_ms: float, to_ms: float
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


class _Power:
    """The power of one device, to be added up over a time."""

    def __init__(self, device: Device, readings: Readings) -> None:
        names = [metric.name for metric in device.metrics]
        # not every device tells its power
        column = names.index("power_watts") if "power_watts" in names else -1
        starts, ends = _times(device, readings)
        known = np.isfinite(readings.mean[:, column]) & (column >= 0)
        self._watts = readings.mean[known, column]
        self._starts, self._ends = starts[known, column], ends[known, column]

    def joules(self, from_ms: float, to_ms: float) -> float | None:
        """Energy of a time; negative if it runs backwards, None if it is unknown."""
        if from_ms == to_ms:
            return 0.0
        if from_ms > to_ms:
            backwards = self.joules(to_ms, from_ms)
            return None if backwards is None else -backwards
        within = np.minimum(self._ends, to_ms) - np.maximum(self._starts, from_ms)
        weights_ms = np.clip(within, 0.0, None)
        seen_ms = float(weights_ms.sum())
        if seen_ms < _LEAST_COVERED_RATIO * (to_ms - from_ms):
            return None
        watts = float(weights_ms @ self._watts) / seen_ms
        return watts * (to_ms - from_ms) / 1000
