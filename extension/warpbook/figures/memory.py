"""Memory over time: what torch's allocator held on each GPU while the code ran."""

from __future__ import annotations

from bokeh.layouts import column
from bokeh.model import Model
from bokeh.models import (
    AdaptiveTicker,
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure

from warpbook.colours import PLAIN, SERIES
from warpbook.figures.item import add_title, fit_narrow_place, words
from warpbook_monitors import units
from warpbook_monitors.plain_text import shortened
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.picture_words import allocator_words, peak_words
from warpbook_profiler.model.pictures import MemoryCurve

_TICKS = "return +(tick / 2 ** 30).toPrecision(3) + ' GiB'"
_TITLE_WIDTH = 76
_ALLOCATED, _PEAK, *_ = SERIES["light"]
_RESERVED = PLAIN


def memory_figure(profile: CellProfile) -> Model:
    """Draw a plot for each GPU over one time axis; names may be hostile."""
    if not profile.memory_curves:
        return words(
            "No memory over time: nothing was allocated on a GPU while it was "
            "recorded, which %%gpuprof --memory does."
        )
    shared = Range1d(start=0, end=max(profile.wall_ns, 1) / 1e6)
    uses = {use.device: use for use in profile.memory}
    return column(
        *(
            _plot(curve, uses.get(curve.device), shared)
            for curve in profile.memory_curves
        ),
        sizing_mode="stretch_width",
    )


def _plot(curve: MemoryCurve, use: MemoryUse | None, shared: Range1d) -> figure:
    plot = figure(
        height=260,
        sizing_mode="stretch_width",
        x_range=shared,
        y_range=DataRange1d(start=0),
        x_axis_label="ms since the start of the cell",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        output_backend="canvas",
    )
    plot.yaxis.ticker = AdaptiveTicker(base=2, mantissas=[1], desired_num_ticks=4)
    plot.yaxis.formatter = CustomJSTickFormatter(code=_TICKS)
    add_title(
        plot, shortened(peak_words(curve), _TITLE_WIDTH), allocator_words(curve, use)
    )
    source = ColumnDataSource(
        {
            "time_ms": [time_ns / 1e6 for time_ns in curve.times_ns],
            "allocated": list(curve.allocated_bytes),
            "reserved": list(curve.reserved_bytes),
            "allocated_text": [
                units.size(size_bytes) for size_bytes in curve.allocated_bytes
            ],
            "reserved_text": [
                units.size(size_bytes) for size_bytes in curve.reserved_bytes
            ],
        }
    )
    # a value holds until the next
    for name, colour in (("reserved", _RESERVED), ("allocated", _ALLOCATED)):
        line = plot.step(
            "time_ms",
            name,
            mode="after",
            source=source,
            color=colour,
            legend_label=f"{name} by PyTorch",
        )
    plot.add_tools(
        HoverTool(
            renderers=[line],
            mode="vline",
            tooltips=[
                ("at", "@time_ms{0,0.000} ms"),
                ("allocated", "@allocated_text"),
                ("reserved", "@reserved_text"),
            ],
        )
    )
    plot.scatter(
        [curve.peak_ns / 1e6],
        [curve.peak_allocated_bytes],
        marker="inverted_triangle",
        size=10,
        color=_PEAK,
        legend_label="peak",
    )
    fit_narrow_place(plot)
    return plot
