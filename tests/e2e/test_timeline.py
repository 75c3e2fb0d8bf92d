"""A million events in the browser: seen, zoomed into, selected and searched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.many_events import RARE
from tests.programs import ROOT, wait_for

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


def handed_in(events: int, title: str, whole: bool = True) -> str:
    """A cell that hands in a report, and with it or not its events."""
    return f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.many_events import hand_in
hand_in({events}, {title!r}, {whole})"""


def open_report(page: LabPage, title: str) -> Locator:
    page.open_report(title)
    page.open_part(page.drawer, "Timeline")
    return page.drawer.locator(".wb-timeline")


def seen_ms(timeline: Locator) -> tuple[float, float]:
    """What the words below the figure say is seen."""
    said = timeline.locator("> .wb-note")
    expect(said).to_contain_text(" to ")
    match = re.search(r"(-?[\d.]+)\xa0\w+ to (-?[\d.]+)\xa0(m?s)", said.inner_text())
    assert match, said.inner_text()
    scale = 1 if match[3] == "ms" else 1000
    return scale * float(match[1]), scale * float(match[2])


def still_ms(page: LabPage, timeline: Locator) -> tuple[float, float]:
    """What is seen, once it moves no more."""
    before = seen_ms(timeline)
    while True:
        page.page.wait_for_timeout(300)
        if (now := seen_ms(timeline)) == before:
            return now
        before = now


def still_box(page: LabPage, timeline: Locator) -> dict[str, float]:
    """Where the figure is, once nothing that is drawn above pushes it further down."""
    canvas = timeline.locator(".wb-timeline-canvas")
    canvas.scroll_into_view_if_needed()
    before = canvas.bounding_box()
    while True:
        page.page.wait_for_timeout(500)
        now = canvas.bounding_box()
        if now is not None and now == before:
            return dict(now)
        before = now


