"""The history on the dashboard: pause, zoom, an hour, a span's figures, receipts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Response, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

CHIP = "What the chip does"


def plot_of(page: LabPage, title: str = CHIP) -> Locator:
    """The plot of the first GPU's chart of this title, with lines on it."""
    chart = page.dashboard.get_by_label(title, exact=True).first
    page.bring_to_see(chart, chart.locator("canvas"))
    return chart.locator(".wb-plot")


def drag(page: LabPage, plot: Locator, start: float, end: float) -> None:
    """Drag over the lines, from one share of their width to another."""
    point_at(plot, start)
    page.page.mouse.down()
    for step in range(1, 6):
        point_at(plot, start + (end - start) * step / 5)
    page.page.mouse.up()


def point_at(plot: Locator, share: float) -> None:
    """Point at a share of the lines' width, once they stand still."""
    over = plot.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": box["width"] * share, "y": box["height"] / 2})


def watch(page: LabPage, frames: int) -> None:
    """Wait for frames, so that there is something to look back at."""
    before = page.frames
    wait_for(
        "frames",
        lambda: (
            page.page.wait_for_timeout(100) or page.frames - before > frames or None
        ),
    )


def picture(plot: Locator) -> str:
    return str(plot.locator("canvas").evaluate("canvas => canvas.toDataURL()"))


def still(page: LabPage, plot: Locator) -> str | None:
    """The plot's picture, if it is the same some frames later."""
    before = picture(plot)
    watch(page, 20)
    return before if picture(plot) == before else None


@pytest.fixture(scope="module")
def page(profile: BrowserContext, lab: Lab, lab_url: str) -> Iterator[LabPage]:
    """The dashboard of live readings, for all tests of this module."""
    notebook = lab.write_notebook("cost.ipynb", ["import time; time.sleep(6)"])
    with fresh_page(profile) as page:
        page.open(lab_url, notebook)
        page.wait_moving(page.dashboard)
        yield page


@pytest.fixture
def paused(page: LabPage) -> Locator:
    return page.dashboard.locator(".wb-badge-paused")


def test_a_paused_view_stands_still_while_data_goes_on(
    page: LabPage, paused: Locator
) -> None:
    page.dashboard.get_by_role("button", name="Pause").click()
    expect(paused).to_contain_text("PAUSED")
    plot = plot_of(page)
    # what the server has of this time is drawn when it comes
    before = wait_for("a view that stands still", lambda: still(page, plot))
    page.dashboard.get_by_role("button", name="Resume").click()
    expect(paused).to_be_hidden()
    wait_for("a view that goes on", lambda: picture(plot) != before or None)
    page.wait_moving(page.dashboard)


def test_time_is_zoomed_and_moved_by_hand_and_by_keys(
    page: LabPage, paused: Locator
) -> None:
    plot = plot_of(page)
    shown: list[str] = []

    def expect_another_span() -> None:
        # until the view is held there are no words, and so others than before
        expect(paused).to_be_visible()
        if shown:
            expect(paused).not_to_have_text(shown[-1])
        shown.append(paused.inner_text())

    drag(page, plot, 0.5, 0.9)
    expect_another_span()
    for key in ("-", "+", "Home"):
        plot.focus()
        page.page.keyboard.press(key)
        expect_another_span()
    page.page.keyboard.press("End")
    expect(paused).to_be_hidden()
    plot.hover()
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -240)
    page.page.keyboard.up("Control")
    expect_another_span()
    page.dashboard.get_by_role("button", name="Back in time").click()
    expect_another_span()
    plot.focus()
    page.page.keyboard.press("Escape")
    expect(paused).to_be_hidden()


def test_values_are_read_with_pointer_and_keys(page: LabPage) -> None:
    plot = plot_of(page, "Power")
    tip = plot.locator(".wb-tip")

    def described() -> bool | None:
        """Whether the chart tells a value; a busy machine may just have none."""
        plot.blur()
        plot.focus()
        words = plot.get_attribute("aria-label") or ""
        return bool(re.search(r"^Power.*now: board \d+.W", words)) or None

    def read() -> bool | None:
        page.page.keyboard.press("ArrowLeft")
        return bool(re.search(r"board \d+.W", tip.inner_text())) or None

    wait_for("a description with a value", described)
    wait_for("a value that is read", read)
    page.page.keyboard.press("Escape")
    plot.blur()
    expect(tip).to_be_hidden()
    page.point_at_newest(page.dashboard, "%")


