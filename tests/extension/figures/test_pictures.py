"""The roofline, memory over time and telemetry, as Bokeh figures and as SVG."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from bokeh.models import ColumnDataSource, HoverTool, Line, Plot, Scatter
from bokeh.models.widgets import Div

from warpbook.figures.axis import Window, axis_figure
from warpbook.figures.item import figure_item
from warpbook.figures.memory import memory_figure
from warpbook.figures.roofline import roofline_figure
from warpbook.reports.html import report_html
from warpbook.reports.pictures import memory_svg, roofline_svg
from warpbook.reports.time_pictures import flame_svg, timeline_svg
from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.history.readings import Floats, Readings
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.pictures import MemoryCurve, Roof
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
HOSTILE = "<img src=x onerror=alert(1)>$$\\alpha$$ \"'&"
GIB = 2**30
CURVE = MemoryCurve(
    device=0,
    times_ns=(0, 2_000_000, 5_000_000, 10_000_000),
    allocated_bytes=(0, 3 * GIB, GIB, GIB),
    reserved_bytes=(4 * GIB, 4 * GIB, 4 * GIB, 4 * GIB),
    changes=2,
    peak_allocated_bytes=3 * GIB,
    peak_ns=2_000_000,
    peak_path=f"aten::linear > {HOSTILE}",
    peak_line=7,
)
USE = MemoryUse(0, 3 * GIB, 4 * GIB, GIB, GIB, 4 * GIB, 4 * GIB, 0.25, 1, 6)


def profile(name: str, **changes: Any) -> CellProfile:
    cell_profile = analyse(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))
    return msgspec.structs.replace(cell_profile, **changes)


def with_both_roofs(name: str) -> CellProfile:
    cell_profile = profile(name)
    (sheet,) = cell_profile.roofs
    measured = Roof(sheet.gpu, "measured", 4.3e12, {"float": 52e12, "tf32": 400e12})
    return msgspec.structs.replace(cell_profile, roofs=(sheet, measured))


def every(figure: Any, kind: type) -> list[Any]:
    return list(figure.select({"type": kind}))


def drawn(figure: Any, glyph: type) -> list[dict[str, Any]]:
    """The columns of every glyph of a kind."""
    return [
        renderer.data_source.data
        for plot in every(figure, Plot)
        for renderer in plot.renderers
        if isinstance(renderer.glyph, glyph)
    ]


def test_operators_are_points_by_dtype_under_both_roofs() -> None:
    cell_profile = with_both_roofs("train_fp32")
    figure = roofline_figure(cell_profile)
    points = [point for point in cell_profile.roofline if point.flops is not None]
    columns = drawn(figure, Scatter)
    assert sum(len(column["name"]) for column in columns) == len(points)
    fp32, _ = columns
    # in TFLOP/s: what an expert reads off the axis
    assert 40 < min(fp32["rate"]) and max(fp32["rate"]) < 67
    lines = every(figure, Plot)[0].renderers
    dashes = [line.glyph.line_dash for line in lines if isinstance(line.glyph, Line)]
    # dashed is the datasheet, solid what was measured; FP32 and TF32 each
    assert dashes == [[6], [6], [], []]
    for roof in drawn(figure, Line):
        (_, bend, end), (_, peak, flat) = roof["x"], roof["y"]
        assert bend < end and peak == flat
    assert json.loads(figure_item(figure, "dark"))["root_id"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("graph_replay", "no operator with known operands"),
        # copies within the GPU alone
        ("ddp_rank0", "no operator whose arithmetic is modelled"),
    ],
)
def test_without_points_the_figure_says_why(name: str, why: str) -> None:
    said = roofline_figure(profile(name))
    assert isinstance(said, Div)
    assert why in said.text
    assert roofline_svg(profile(name)) == ""


def test_memory_is_drawn_in_steps_with_its_peak_and_the_allocators_doings() -> None:
    figure = memory_figure(profile("train_fp32", memory_curves=(CURVE,), memory=(USE,)))
    (plot,) = every(figure, Plot)
    assert plot.x_range.end == profile("train_fp32").wall_ns / 1e6
    (data,) = {id(glyph): glyph for glyph in drawn(plot, object)[:2]}.values()
    assert data["allocated"] == [0, 3 * GIB, GIB, GIB]
    (peak,) = drawn(plot, Scatter)
    assert (peak["x"], peak["y"]) == ([2.0], [3 * GIB])
    below, title = (label.text for label in plot.above)
    assert title.startswith("GPU 0: peak 3.00 GiB at 2.00 ms, line")
    # a narrow picture breaks the line where it may
    assert " ".join(below.split()) == (
        "2 allocations and frees, 25 % fragmented at the end, 1 retries, 6 cudaMalloc"
    )
    assert isinstance(memory_figure(profile("train_fp32")), Div)


METRICS = (
    Metric("sm_active_ratio", "ratio", "SM active"),
    Metric("tensor_active_ratio", "ratio", "Tensor"),
    Metric("power_watts", "watts", "Power"),
    Metric("xid", "count", "not drawn"),
)


def gpu(origin: Any = "live") -> Device:
    return Device("gpu:A", "gpu", HOSTILE, 0, origin, METRICS)


def readings(count: int, first_ms: float = 1000.0) -> Readings:
    ends: Floats = np.linspace(first_ms + 100, first_ms + 100 * count, count)
    table = np.tile([0.9, 0.5, 600.0, 1.0], (count, 1))
    return Readings(ends - 100, ends, table, table, table, np.zeros((count, 1)))


def test_telemetry_is_on_the_cells_axis() -> None:
    window = Window(1050.0, 2050.0)
    figure = axis_figure([gpu()], {"gpu:A": readings(15)}, window, None)
    (plot,) = every(figure, Plot)
    assert (plot.x_range.start, plot.x_range.end) == (0, 1000)
    data = every(plot, ColumnDataSource)[0].data
    assert set(data) == {
        "time_ms",
        "sm_active_ratio",
        "tensor_active_ratio",
        "power_watts",
    }
    # the first reading began before the cell, the last one ended after it
    assert (data["time_ms"][0], data["time_ms"][-1]) == (-50.0, 1050.0)
    below, title = (label.text for label in plot.above)
    assert title.startswith("GPU 0 ") and below == "11 samples"
    assert json.loads(figure_item(figure, "light"))["root_id"]


def test_a_hole_in_the_readings_is_a_hole_in_the_lines() -> None:
    whole = readings(10)
    kept = np.array([0, 1, 2, 6, 7, 8])
    some = Readings(*(getattr(whole, name)[kept] for name in Readings.__annotations__))
    figure = axis_figure([gpu()], {"gpu:A": some}, Window(1000.0, 2000.0), None)
    data = every(figure, ColumnDataSource)
    (source,) = data
    broken = np.isnan(source.data["power_watts"]).tolist()
    assert broken == [False] * 6 + [True] * 2 + [False] * 6


def test_a_cell_that_is_too_short_says_so() -> None:
    window = Window(1000.0, 1150.0)
    figure = axis_figure([gpu()], {"gpu:A": readings(15)}, window, None)
    (said,) = every(figure, Div)
    assert "too short for telemetry: 2 samples" in said.text
    # nothing was kept, or never read
    figure = axis_figure([gpu()], {"gpu:A": readings(0)}, window, None)
    assert "0 samples" in every(figure, Div)[0].text


def test_replayed_telemetry_is_labelled() -> None:
    figure = axis_figure(
        [gpu("replay")], {"gpu:A": readings(15)}, Window(1000.0, 2000.0), "h200"
    )
    assert every(figure, Plot)[0].above[-1].text.startswith("REPLAY h200: GPU 0")
    assert isinstance(axis_figure([], {}, Window(0.0, 1.0), None), Div)


def test_hostile_names_are_no_markup_and_fetch_nothing() -> None:
    cell_profile = profile("train_fp32", memory_curves=(CURVE,))
    points = tuple(
        msgspec.structs.replace(point, name=HOSTILE, gpu=HOSTILE)
        for point in cell_profile.roofline
    )
    cell_profile = msgspec.structs.replace(cell_profile, roofline=points)
    figures = [
        roofline_figure(cell_profile),
        memory_figure(cell_profile),
        axis_figure([gpu()], {"gpu:A": readings(15)}, Window(1000.0, 2000.0), None),
    ]
    for figure in figures:
        for plot in every(figure, Plot):
            assert not any("$$" in title.text for title in plot.above)
            for hover in every(plot, HoverTool):
                assert not any("safe" in value for _, value in hover.tooltips)
    short = axis_figure([gpu()], {"gpu:A": readings(0)}, Window(0.0, 1.0), None)
    (said,) = every(short, Div)
    assert said.render_as_text and said.disable_math


def test_a_saved_notebook_has_both_pictures_without_a_script() -> None:
    cell_profile = with_both_roofs("train_fp32")
    points = tuple(
        msgspec.structs.replace(point, name=HOSTILE) for point in cell_profile.roofline
    )
    cell_profile = msgspec.structs.replace(
        cell_profile, memory_curves=(CURVE,), memory=(USE,), roofline=points
    )
    for svg in (roofline_svg(cell_profile), memory_svg(cell_profile)):
        tree = ET.fromstring(svg)
        tags = {element.tag for element in tree.iter()}
        assert tags <= {
            "figure",
            "svg",
            "figcaption",
            "path",
            "text",
            "circle",
            "title",
        }
        numbers = re.findall(r' (?:cx|cy|x|y)="([^"]+)"', svg)
        assert numbers and all(0 <= float(number) <= 640 for number in numbers)
    roofline = ET.fromstring(roofline_svg(cell_profile))
    arithmetic = [point for point in points if point.flops is not None]
    assert len(roofline.findall(".//circle")) == len(arithmetic)
    assert HOSTILE in (roofline.findall(".//circle/title")[0].text or "")
    said = ET.fromstring(memory_svg(cell_profile)).find("figcaption")
    assert said is not None and said.text is not None
    assert "peak 3.00 GiB at 2.00 ms, line 7" in said.text
    html = report_html(cell_profile, "cell")
    assert roofline_svg(cell_profile) in html and memory_svg(cell_profile) in html
    assert "<img" not in html and "<script" not in html


def test_a_file_has_the_calls_and_the_events_over_time() -> None:
    whole, name = profile("train_fp32"), HOSTILE + "x" * 900
    nodes = tuple(
        msgspec.structs.replace(node, name=name if at == 0 else node.name)
        for at, node in enumerate(whole.call_tree)
    )
    events = sum(len(lane.names) for lane in whole.lanes)
    hostile = msgspec.structs.replace(
        whole,
        call_tree=nodes,
        names=(name, *whole.names[1:]),
        completeness=msgspec.structs.replace(whole.completeness, lanes_omitted=70_000),
    )
    gpu, host, timeline = ET.fromstring(
        f"<p>{flame_svg(hostile)}{timeline_svg(hostile)}</p>"
    )
    for graph in (gpu, host):
        # a callee lies within its caller, all within the width
        boxes = [
            (float(r.get("x", "")), float(r.get("width", "")))
            for r in graph.iter("rect")
        ]
        assert boxes and all(0 <= x and x + wide <= 640.1 for x, wide in boxes)
    titles = [title.text or "" for title in timeline.iter("title")]
    assert any(title.startswith(f"{name}: ") for title in titles)
    bars = "".join(path.get("d", "") for path in timeline.iter("path"))
    assert bars.count("z") == events
    said = timeline.findtext("figcaption") or ""
    assert "Not drawn: 70,000 shorter events" in said
    file = report_html(hostile, "cell", is_open=True)
    assert "<img" not in file and "<script" not in file and len(file) < 400_000
    assert timeline_svg(profile("tiny_kernels", lanes=(), names=())) == ""


def test_a_long_curve_stays_small_in_a_saved_notebook() -> None:
    times = tuple(number * 1_000_000 for number in range(2000))
    curve = msgspec.structs.replace(
        CURVE,
        times_ns=times,
        allocated_bytes=tuple(number % 7 * GIB for number in range(2000)),
        reserved_bytes=(9 * GIB,) * 2000,
        peak_ns=6_000_000,
        peak_allocated_bytes=6 * GIB,
    )
    assert len(memory_svg(profile("tiny_kernels", memory_curves=(curve,)))) < 10_000
