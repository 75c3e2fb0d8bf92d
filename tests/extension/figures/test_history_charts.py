"""What is explored has the lines and the colours of the live charts."""

import re

from tests.programs import ROOT
from warpbook.colours import SERIES
from warpbook.figures.history_charts import CHARTS, history_charts
from warpbook_monitors.frames import Device, Metric

STYLE = (ROOT / "frontend/style/colours.css").read_text()
TILES = (ROOT / "frontend/src/dashboard/tiles/tiles.ts").read_text()
TILE = re.compile(
    r"title: mark\('([^']+)'\),(?:\s+isWide: true,)?\s+lines: (\[.*?\]\s*\])", re.S
)


def test_the_charts_are_those_of_the_dashboard() -> None:
    tiles = {
        title: tuple(re.findall(r"\[\s*'([a-z0-9_]+)',", lines))
        for title, lines in TILE.findall(TILES)
    }
    # the host's memory is drawn as a GPU's is
    assert tiles.pop("Host memory") == tiles["Memory"]
    assert tiles == CHARTS


def test_the_colours_are_those_of_the_dashboard() -> None:
    colours = re.findall(r"--wb-series-\d: (#[0-9a-f]{6})", STYLE)
    assert tuple(colours) == SERIES["light"] + SERIES["dark"]


def test_no_plot_has_more_lines_than_colours_and_none_is_left_out() -> None:
    names = [f"m{at}_ratio" for at in range(12)] + ["sm_active_ratio", "gone_ratio"]
    metrics = tuple(
        Metric(name, "ratio", name, "not_supported" if "gone" in name else "ok")
        for name in names
    )
    charts = list(history_charts(Device("gpu:1", "gpu", "A", 0, "live", metrics)))
    assert [len(chart.lines) for chart in charts] == [1, 5, 5, 2]
    drawn = {metric.name for chart in charts for _, metric in chart.lines}
    assert drawn == set(names) - {"gone_ratio"}
