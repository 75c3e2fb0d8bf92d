"""What a span of time was like: each metric's mean, least and most, and the energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.history.energy import POWER_MEAN_MS, Power, energy, power_is_mean
from warpbook_monitors.history.readings import Floats, Readings
from warpbook_monitors.history.span import DeviceSpan, MetricSpan
from warpbook_monitors.verdicts.health import clocks_conditions


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
    power = Power(device, readings)
    _make_good(metrics, power.joules(from_ms, to_ms), (to_ms - from_ms) / 1000)
    joules, basis = energy(device, power, counter or readings, from_ms, to_ms)
    return DeviceSpan(
        device.id,
        metrics,
        joules,
        basis,
        clocks_conditions(device, _reason_shares(readings, from_ms, to_ms), "the span"),
    )


def _make_good(
    metrics: dict[str, MetricSpan], joules: float | None, seconds: float
) -> None:
    """Let the mean power be that of the joules: readings of it may be means too."""
    power = metrics.get("power_watts")
    if joules is None or power is None or power.least is None or power.most is None:
        return
    watts = joules / seconds
    metrics["power_watts"] = MetricSpan(
        watts, min(power.least, watts), max(power.most, watts), power.covered_ratio
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
    if metric.name == "power_watts" and power_is_mean(device):
        return -POWER_MEAN_MS / 2
    return 0.0 if metric.unit in ("ratio", "bytes_per_s") else np.nan


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
