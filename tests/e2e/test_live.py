"""Live views: in the status bar, on the dashboard, in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.lab import HOLD_THE_GIL, TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

DIE = "import os\nos._exit(1)"


def test_everything_opens_and_says_that_it_is_a_replay(
    page: LabPage, lab_url: str, screenshots: Path
) -> None:
    # by the URL as it is told, without what other tests have left open
    page.goto(f"{lab_url}&reset")
    expect(page.page.get_by_role("tabpanel", name=TOUR)).to_be_visible()
    expect(page.status_item).to_contain_text("Replay: GPU 0 SM")
    expect(page.dashboard.locator(".wb-origin")).to_contain_text("REPLAY")
    expect(page.dashboard.locator(".wb-origin")).to_contain_text("Recording: ")
    expect(page.dashboard.locator(".wb-pill").first).not_to_be_empty()
    badges = page.dashboard.locator(":is(.wb-gpu-tile, .wb-device) .wb-badge")
    expect(badges).to_have_text(["REPLAY"] * 3 + ["LIVE"])
    expect(page.dashboard.locator(".wb-absences")).to_contain_text(
        "No live GPU here (NVML): the GPUs below are a recording"
    )
    expect(page.dashboard).to_contain_text("What the chip does")
    page.wait_moving(page.dashboard)
    # the recording's kinds of work follow one another every few seconds
    pills = page.dashboard.locator(".wb-pill", has_text="changing…")
    expect(pills.first).to_be_visible()
    tile = page.dashboard.locator(".wb-gpu-tile").first
    since = re.compile(r"since \d\d:\d\d:\d\d")
    expect(tile).to_contain_text(since)
    expect(tile).to_have_attribute("title", since)
    strip = re.compile(r"since \d\d:.* Strip: SM active over 1.min")
    expect(tile).to_have_attribute("aria-description", strip)
    # as at 200 % zoom: the header leaves most of the dashboard to the charts
    page.page.set_viewport_size({"width": 720, "height": 450})
    share = "node => node.offsetHeight / node.parentElement.offsetHeight"
    assert page.dashboard.locator(".wb-header").evaluate(share) < 0.4
    page.page.screenshot(path=screenshots / "zoom-200.png")


def test_frames_move_while_a_cell_holds_the_kernel_and_after_it_died(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cells = ["import warpbook\nwarpbook.Monitor(gpu=0)", HOLD_THE_GIL, DIE]
    page.open(lab_url, lab.write_notebook("blocked.ipynb", cells))
    page.run(0)
    expect(page.monitor.locator(".wb-badge")).to_have_text("REPLAY")

    hold, let_go = lab.notebooks / "hold", lab.notebooks / "let_go"
    for view in (page.monitor, page.dashboard):
        page.wait_moving(view)
        page.run(1, wait=False)
        page.wait_running(1)
        page.scroll_to(0)
        hold.touch()
        wait_for("a kernel that is held", lambda: not hold.exists() or None)
        page.wait_moving(view)
        assert page.cells()[1]["outputs"] == []
        let_go.touch()
        expect(page.output(1)).to_have_text("held")

    page.restart_kernel()
    page.wait_moving(page.monitor)
    page.wait_moving(page.dashboard)

    page.run(2, wait=False)
    # JupyterLab tells the person, and starts another one
    page.page.get_by_role("dialog").get_by_role("button", name="Ok").click()
    page.wait_moving(page.monitor)
    page.wait_moving(page.dashboard)


def test_cells_of_a_notebook_that_never_loaded_warpbook_are_bands(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    page.open(
        lab_url, lab.write_notebook("plain.ipynb", ["import time; time.sleep(600)"])
    )
    page.run(0, wait=False)
    page.wait_running(0)
    expect(page.dashboard.locator(".wb-notebooks")).to_contain_text("plain.ipynb")
    # the cell runs now, so its band ends where the newest frame is
    page.point_at_newest(page.dashboard, r"plain\.ipynb \[1\]:.* running")
    page.interrupt_kernel()
    page.point_at_newest(page.dashboard, r"%(?s:(?!running).)*$")


def test_a_notebook_does_not_open_over_a_dashboard_that_was_left_alone(
    page: LabPage, lab_url: str
) -> None:
    page.goto(f"{lab_url}&reset")
    page.wait_moving(page.dashboard)
    page.shut_down_kernel()
    # JupyterLab saves the layout when it has been still for a while
    with page.page.expect_response("**/api/workspaces/**"):
        page.close_notebook()
    expect(page.page.locator(".jp-Notebook")).to_have_count(0)
    page.goto(lab_url)
    expect(page.page.locator(".jp-Notebook")).to_be_visible()
    expect(page.dashboard).to_be_visible()
    page.wait_moving(page.dashboard)