def drag(page: LabPage, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.page.mouse.move(*start)
    page.page.mouse.down()
    page.page.mouse.move(*end, steps=10)
    page.page.mouse.up()


def shown(page: LabPage, lab: Lab, lab_url: str, events: int) -> Locator:
    """The timeline of so many events, drawn."""
    title = f"{events:,} simulated"
    cell = handed_in(events, title)
    page.open(lab_url, lab.write_notebook(f"simulated-{events}.ipynb", [cell]))
    page.run(0)
    timeline = open_report(page, title)
    page.wait_for_figure(timeline)
    expect(timeline).to_contain_text(f"of {events:,} events")
    return timeline


def test_a_million_events_are_zoomed_searched_and_added_up(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    timeline = shown(page, lab, lab_url, 1_000_000)
    expect(timeline).to_contain_text("close together are one bar")
    begin, end = seen_ms(timeline)
    assert begin == 0 and end > 1000

    # closer and closer by button, until every event stands by itself
    for _ in range(12):
        timeline.get_by_role("button", name="Zoom in").click()
    expect(timeline).not_to_contain_text("close together are one bar")
    near = still_ms(page, timeline)
    assert near[1] - near[0] < (end - begin) / 1000
    page.wait_for_figure(timeline)

    # the keys move what is seen, and not the dashboard's charts
    timeline.get_by_role("group").focus()
    page.page.keyboard.press("ArrowRight")
    wait_for("a later part", lambda: seen_ms(timeline)[0] > near[0] or None)
    expect(page.dashboard).not_to_have_class(re.compile("wb-held"))

    # what is seen in figures
    page.page.keyboard.press("m")
    selection = timeline.get_by_role("region", name="Marked span")
    expect(selection).to_contain_text("GPU 0 busy")
    expect(selection.get_by_role("table").first).to_contain_text("Stream 7")
    expect(selection).to_contain_text("cudaLaunchKernel")

    # "/" searches, and what is typed there are no keys
    page.page.keyboard.press("/")
    page.page.keyboard.type("ws0")
    before = still_ms(page, timeline)
    assert timeline.get_by_role("searchbox").input_value() == "ws0"
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Escape")
    assert still_ms(page, timeline) == before

    page.page.keyboard.press("0")
    whole = pytest.approx(end, rel=1e-3)
    wait_for("the whole", lambda: seen_ms(timeline)[1] == whole or None)

    # the one event among a million, by Enter as soon as it is typed
    search = timeline.get_by_role("searchbox")
    search.fill("SEARCHED_FOR")
    search.press("Enter")
    expect(timeline.get_by_role("search")).to_contain_text(f"Shown: {RARE}")
    match = still_ms(page, timeline)
    assert match[1] - match[0] < (end - begin) / 1000
    expect(timeline.get_by_role("button", name="Next match")).to_be_disabled()
    page.wait_for_figure(timeline)


def test_the_mouse_moves_zooms_and_marks(page: LabPage, lab: Lab, lab_url: str) -> None:
    timeline = shown(page, lab, lab_url, 40_004)
    canvas = still_box(page, timeline)
    x, y = canvas["x"] + canvas["width"] / 4, canvas["y"] + canvas["height"] / 2
    whole = seen_ms(timeline)
    at_ms = whole[0] + (whole[1] - whole[0]) / 4
    page.page.mouse.move(x, y)
    # a plain wheel is the page's, which scrolls
    page.page.mouse.wheel(0, 30)
    page.page.mouse.wheel(0, -30)
    assert still_ms(page, timeline) == whole
    page.page.keyboard.down("Control")
    for _ in range(10):
        page.page.mouse.wheel(0, -100)
    page.page.keyboard.up("Control")
    zoomed = still_ms(page, timeline)
    assert zoomed[1] - zoomed[0] < (whole[1] - whole[0]) / 8
    # what was under the pointer is there still
    at = (at_ms - zoomed[0]) / (zoomed[1] - zoomed[0])
    assert at == pytest.approx(0.25, abs=0.02)
    drag(page, (x, y), (x - 100, y))
    moved = still_ms(page, timeline)
    assert moved[0] - zoomed[0] == pytest.approx(
        100 / canvas["width"] * (zoomed[1] - zoomed[0]), rel=0.1
    )
    page.wait_for_figure(timeline)

    start, end = (canvas["x"] + canvas["width"] * share for share in (0.4, 0.6))
    page.page.keyboard.down("Shift")
    drag(page, (start, y), (end, y))
    page.page.keyboard.up("Shift")
    marked = timeline.get_by_role("region", name="Marked span")
    expect(marked).to_contain_text("GPU 0 busy")
    expect(marked.get_by_role("heading")).to_contain_text("Marked: ")
    # F shows what is marked, Escape gives it up
    timeline.get_by_role("group").focus()
    page.page.keyboard.press("f")
    near = still_ms(page, timeline)
    share = 0.2 * 1.2
    assert near[1] - near[0] == pytest.approx(share * (moved[1] - moved[0]), rel=0.05)
    page.page.keyboard.press("Escape")
    expect(marked.get_by_role("heading")).to_have_count(0)


class TestOneTimeline:
    """A timeline that is drawn once."""

    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, profile: BrowserContext) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            yield page

    @pytest.fixture(scope="class")
    @classmethod
    def timeline(cls, page: LabPage, lab: Lab, lab_url: str) -> Locator:
        return shown(page, lab, lab_url, 4008)

    def test_it_is_saved_as_a_chrome_trace(
        self, page: LabPage, timeline: Locator
    ) -> None:
        with page.page.expect_download() as download:
            timeline.get_by_role("button", name="Save as Chrome trace").click()
        trace = json.loads(download.value.path().read_text())
        assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 4008

    def test_axe_finds_nothing_serious(self, page: LabPage, timeline: Locator) -> None:
        timeline.get_by_role("button", name="Mark and add up").click()
        expect(timeline.get_by_role("region", name="Marked span")).to_contain_text(
            "GPU"
        )
        # a name leads to its slices, whose names are no longer
        timeline.get_by_role("button", name="Show aten::linear in the timeline").click()
        expect(timeline.get_by_role("searchbox")).to_have_value('"aten::linear"')
        expect(timeline.get_by_role("search")).to_contain_text("1,002 operators")
        expect(timeline.get_by_role("region", name="Pinned event")).to_contain_text(
            "aten::linear"
        )
        page.page.add_script_tag(path=AXE)
        report = page.page.evaluate(
            "() => axe.run({ include: [['.wb-timeline']] }, "
            "{ resultTypes: ['violations'] })"
        )
        serious = [
            (
                violation["id"],
                violation["help"],
                [node["html"][:200] for node in violation["nodes"]],
            )
            for violation in report["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_without_its_events_a_report_shows_the_longest_and_says_so(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cell = handed_in(4000, "without", whole=False)
    page.open(lab_url, lab.write_notebook("without.ipynb", [cell]))
    page.run(0)
    timeline = open_report(page, "without")
    expect(timeline).to_contain_text("Only the longest events are drawn")
    page.wait_for_figure(timeline)


def test_a_cell_hands_its_events_over(page: LabPage, lab: Lab, lab_url: str) -> None:
    cells = [
        "%load_ext warpbook",
        "%%gpuprof\nimport torch  # hands over\n"
        "for _ in range(50): torch.ones(9).sum()",
    ]
    page.open(lab_url, lab.write_notebook("hands-over.ipynb", cells))
    page.run(0)
    page.run(1)
    timeline = open_report(page, "torch.ones(9).sum()")
    page.wait_for_figure(timeline)
    expect(timeline).to_contain_text(re.compile(r"of \d+ events"))
    timeline.get_by_role("button", name="Mark and add up").click()
    selection = timeline.get_by_role("region", name="Marked span")
    expect(selection).to_contain_text("aten::sum")


def test_the_timeline_is_in_the_notebook_too(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cells = [
        "%load_ext warpbook",
        "%%gpuprof\nimport torch\nfor _ in range(50): torch.ones(9).sum()",
    ]
    page.open(lab_url, lab.write_notebook("in-notebook.ipynb", cells))
    page.run(0)
    page.run(1)
    output = page.output(1)
    expect(output.locator(".warpbook-report")).to_contain_text("aten::sum")
    output.get_by_text("Timeline and figures").click()
    timeline = output.locator(".wb-timeline")
    page.wait_for_figure(timeline)
    begin, end = seen_ms(timeline)
    timeline.get_by_role("group").focus()
    page.page.keyboard.press("+")

    def zoomed_in() -> bool | None:
        now = seen_ms(timeline)
        return now[1] - now[0] < end - begin or None

    wait_for("a nearer part", zoomed_in)
    # the notebook's own keys: m would make text of the cell, b would add one
    page.page.keyboard.press("m")
    page.page.keyboard.press("b")
    expect(timeline).to_contain_text("Marked:")
    assert len(page.cells()) == 2
    # what JupyterLab has for every place it has here, too
    page.page.keyboard.press("Control+Alt+r")
    expect(page.page.locator("[id^='warpbook-report-']")).to_be_visible()
    page.execute("application:close")
    expect(timeline.get_by_role("group")).to_be_focused()
    (saved,) = page.cells()[1]["outputs"]
    assert "aten::sum" in "".join(saved["data"]["text/html"])
    assert len(json.dumps(saved["data"])) < 100_000


def test_a_saved_report_is_shown_where_the_server_has_it_no_more(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    name = lab.write_notebook("saved-report.ipynb", ["%%gpuprof"])
    notebook = json.loads((lab.notebooks / name).read_text())
    notebook["cells"][0]["outputs"] = [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {
                "text/html": "<p>what was <b>measured</b></p><script>attack()</script>",
                "text/plain": "what was measured",
                "application/vnd.warpbook.report+json": {"id": "gone"},
            },
        }
    ]
    (lab.notebooks / name).write_text(json.dumps(notebook))
    page.open(lab_url, name)
    output = page.output(0)
    expect(output.locator("b")).to_have_text("measured")
    expect(output.get_by_text("Timeline and figures")).to_have_count(0)
