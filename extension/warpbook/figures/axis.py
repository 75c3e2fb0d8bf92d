"""What the GPUs' own counters said while a cell ran, on the cell's time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.model import Model
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    HoverTool,
    LinearAxis,
    Range1d,
)
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from warpbook.colours import PLAIN, SERIES
from warpbook.figures.item import add_title, fit_narrow_place, words
from warpbook_monitors.frames import Device
from warpbook_monitors.history.readings import Floats, Readings
from warpbook_monitors.labels import full_name

#: with fewer samples within the cell there is no course to see
LEAST_SAMPLES = 3
#: as the live charts have them
_SM, _POWER_COLOUR, _TENSOR, _, _DRAM = SERIES["light"]
_SHARES = (
    ("sm_active_ratio", "SM active", _SM),
    ("tensor_active_ratio", "tensor cores", _TENSOR),
    ("dram_active_ratio", "DRAM", _DRAM),
    # of GPUs without GPM, this alone
    ("gpu_utilization_ratio", "GPU utilization (NVML)", PLAIN),
)
_POWER = "power_watts"
_PERCENT = "return Math.round(tick * 100) + ' %'"


@dataclass(frozen=True)
class Window:
    """When a cell ran, in Unix time."""

    start_ms: float
    end_ms: float


def axis_figure(
    devices: Sequence[Device],
    readings: Mapping[str, Readings],
    window: Window,
    replay_name: str | None,
) -> Model:
    """Draw each GPU over the cell's time; say so where there are too few samples.

    Args:
        devices: the GPUs that worked.
        readings: by device id, of the window and a little around it.
        window: of the cell.
        replay_name: of the recording that stands in for a GPU, if one does.
    """
    if not devices:
        return words("No telemetry: this server does not read the GPUs that worked.")
    shared = Range1d(start=0, end=max(window.end_ms - window.start_ms, 1e-6))
    return column(
        *(
            _of_one(device, readings[device.id], window, shared, replay_name)
            for device in devices
        ),
        sizing_mode="stretch_width",
    )


def _of_one(
    device: Device,
    readings: Readings,
    window: Window,
    shared: Range1d,
    replay_name: str | None,
) -> Model:
    name = full_name(device)
    if device.origin == "replay":
        name = f"REPLAY {replay_name}: {name}"
    # a reading stands for the time before it
    touches = (readings.starts_ms < window.end_ms) & (
        readings.ends_ms > window.start_ms
    )
    drawn = [
        (metric, at)
        for at, metric in enumerate(device.metrics)
        if metric.name in {_POWER, *(metric for metric, _, _ in _SHARES)}
        and np.isfinite(readings.mean[touches, at]).any()
    ]
    samples = int(touches.sum()) if drawn else 0
    if samples < LEAST_SAMPLES:
        why = (
            "The GPU was not read meanwhile, or it is no longer kept."
            if samples == 0
            else "A longer run, or more repeats in the cell, would show more."
        )
        return words(f"{name}: too short for telemetry: {samples} samples. {why}")
    plot = figure(
        height=220,
        sizing_mode="stretch_width",
        x_range=shared,
        y_range=Range1d(start=0, end=1.05),
        x_axis_label="ms since the start of the cell",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        output_backend="canvas",
    )
    plot.yaxis.formatter = CustomJSTickFormatter(code=_PERCENT)
    add_title(plot, name, f"{samples:,} samples")
    ends = readings.ends_ms[touches] - window.start_ms
    starts = readings.starts_ms[touches] - window.start_ms
    columns = {metric.name: readings.mean[touches, at] for metric, at in drawn}
    source = ColumnDataSource(_steps(starts, ends, columns))
    for metric, label, colour in _SHARES:
        if metric in columns:
            line = plot.line(
                "time_ms", metric, source=source, color=colour, legend_label=label
            )
            _hover(plot, line, label, f"@{metric}{{0 %}}")
    if _POWER in columns:
        watts = DataRange1d(start=0)
        plot.extra_y_ranges = {"watts": watts}
        plot.add_layout(LinearAxis(y_range_name="watts", axis_label="W"), "right")
        line = plot.line(
            "time_ms",
            _POWER,
            source=source,
            color=_POWER_COLOUR,
            line_dash="dashed",
            legend_label="power, mean of 1 s (right)",
            y_range_name="watts",
        )
        watts.renderers = [line]
        _hover(plot, line, "power", f"@{_POWER}{{0}} W")
    fit_narrow_place(plot)
    return plot


def _hover(plot: figure, line: GlyphRenderer[Any], label: str, text: str) -> None:
    plot.add_tools(HoverTool(renderers=[line], mode="vline", tooltips=[(label, text)]))


def _steps(
    starts: Floats, ends: Floats, columns: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Give each reading both ends of the time it stands for; NaN breaks at holes."""
    holes = np.flatnonzero(starts[1:] > ends[:-1] + 1.0) + 1
    times = np.stack((starts, ends), axis=1)
    steps = {"time_ms": np.insert(times, holes, np.nan, axis=0).ravel()}
    for name, values in columns.items():
        twice = np.stack((values, values), axis=1)
        steps[name] = np.insert(twice, holes, np.nan, axis=0).ravel()
    return steps
