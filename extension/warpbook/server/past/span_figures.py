"""The figures of a device over a span that matter most, and how far they reach."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook.protocol import Device, DeviceSpan, SpanView
from warpbook_monitors import units
from warpbook_monitors.frames import Unit
from warpbook_profiler.model.report_view import LabelledFigure

#: a metric, its label, and whether its mean or its peak is shown
_KEY_FIGURES = (
    ("gpu_utilization_ratio", "GPU utilization (NVML)", "mean"),
    ("sm_active_ratio", "SM active", "mean"),
    ("tensor_active_ratio", "Tensor", "mean"),
    ("dram_active_ratio", "DRAM", "mean"),
    ("cpu_ratio", "CPU", "mean"),
    ("memory_used_bytes", "Peak memory", "most"),
    ("power_watts", "Mean power", "mean"),
)
#: below this, readings are missing and not only at the edges
_COVERED_RATIO = 0.95


def span_view(device: Device, span: DeviceSpan) -> SpanView:
    return SpanView(span.device, key_figures(device, span), coverage(span))


def key_figures(device: Device, span: DeviceSpan) -> tuple[LabelledFigure, ...]:
    """Give the figures to read first, the energy last; the host's is not read."""
    figures = list(_known(device, span))
    if device.kind != "host":
        figures.append(LabelledFigure("Energy", _energy(span)))
    return tuple(figures)


def coverage(span: DeviceSpan) -> str:
    """Say how much of the span readings cover; empty where they cover all of it."""
    ratios = [
        span.metrics[name].covered_ratio
        for name, _, _ in _KEY_FIGURES
        if name in span.metrics and span.metrics[name].mean is not None
    ]
    least = min(ratios, default=1.0)
    if least >= _COVERED_RATIO:
        return ""
    return f"Readings cover {units.share(least)} of the span."


def _known(device: Device, span: DeviceSpan) -> Iterator[LabelledFigure]:
    unit_of = {metric.name: metric.unit for metric in device.metrics}
    for name, label, which in _KEY_FIGURES:
        metric = span.metrics.get(name)
        if metric is None or name not in unit_of:
            continue
        value = metric.mean if which == "mean" else metric.most
        if value is not None:
            yield LabelledFigure(label, _quantity(value, unit_of[name]))


def _quantity(value: float, unit: Unit) -> str:
    if unit == "bytes":
        return units.size(value)
    return f"{value:,.0f} W" if unit == "watts" else units.share(value)


def _energy(span: DeviceSpan) -> str:
    if span.energy_joules is None:
        return "not known"
    energy = units.energy(span.energy_joules)
    if span.energy_basis == "counter":
        return f"{energy}, counted by the GPU"
    return f"about {energy}, estimated from the power"