def test_a_span_has_statistics_and_can_be_saved(
    page: LabPage, screenshots: Path, paused: Locator
) -> None:
    watch(page, 30)
    plot = plot_of(page)
    page.dashboard.get_by_label("Time window").select_option("30")
    page.page.keyboard.down("Shift")
    drag(page, plot, 0.7, 0.99)
    page.page.keyboard.up("Shift")
    expect(page.drawer).to_contain_text("Statistics of ")
    card = page.drawer.get_by_label("Statistics of GPU 0")
    for words in ("Mean power", "Peak memory", "Energy", " J"):
        expect(card).to_contain_text(words)
    card.get_by_text("All ", exact=False).click()
    expect(card.locator("tbody tr", has_text="SM active")).to_contain_text("%")
    page.page.screenshot(path=screenshots / "span.png")

    for button, start in (
        # a mark tells spreadsheets that it is UTF-8
        ("CSV", "\ufefftime_ms"),
        ("JSONL", '{"type":"hello"'),
        ("Chrome trace", "{"),
    ):
        with page.page.expect_download() as saving:
            page.drawer.get_by_role("button", name=button).click()
        assert saving.value.path().read_text()[: len(start)] == start
    with page.page.expect_download() as saving:
        page.dashboard.get_by_label("Save all of the history").select_option("csv")
    assert saving.value.suggested_filename.endswith(".csv")

    page.drawer.get_by_role("button", name="Explore GPU 0").click()
    page.wait_for_figure(page.drawer)
    page.drawer.get_by_role("button", name="Close").click()
    expect(page.drawer).to_be_hidden()

    # the same without a pointer
    plot.focus()
    for _ in range(12):
        page.page.keyboard.press("Shift+ArrowLeft")
    page.page.keyboard.press("Enter")
    expect(page.drawer.get_by_label("Statistics of GPU 0")).to_be_visible()
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Escape")
    expect(page.drawer).to_be_hidden()
    plot.focus()
    page.page.keyboard.press("End")
    expect(paused).to_be_hidden()


def test_an_hour_is_summed_up_by_the_server(
    page: LabPage, screenshots: Path, paused: Locator
) -> None:
    plot = plot_of(page)

    def is_of_the_chip(response: Response) -> bool:
        """Whether it is of a GPU; every device that is seen is asked for."""
        return "/history/detail?" in response.url and "sm_active_ratio" in response.url

    with page.page.expect_response(is_of_the_chip) as asking:
        page.dashboard.get_by_label("Time window").select_option("3600")
    detail = asking.value.json()
    assert detail["step_ms"] == 6000
    assert "sm_active_ratio" in detail["columns"]
    # where the newest step is
    page.point_at_newest(page.dashboard, "%")
    page.page.screenshot(path=screenshots / "hour.png")
    plot.focus()
    page.page.keyboard.press("Home")
    expect(paused).to_be_visible()
    # what an earlier view drew would still be there until the next drawing
    page.page.wait_for_timeout(1000)
    expect(plot).to_have_attribute("data-empty", "false")
    expect(page.dashboard.locator(".wb-header .wb-warning")).to_be_hidden()
    page.page.keyboard.press("Escape")
    expect(paused).to_be_hidden()


def test_a_click_on_a_cells_band_tells_what_it_cost(
    page: LabPage, screenshots: Path
) -> None:
    # a minute is over soon on a busy machine
    page.dashboard.get_by_label("Time window").select_option("300")
    plot = plot_of(page)
    page.run(0)
    page.run(0)
    # the lab is shared: other tests' cells are listed too
    row = page.dashboard.locator(".wb-cells .wb-link", has_text="time.sleep(6)")
    expect(row).to_have_count(2)
    page.dashboard.get_by_role("button", name="Pause").click()

    def press_band() -> None:
        # it has ended, nobody knows how long ago on a machine that is busy
        tip = plot.locator(".wb-tip")
        for share in range(99, 0, -1):
            point_at(plot, share / 100)
            page.page.wait_for_timeout(200)
            if "cost.ipynb" in tip.inner_text():
                break
        page.page.mouse.down()
        page.page.mouse.up()

    page.open_drawer(press_band)
    cost = "this cell's cost is unknown"
    for words in ("Receipt: import time", "Wall time", "REPLAY", cost, "%%gpuprof"):
        expect(page.drawer).to_contain_text(words)
    page.page.screenshot(path=screenshots / "receipt.png")
    page.drawer.get_by_role("button", name="Show this time").click()
    page.drawer.get_by_role("button", name="Close").click()
    row.last.click()
    expect(page.drawer).to_contain_text("Receipt: import time")
