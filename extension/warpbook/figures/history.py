"""A device's history in a span of time, to zoom into."""

from __future__ import annotations

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    DatetimeTicker,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure

from warpbook.colours import SERIES
from warpbook.figures.history_charts import history_charts
from warpbook.figures.item import add_title, figure_item, fit_narrow_place
from warpbook_monitors.frames import Device, Unit
from warpbook_monitors.history.readings import Floats, Readings

#: how a value of a unit is written at the pointer
_NUMBERS: dict[Unit, str] = {
    "ratio": "0 %",
    "bytes_per_s": "0.0 b",
    "bytes": "0.0 ib",
    "watts": "0",
    "mhz": "0",
    "celsius": "0",
    "hz": "0",
    "ms": "0.00",
}
#: what the axis is of, where ticks don't carry their unit
_AXES: dict[Unit, str] = {"watts": "W", "mhz": "MHz", "celsius": "°C", "hz": "Hz"}
#: how ticks are written, where the bare number would be hard to read
_TICKS: dict[Unit, str] = {
    "ratio": "return Math.round(tick * 100) + ' %'",
    "bytes": "return +(tick / 2 ** 30).toPrecision(3) + ' GiB'",
    "bytes_per_s": "return +(tick / 1e9).toPrecision(3) + ' GB/s'",
}
#: a narrow part of a window has room for no more
_LEGEND_COLUMNS = 2
_LEGEND_ROW = 16
#: a little more than the step between two summaries of seconds
_GAP_MS = 1500.0


def history_item(
    device: Device, readings: Readings, theme: str, replay_name: str | None
) -> str:
    """Draw one device as its live charts are, over one time axis, as a Bokeh item.

    Args:
        device: the description that the readings follow.
        readings: of the span; where a row sums up a second, its least and most are
            drawn as a band.
        theme: "dark" or "light".
        replay_name: of the recording, if these are not live values.
    """
    data = _columns(device, readings)
    source = ColumnDataSource(data)
    times = data["time_ms"].tolist()
    # with no reading in the span there is nothing to zoom; Bokeh wants a range
    shared = Range1d(start=times[0] if times else 0, end=times[-1] if times else 1)
    is_summed_up = readings.least is not readings.most
    title = (
        device.name if replay_name is None else f"REPLAY {replay_name}: {device.name}"
    )
    plots: list[figure] = []
    series = SERIES["dark" if theme == "dark" else "light"]
    for chart in history_charts(device):
        unit = chart.unit
        metrics = [(_column_name(place), metric) for place, metric in chart.lines]
        plot = figure(
            height=190 + _LEGEND_ROW * -(-len(metrics) // _LEGEND_COLUMNS),
            sizing_mode="stretch_width",
            x_axis_type="datetime",
            x_range=shared,
            y_range=DataRange1d(start=0),
            tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
            active_scroll="xwheel_zoom",
            y_axis_label=_AXES.get(unit),
        )
        for at, (column_name, metric) in enumerate(metrics):
            if is_summed_up:
                plot.varea(
                    "time_ms",
                    f"{column_name}_least",
                    f"{column_name}_most",
                    source=source,
                    legend_label=metric.label,
                    color=series[at],
                    alpha=0.2,
                )
            line = plot.line(
                "time_ms",
                column_name,
                source=source,
                legend_label=metric.label,
                color=series[at],
            )
            plot.add_tools(
                HoverTool(
                    renderers=[line],
                    mode="vline",
                    tooltips=[(metric.label, f"@{column_name}{{{_NUMBERS[unit]}}}")],
                )
            )
        if unit in _TICKS:
            plot.yaxis.formatter = CustomJSTickFormatter(code=_TICKS[unit])
        plot.xaxis.ticker = DatetimeTicker(desired_num_ticks=3)
        fit_narrow_place(plot)
        # names of metrics are longer than those of a report
        plot.legend.ncols = _LEGEND_COLUMNS
        plot.legend.spacing = 2
        add_title(plot, chart.title if plots else f"{title} – {chart.title}")
        plots.append(plot)
    return figure_item(column(*plots, sizing_mode="stretch_width"), theme)


def _column_name(place: int) -> str:
    """By position: Bokeh takes a name for a part of the tooltip's template."""
    return f"metric_{place}"


def _columns(device: Device, readings: Readings) -> dict[str, Floats]:
    """Turn the readings into columns; NaN breaks the line where nothing was read."""
    # one row more after each hole, with nothing in it
    holes = np.flatnonzero(np.diff(readings.ends_ms) > _GAP_MS) + 1
    ends = readings.ends_ms
    columns = {"time_ms": np.insert(ends, holes, ends[holes - 1] + 1)}
    for at in range(len(device.metrics)):
        name = _column_name(at)
        columns[name] = np.insert(readings.mean[:, at], holes, np.nan)
        if readings.least is not readings.most:
            for kind, table in (("least", readings.least), ("most", readings.most)):
                columns[f"{name}_{kind}"] = np.insert(table[:, at], holes, np.nan)
    return columns
