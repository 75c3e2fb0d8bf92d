"""The timeline is drawn from a real trace and survives hostile names."""

import json
from pathlib import Path

import msgspec
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, HoverTool

from warpbook.figures.timeline import timeline
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile, Lane
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"


def profile(name: str) -> CellProfile:
    return analyse(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))


def test_every_event_of_the_lanes_is_a_bar() -> None:
    cell = profile("ddp_rank0")
    plot = timeline(cell, "loss.backward()")
    bars = plot.select_one(ColumnDataSource).data
    assert len(bars["name"]) == sum(len(lane.names) for lane in cell.lanes)
    assert set(bars["lane"]) == set(plot.y_range.factors)
    assert plot.y_range.factors[-1] == "Stream 7"
    assert max(bars["end_ms"]) <= plot.x_range.end == cell.wall_ns / 1e6
    assert json.dumps(json_item(plot))


def test_nothing_recorded_is_still_a_figure() -> None:
    cell = msgspec.structs.replace(profile("graph_replay"), lanes=(), names=())
    assert json.dumps(json_item(timeline(cell, "")))


def test_hostile_text_is_no_markup_and_fetches_nothing() -> None:
    """TeX would make Bokeh fetch MathJax; "safe" would make it trust HTML."""
    hostile = "<img src=x onerror=alert(1)>$$\\alpha$$"
    lane = Lane("$$x$$", (0, 1000), (1000, 1000), (0, 0))
    cell = msgspec.structs.replace(
        profile("graph_replay"), lanes=(lane, lane), names=(hostile,)
    )
    plot = timeline(cell, hostile)
    assert "$$" not in plot.above[-1].text
    assert plot.y_range.factors == ["$ $x$ $"]
    assert not any("safe" in value for _, value in plot.select_one(HoverTool).tooltips)
