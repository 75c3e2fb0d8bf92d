"""The timeline of a profiled cell: one lane per stream, and what the host called."""

from __future__ import annotations

from bokeh.models import ColumnDataSource, FactorRange, HoverTool, Range1d
from bokeh.models.annotations import Title
from bokeh.palettes import Category20
from bokeh.plotting import figure

from warpbook.figures.item import without_math
from warpbook_profiler.model.cell_profile import CellProfile

_LANE_HEIGHT = 34
_AROUND_HEIGHT = 110
_PALETTE = Category20[20]


def timeline(profile: CellProfile, title: str) -> figure:
    """Draw a cell's lanes over one time axis, to zoom into.

    Args:
        profile: the cell's figures; its names may be hostile and are only ever
            drawn on a canvas or escaped by Bokeh's tooltips.
        title: of the cell.
    """
    # labels are the rows of the plot, and Bokeh wants each row once
    labels = list(dict.fromkeys(without_math(lane.label) for lane in profile.lanes))
    plot = figure(
        x_range=Range1d(start=0, end=max(profile.wall_ns, 1) / 1e6),
        y_range=FactorRange(factors=labels[::-1]),
        height=_AROUND_HEIGHT + _LANE_HEIGHT * max(len(labels), 1),
        sizing_mode="stretch_width",
        x_axis_label="ms since the start of the cell",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        output_backend="canvas",
    )
    plot.ygrid.grid_line_color = None
    plot.add_layout(Title(text=without_math(title)), "above")
    if profile.completeness.lanes_omitted:
        plot.add_layout(
            Title(
                text=f"{profile.completeness.lanes_omitted:,} shorter events are "
                "not drawn.",
                text_font_style="normal",
            ),
            "below",
        )
    bars = plot.hbar(
        y="lane",
        left="start_ms",
        right="end_ms",
        height=0.7,
        fill_color="colour",
        # an outline keeps a microsecond visible in a cell of seconds
        line_color="colour",
        source=ColumnDataSource(_columns(profile)),
    )
    plot.add_tools(
        HoverTool(
            renderers=[bars],
            tooltips=[
                ("", "@name"),
                ("start", "@start_ms{0,0.0000} ms"),
                ("duration", "@duration_ms{0,0.0000} ms"),
            ],
        )
    )
    return plot


def _columns(profile: CellProfile) -> dict[str, list[str] | list[float]]:
    lane: list[str] = []
    name: list[str] = []
    colour: list[str] = []
    start_ms: list[float] = []
    duration_ms: list[float] = []
    for row in profile.lanes:
        lane += [without_math(row.label)] * len(row.names)
        name += [profile.names[at] for at in row.names]
        colour += [_PALETTE[at % len(_PALETTE)] for at in row.names]
        start_ms += [start_ns / 1e6 for start_ns in row.starts_ns]
        duration_ms += [duration_ns / 1e6 for duration_ns in row.durations_ns]
    return {
        "lane": lane,
        "name": name,
        "colour": colour,
        "start_ms": start_ms,
        "duration_ms": duration_ms,
        "end_ms": [
            start + duration
            for start, duration in zip(start_ms, duration_ms, strict=True)
        ],
    }
