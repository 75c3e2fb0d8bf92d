"""With a keyboard alone, and with a screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_timeline import handed_in
from tests.programs import ROOT

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = (".wb-dashboard", ".wb-panel", ".wb-status")

#: what Tab should reach in a view
CONTROLS = """view => [...view.querySelectorAll(
    "button, select, summary, [tabindex='0']")].filter(
        each => each.checkVisibility() && !each.disabled).length"""

#: whether a person sees where the focus is, and how it is called
FOCUSED = """view => {
    const here = document.activeElement;
    if (!view.contains(here)) return null;
    const { outlineStyle, outlineWidth } = getComputedStyle(here);
    here.dataset.reached = "yes";
    return {
        what: here.outerHTML.slice(0, 200),
        seen: outlineStyle !== "none" && outlineWidth !== "0px",
    };
}"""


class TestOnePage:
    """Dashboard, panel and status bar with values in them."""

    @pytest.fixture(scope="class")
    @classmethod
    def opened(cls, profile: BrowserContext, lab_url: str) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            page.open(lab_url, TOUR)
            page.show_panel()
            expect(page.panel.locator(".wb-gpu").first).to_contain_text("%")
            expect(page.dashboard.locator(".wb-pill").first).not_to_be_empty()
            yield page

    def test_a_screen_reader_is_not_told_of_each_frame(self, opened: LabPage) -> None:
        opened.page.evaluate(
            """views => {
                window.announced = [];
                const live = views.flatMap(view => [...document.querySelectorAll(
                    `${view} :is([role=status], [role=alert], [aria-live])`)]);
                for (const node of live) {
                    new MutationObserver(() => window.announced.push(node.outerHTML))
                        .observe(node, {
                            subtree: true, childList: true, characterData: true
                        });
                }
            }""",
            list(VIEWS),
        )
        before = opened.frames
        opened.wait_moving(opened.dashboard)
        while (frames := opened.frames - before) < 30:
            opened.page.wait_for_timeout(100)
        announced = opened.page.evaluate("() => window.announced")
        # a device that was read late has a message, and its end one, too
        states = ("wb-device-state", "wb-warning")
        late = [text for text in announced if any(name in text for name in states)]
        assert [text for text in announced if text not in late] == []
        assert len(late) < frames / 2

    def test_everything_is_reached_by_tab_and_the_focus_is_seen(
        self, opened: LabPage
    ) -> None:
        for view in (opened.panel, opened.dashboard):
            wanted = int(view.evaluate(CONTROLS))
            view.locator("button, select").first.focus()
            for _ in range(wanted):
                # by keyboard: a browser shows no focus that a program set
                focused = view.evaluate(FOCUSED)
                if focused is None:
                    break
                opened.page.keyboard.press("Tab")
            opened.page.keyboard.press("Shift+Tab")
            _all_reached(opened, view, wanted)
        opened.status_item.get_by_role("button").focus()
        opened.page.keyboard.press("Enter")
        expect(opened.page.get_by_label("Time window")).to_be_focused()

    def test_axe_finds_nothing_serious(self, opened: LabPage) -> None:
        # two GPUs, with the form of an alert rule and what is wrong in it
        rules = opened.dashboard.locator(".wb-rules")
        expect(opened.dashboard.locator(".wb-gpu-tile")).to_have_count(2)
        rules.locator("summary").click()
        rules.get_by_role("button", name="Add a rule").click()
        rules.get_by_role("button", name="Save").click()
        expect(rules.get_by_text("Write a number.")).to_be_visible()
        for width_px in (1500, 1024):
            opened.page.set_viewport_size({"width": width_px, "height": 1000})
            for theme in ("Light", "Dark"):
                opened.set_theme(f"JupyterLab {theme}")
                opened.page.wait_for_timeout(500)
                assert serious(opened, *VIEWS) == [], (width_px, theme)


def serious(page: LabPage, *views: str) -> list[tuple[str, str, list[str]]]:
    """What axe finds in some views that keeps people from using them."""
    page.page.add_script_tag(path=AXE)
    report = page.page.evaluate(
        "views => axe.run({ include: views }, { resultTypes: ['violations'] })",
        [[view] for view in views],
    )
    return [
        (
            violation["id"],
            violation["help"],
            [node["html"][:200] for node in violation["nodes"]],
        )
        for violation in report["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def _all_reached(page: LabPage, view: Locator, wanted: int) -> None:
    """Go back by Shift-Tab to the first, and look at each focus on the way."""
    reached = 0
    while (focused := view.evaluate(FOCUSED)) is not None and reached <= wanted:
        assert focused["seen"], focused["what"]
        reached += 1
        page.page.keyboard.press("Shift+Tab")
    assert view.locator("[data-reached]").count() >= wanted


def test_the_memory_calculator_is_used_by_its_labels(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    cell = 'import warpbook\nwarpbook.memory("gpt2", batch=8, fits="24GB")'
    page.open(lab_url, lab.write_notebook("memory.ipynb", [cell]))
    page.run(0)
    output = page.output(0)
    bar = output.get_by_role("img", name="At the peak: 9.42 GiB of 22.5 GiB, 42 %")
    expect(bar).to_be_visible()
    # a first question is asked below its answer; what few change is folded
    batch = output.get_by_label("Batch (--batch)")
    boxes = [node.bounding_box() for node in (bar, batch)]
    assert boxes[0]["y"] < boxes[1]["y"] < boxes[0]["y"] + 600
    checkpoint = output.get_by_label("Checkpointing (--checkpoint)")
    expect(output.locator(":is(select, input):visible")).to_have_count(5)
    expect(checkpoint).to_be_hidden()
    batch.fill("64")
    batch.press("Enter")
    expect(output).to_contain_text(
        "Fits 22.5 GiB (24 GB as the L4 has), with 1.00 GiB kept free: no"
    )
    expect(output).to_contain_text("warpbook memory gpt2 --batch 64 --fits 24GB")
    output.get_by_role("button", name="More options").press("Enter")
    checkpoint.select_option("full")
    expect(output).to_contain_text("full checkpointing")
    # what the controls say nothing of is not there
    expect(output.get_by_label("Keys and values (--kv-dtype)")).to_be_hidden()
    for theme in ("Light", "Dark"):
        page.set_theme(f"JupyterLab {theme}")
        page.page.wait_for_timeout(500)
        assert serious(page, ".jp-OutputArea-output .warpbook-report") == [], theme
        page.page.screenshot(path=screenshots / f"memory-{theme.lower()}.png")

    # without its kernel a saved notebook has what it showed at first
    page.execute("docmanager:save")
    page.shut_down_kernel()
    page.reload()
    expect(bar).to_be_visible()
    expect(output.get_by_role("cell", name="5.37 GiB")).to_be_visible()
    expect(output).not_to_contain_text("model not found")
    page.page.screenshot(path=screenshots / "memory-saved.png")
    page.errors = [error for error in page.errors if "model not found" not in error]


def test_from_a_cell_to_its_longest_kernel_and_back_by_keyboard(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    title = "4,032 simulated"
    cell = handed_in(4_032, title)
    page.open(lab_url, lab.write_notebook("by-keys.ipynb", [cell]))
    press = page.page.keyboard.press
    page.page.locator(".jp-Notebook .jp-Cell").first.press("Control+Enter")
    listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    expect(listed).to_contain_text(title)
    press("Control+Alt+r")
    report = page.page.locator(".wb-report-tab")
    expect(report.get_by_role("heading", name=title)).to_be_focused()
    page.tab_to(report.get_by_role("button", name="void kernel_").first)
    press("Enter")
    rows = report.get_by_role("table", name="Kernels").first.locator("tbody tr")
    expect(rows.first).to_be_focused()
    name = rows.first.locator("td").first.get_attribute("title")
    assert name is not None
    page.tab_to(rows.first.get_by_role("button", name="in the timeline"), most=2)
    press("Enter")
    timeline = report.locator(".wb-timeline")
    pinned = timeline.get_by_role("region", name="Pinned event")
    expect(pinned.get_by_role("heading")).to_have_text(name)
    expect(timeline.get_by_role("group")).to_be_focused()
    # the next of its slices, then back the way one came
    start = pinned.locator("dt", has_text="Start").locator("+ dd")
    before = start.inner_text()
    press(".")
    expect(start).not_to_have_text(before)
    expect(pinned.get_by_role("heading")).to_contain_text("void kernel_")
    press(",")
    expect(start).to_have_text(before)
    press("r")
    expect(rows.first).to_be_focused()
    press("Alt+w")
    expect(report).to_have_count(0)
    expect(page.page.locator(".jp-Notebook .jp-Cell").first).to_be_focused()
