"""The timeline of a profiled cell: one lane per stream, and what the host called."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import (
    BoxSelectTool,
    ColumnDataSource,
    FactorRange,
    HoverTool,
    LinearColorMapper,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation, Title
from bokeh.palettes import Category20
from bokeh.plotting import figure
from bokeh.transform import transform

from warpbook.colours import FOUND
from warpbook.figures.item import without_math
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.timeline_answers import TimelineRow

_LANE_HEIGHT = 34
_AROUND_HEIGHT = 110
_PALETTE = Category20[20]
#: of the timeline with all events: there may be dozens of rows
_ROW_HEIGHT = 20
#: around the frame, so that the page knows where it is: what it draws itself is lane
#: labels to the left, and names and arrows over the bars
_LABELS_WIDTH, _TOOLBAR_HEIGHT = 132, 36
#: nothing is shorter, and a pixel must not become a division by nothing
_LEAST_MS = 2e-5


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


def explorer(rows: Sequence[TimelineRow], wall_ns: int) -> figure:
    """Draw the frame of a timeline that the page fills as a person moves.

    The page finds by name: the sources "bars" and "found", the annotation "selection",
    the colours of bars ("colours"). It lays the rows out, labels them and names bars.

    Args:
        rows: from above to below.
        wall_ns: what is seen at first, from the start of the run.
    """
    end_ms = max(wall_ns / 1e6, _LEAST_MS)
    plot = figure(
        x_range=Range1d(start=0, end=end_ms, min_interval=_LEAST_MS),
        y_range=Range1d(start=max(len(rows), 1), end=0),
        height=_AROUND_HEIGHT - 20 + _ROW_HEIGHT * max(len(rows), 2),
        min_border_left=_LABELS_WIDTH,
        min_border_top=_TOOLBAR_HEIGHT,
        sizing_mode="stretch_width",
        x_axis_label="ms since the start of the cell",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        output_backend="canvas",
        # the server has made it coarse enough
        lod_threshold=None,
        toolbar_location="above",
    )
    plot.toolbar.logo = None
    plot.add_tools(
        BoxSelectTool(dimensions="width", description="Statistics of a part")
    )
    plot.xaxis.axis_label_text_font_size = "11px"
    plot.xaxis.major_label_text_font_size = "10px"
    plot.ygrid.grid_line_color = None
    plot.yaxis.visible = False
    mapper = LinearColorMapper(palette=_PALETTE, low=0, high=len(_PALETTE))
    mapper.name = "colours"
    plot.quad(
        left="left",
        right="right",
        top="top",
        bottom="bottom",
        fill_color=transform("colour", mapper),
        line_color=None,
        source=_empty("bars", *_PLACE, "colour"),
    )
    plot.quad(
        left="left",
        right="right",
        top="top",
        bottom="bottom",
        fill_color=FOUND,
        line_color=FOUND,
        source=_empty("found", *_PLACE),
    )
    plot.add_layout(
        BoxAnnotation(
            name="selection",
            visible=False,
            fill_color="gray",
            fill_alpha=0.15,
            line_dash="dashed",
        )
    )
    return plot


_PLACE = ("left", "right", "top", "bottom")


def _empty(name: str, *columns: str) -> ColumnDataSource:
    return ColumnDataSource({column: [] for column in columns}, name=name)


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
