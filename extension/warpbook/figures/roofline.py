"""The roofline: each operator's rate over its intensity, under the roofs of its GPU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from bokeh.layouts import column
from bokeh.model import Model
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from warpbook.colours import DTYPES, PLAIN
from warpbook.figures.item import add_title, fit_narrow_place, words
from warpbook_monitors import units
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.picture_words import basis_words, no_roofline
from warpbook_profiler.model.pictures import Roof, RooflinePoint

#: room around points and roofs, on logarithmic axes
_ROOM = 3.0
_UNKNOWN = "dtype not known"
_DASHES = {"measured": "solid", "datasheet": "dashed"}
_TERA = 1e12


def roofline_figure(profile: CellProfile) -> Model:
    """Draw a plot for each kind of GPU; names may be hostile."""
    gpus = dict.fromkeys(point.gpu for point in profile.roofline)
    plots = [plot for plot in (_plot(profile, gpu) for gpu in gpus) if plot is not None]
    if not plots:
        return words(no_roofline(profile))
    return column(*plots, sizing_mode="stretch_width")


def _plot(profile: CellProfile, gpu: str) -> figure | None:
    points = [
        point
        for point in profile.roofline
        if point.gpu == gpu and point.flops_per_byte and point.flops_per_s
    ]
    if not points:
        return None
    roofs = [roof for roof in profile.roofs if roof.gpu == gpu]
    dtypes = [
        dtype for dtype in DTYPE_LABELS if any(point.dtype == dtype for point in points)
    ]
    lines = [
        _line(roof, dtype)
        for roof in roofs
        for dtype in dtypes
        if dtype in roof.flops_per_s
    ]
    intensities = [point.flops_per_byte or 1.0 for point in points]
    ridges = [ridge for ridge, _ in lines]
    least_x = min(chain(intensities, ridges)) / _ROOM
    most_x = max(chain(intensities, ridges)) * _ROOM
    rates = [(point.flops_per_s or 1.0) / _TERA for point in points]
    peaks = [peak for _, peak in lines]
    plot = figure(
        height=400,
        sizing_mode="stretch_width",
        x_axis_type="log",
        y_axis_type="log",
        x_range=Range1d(start=least_x, end=most_x),
        y_range=Range1d(start=min(rates) / _ROOM, end=max(chain(rates, peaks)) * _ROOM),
        x_axis_label="FLOP for each byte that must be moved",
        y_axis_label="TFLOP/s",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_scroll="wheel_zoom",
        output_backend="canvas",
    )
    add_title(plot, f"Roofline, {gpu}", basis_words(roofs))
    for roof in roofs:
        for dtype in dtypes:
            if dtype in roof.flops_per_s:
                _draw_roof(plot, roof, dtype, (least_x, most_x))
    for of in (*dtypes, None):
        mine = [
            point
            for point in points
            if (point.dtype if point.dtype in dtypes else None) == of
        ]
        if mine:
            _draw_points(plot, mine, of)
    fit_narrow_place(plot)
    return plot


def _line(roof: Roof, dtype: str) -> tuple[float, float]:
    """Give where a roof bends: the intensity, and TFLOP/s."""
    peak = roof.flops_per_s[dtype]
    return peak / roof.memory_bytes_per_s, peak / _TERA


def _draw_roof(
    plot: figure, roof: Roof, dtype: str, reach: tuple[float, float]
) -> None:
    ridge, peak = _line(roof, dtype)
    slope = roof.memory_bytes_per_s / _TERA
    plot.line(
        [reach[0], ridge, reach[1]],
        [reach[0] * slope, peak, peak],
        line_color=DTYPES[DTYPE_LABELS[dtype]],
        line_dash=_DASHES[roof.basis],
        line_width=1.5,
        legend_label=f"{DTYPE_LABELS[dtype]}, {roof.basis}",
    )


def _draw_points(
    plot: figure, points: Sequence[RooflinePoint], dtype: str | None
) -> None:
    label = _UNKNOWN if dtype is None else DTYPE_LABELS[dtype]
    dots = plot.scatter(
        "intensity",
        "rate",
        size="size",
        color=DTYPES.get(label, PLAIN),
        alpha=0.7,
        source=ColumnDataSource(_columns(points)),
        legend_label=label,
    )
    plot.add_tools(
        HoverTool(
            renderers=[dots],
            tooltips=[
                ("", "@name"),
                ("operands", "@operands"),
                ("time", "@time"),
                ("rate", "@reached"),
                ("of datasheet", "@of_datasheet"),
                ("of measured", "@of_measured"),
            ],
        )
    )


def _columns(points: Sequence[RooflinePoint]) -> dict[str, list[str] | list[float]]:
    return {
        "intensity": [point.flops_per_byte or 0.0 for point in points],
        "rate": [(point.flops_per_s or 0.0) / _TERA for point in points],
        # by area, so that twice the time looks like twice
        "size": [6 + 26 * point.share_ratio**0.5 for point in points],
        "name": [point.name for point in points],
        "operands": [point.operands for point in points],
        "time": [
            f"{units.duration_ns(point.time_ns)} in {point.calls:,} calls, "
            f"{units.share(point.share_ratio)} of the GPU's work"
            for point in points
        ],
        "reached": [
            f"{units.rate(point.flops_per_s or 0.0, 'FLOP')}, at least "
            f"{units.rate(point.bytes_per_s or 0.0, 'B')}"
            for point in points
        ],
        "of_datasheet": [_share(point.of_datasheet) for point in points],
        "of_measured": [_share(point.of_measured) for point in points],
    }


def _share(ratio: float | None) -> str:
    return "not known" if ratio is None else units.share(ratio)
