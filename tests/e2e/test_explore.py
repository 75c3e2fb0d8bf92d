"""What people explore: the tour, reports and their timelines, other Bokehs, names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import ROOT
from warpbook_monitors.verdict_kinds import MEANINGS

#: older than every Bokeh that warpbook's server may have in the tests
OTHER_BOKEH = "3.8.0"


def test_the_tour_runs_from_top_to_bottom(page: LabPage, lab_url: str) -> None:
    page.open(lab_url, TOUR)
    page.run_all()
    cells = page.cells()
    code = [n for n, cell in enumerate(cells) if cell["cell_type"] == "code"]
    for n in code:
        assert cells[n]["execution_count"], cells[n]
        for output in cells[n]["outputs"]:
            assert output["output_type"] != "error", output
            assert output.get("name") != "stderr", output
    assert cells[code[0]]["outputs"] == [], "%load_ext is silent"
    sources = {n: "".join(cells[n]["source"]) for n in code}

    (now,) = (n for n in code if sources[n].startswith("%gpu"))
    expect(page.output(now)).to_contain_text("H200")
    expect(page.output(now)).to_contain_text("replay", ignore_case=True)
    (monitor,) = (n for n in code if "Monitor()" in sources[n])
    expect(page.output(monitor).locator(".wb-badge").first).to_have_text("REPLAY")
    profiled = [n for n in code if 'cell_magic("gpuprof"' in sources[n]]
    # the second is quiet, and compares
    report = page.output(profiled[0]).locator(".warpbook-report")
    expect(report).to_contain_text("aten::")
    expect(page.output(profiled[1])).to_contain_text("synchronizations")

    (shipped,) = (n for n in code if sources[n].startswith("report = "))
    output = page.output(shipped)
    verdict = output.locator(".warpbook-badge")
    expect(verdict).to_have_text("compute-bound")
    expect(verdict).to_have_attribute("title", MEANINGS["compute-bound"])
    expect(output).to_contain_text("Multiply in bfloat16")
    output.get_by_text(re.compile(r"^Timeline and figures of \d+ events$")).click()
    page.wait_for_figure(output)

    listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    # the lab is shared: other tests' reports are listed too
    reports = listed.get_by_role("row", name=Path(TOUR).stem).locator(".wb-link")
    expect(reports).to_have_count(len(profiled) + 1)
    # the oldest is of a cell, the newest of the file
    reports.last.click()
    expect(page.drawer).to_contain_text("with the profiler on")
    page.open_part(page.drawer, "Timeline")
    page.wait_for_figure(page.drawer)


@pytest.fixture(scope="session")
def other_bokeh() -> Path:
    """Another Bokeh, beside the environment's own."""
    folder = ROOT / ".cache" / f"bokeh-{OTHER_BOKEH}"
    if not (folder / "bokeh").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        wanted, part = f"bokeh=={OTHER_BOKEH}", folder.with_suffix(f".{os.getpid()}")
        subprocess.run([*install, "--target", part, wanted], check=True)
        # whole or not at all
        part.rename(folder)
    return folder


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_a_notebooks_own_bokeh_of_another_version_keeps_working(
    page: LabPage, lab: Lab, lab_url: str, other_bokeh: Path, first: str
) -> None:
    load = f"""\
import sys
sys.path.insert(0, {str(other_bokeh)!r})
from bokeh.io import output_notebook, show
from bokeh.models import LinearAxis, Plot, Range1d, Slope
from bokeh.resources import INLINE
output_notebook(INLINE)"""
    # nothing that this Bokeh would need pandas for
    draw = """\
theirs = Plot(x_range=Range1d(0, 3), y_range=Range1d(0, 3), width=400, height=200)
theirs.add_layout(Slope(gradient=1, y_intercept=0, line_width=4))
theirs.add_layout(LinearAxis(), "below")
show(theirs)"""
    notebook = lab.write_notebook(f"bokeh-{first}.ipynb", [load, draw, draw])
    page.open(lab_url, notebook)

    def theirs(cell: int) -> None:
        page.run(cell)
        page.wait_for_figure(page.output(cell))
        assert page.page.evaluate("() => window.Bokeh.version") == OTHER_BOKEH

    def ours() -> None:
        page.open_drawer(
            page.dashboard.get_by_text("Explore this time window").first.click
        )
        page.wait_for_figure(page.drawer)

    if first == "theirs":
        page.run(0)
        theirs(1)
        ours()
    else:
        ours()
        page.run(0)
        theirs(1)
        ours()
    theirs(2)


def test_hostile_names_are_shown_as_text(page: LabPage, lab: Lab, lab_url: str) -> None:
    attack = "<img src=x onerror=window.attacked=1>"
    profiled = f"""\
%%gpuprof
str({attack!r})
import torch
with torch.profiler.record_function({attack!r}):
    torch.ones(3).sum()"""
    notebook = lab.write_notebook(f"{attack}.ipynb", ["%load_ext warpbook", profiled])
    page.open(lab_url, notebook)
    page.run(0)
    page.run(1)
    expect(page.output(1)).to_contain_text(attack)
    expect(page.dashboard.locator(".wb-notebooks")).to_contain_text(attack)
    # the table of cells, too, may have it by then
    reports = page.dashboard.get_by_role("region", name="Cell reports")
    report = reports.get_by_role("button", name=f"str({attack!r})", exact=True)
    page.open_drawer(report.click)
    page.open_part(page.drawer, "Timeline")
    page.wait_for_figure(page.drawer)
    expect(page.drawer).to_contain_text(attack)
    # over the whole timeline: its tool tips are made of those names too
    figure = page.drawer.locator(".wb-timeline-canvas").bounding_box()
    assert figure is not None
    for n in range(1, 20):
        page.page.mouse.move(
            figure["x"] + figure["width"] * n / 20, figure["y"] + figure["height"] / 2
        )
    assert page.page.evaluate("() => window.attacked") is None
    assert page.page.locator("img[src=x]").count() == 0


def test_the_views_follow_the_theme(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    names = ["sm_active_ratio", "tensor_active_ratio", "dram_active_ratio"]
    cells = [
        "%load_ext warpbook\n%gpu",
        f"import warpbook\nwarpbook.Monitor(gpu=0, metrics={names})",
        "%%gpuprof\nimport torch\na = torch.randn(512, 512)\n(a @ a).relu().sum()",
    ]
    page.open(lab_url, lab.write_notebook("themes.ipynb", cells))
    page.run_all()
    for theme, dark in (("Light", False), ("Dark", True)):
        page.set_theme(f"JupyterLab {theme}")
        page.scroll_to(0)
        page.wait_moving(page.monitor)
        page.wait_moving(page.dashboard)
        page.page.screenshot(path=screenshots / f"live-{theme.lower()}.png")
        assert page.is_dark(page.dashboard) is dark

        page.open_report("torch")
        page.open_part(page.drawer, "Timeline")
        page.wait_for_figure(page.drawer)
        page.page.screenshot(path=screenshots / f"report-{theme.lower()}.png")
        page.drawer.get_by_role("button", name="Close").click()
