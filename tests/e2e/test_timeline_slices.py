"""Slices of a timeline: named, hovered over, pinned, and moved to by keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_timeline import open_report, seen_ms, shown, still_box, still_ms
from tests.many_events import simulated
from tests.programs import wait_for
from warpbook_profiler.events.columns import Category

EVENTS = 4_028
#: canvases keep neither texts nor bars: the page notes those of the newest frame
NOTE_CANVAS = """() => {
    const { clearRect, fillText, fillRect } = CanvasRenderingContext2D.prototype;
    const isOurs = pen => pen.canvas.className === "wb-timeline-canvas";
    window.written = [];
    window.bars = [];
    CanvasRenderingContext2D.prototype.clearRect = function (...place) {
        if (isOurs(this)) window.written = [], window.bars = [];
        return clearRect.apply(this, place);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (isOurs(this)) window.written.push(text);
        return fillText.call(this, text, ...place);
    };
    CanvasRenderingContext2D.prototype.fillRect = function (...place) {
        if (isOurs(this)) window.bars.push(place);
        return fillRect.apply(this, place);
    };
}"""


def names_written(page: LabPage) -> list[str]:
    """Names in slices on the newest frame; the rest are times on the axis."""
    written = page.page.evaluate("() => window.written")
    return [text for text in written if "\xa0" not in text]


def zoomed(page: LabPage, timeline: Locator, times: int = 8) -> None:
    """Come so near that slices stand apart."""
    for _ in range(times):
        timeline.get_by_role("button", name="Zoom in").click()
    still_ms(page, timeline)
    page.wait_for_figure(timeline)


def middle_of_lane(timeline: Locator, lane: str) -> tuple[float, float]:
    """Where the middle of a lane's first row is on the page."""
    head = timeline.locator(".wb-timeline-lane", has_text=lane)
    head.scroll_into_view_if_needed()
    canvas = timeline.locator(".wb-timeline-canvas").bounding_box()
    label = head.bounding_box()
    assert canvas and label
    return canvas["x"] + canvas["width"] / 2, label["y"] + label["height"] / 2


def over_a_slice(page: LabPage, timeline: Locator, lane: str) -> Locator:
    """Move the mouse over a slice near the middle of a lane; give the tooltip."""
    tooltip = page.page.get_by_role("tooltip")
    x, y = middle_of_lane(timeline, lane)

    def met() -> bool | None:
        for away in range(0, 200, 5):
            page.page.mouse.move(x + away, y)
            if tooltip.is_visible():
                return True
        return None

    wait_for(f"a slice in {lane}", met)
    return tooltip


def pin_a_slice(page: LabPage, timeline: Locator, lane: str) -> Locator:
    """Click on a slice of a lane; give the panel with its details."""
    over_a_slice(page, timeline, lane)
    page.page.mouse.down()
    page.page.mouse.up()
    return timeline.get_by_role("region", name="Pinned event")


class TestOneTimeline:
    """A timeline that is drawn once."""

    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, profile: BrowserContext) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            yield page

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls, page: LabPage, lab: Lab, lab_url: str) -> Locator:
        timeline = shown(page, lab, lab_url, EVENTS)
        page.page.evaluate(NOTE_CANVAS)
        return timeline

    @pytest.fixture
    def timeline(self, page: LabPage, drawn: Locator) -> Locator:
        """All of it is seen, and the mouse is elsewhere."""
        page.page.mouse.move(5, 5)
        drawn.get_by_role("button", name="Show all").click()
        return drawn

    def test_bars_are_as_wide_as_their_events_at_each_zoom(
        self, page: LabPage, timeline: Locator
    ) -> None:
        columns, run = simulated(EVENTS)
        start_ns = columns.start_ns - run.start_ns
        end_ns = start_ns + columns.duration_ns
        last_ns = int(end_ns.max())
        page.page.mouse.move(0, 0)
        timeline.get_by_role("group").focus()
        place = still_box(page, timeline)

        def drawn(lane: str, row: int = 0) -> list[tuple[float, float]]:
            """Left and right edges of the bars of a row, but for those that are cut."""
            label = timeline.locator(".wb-timeline-lane", has_text=lane).bounding_box()
            assert label
            middle = label["y"] + label["height"] / 2 + 20 * row - place["y"]
            return [
                (left, left + width)
                for left, top, width, height in page.page.evaluate("() => window.bars")
                if top <= middle < top + height < top + 20
                if left > 0 and left + width < place["width"]
            ]

        page.page.keyboard.press("0")
        for zoom in (2, 2, 2, 1):
            for _ in range(zoom):
                page.page.keyboard.press("w")
            # halved around its middle each time; it has come, and is drawn
            last_ns /= 2**zoom
            begin_ns = (int(end_ns.max()) - last_ns) / 2
            still_ms(page, timeline)
            per_ns = place["width"] / last_ns
            chosen = (columns.category == Category.KERNEL) & (columns.track == 7)
            lefts = (start_ns[chosen] - begin_ns) * per_ns
            rights = (end_ns[chosen] - begin_ns) * per_ns
            # as far as they are drawn whole, in whole pixels
            first = np.floor(lefts + 0.5)
            last = np.maximum(np.floor(rights + 0.5), first + 1)
            seen = (first > 0) & (last < place["width"])
            expected = np.maximum(rights - lefts, 1)[seen]
            bars = drawn("Stream 7")
            assert len(bars) == len(expected)
            for (left, right), length in zip(bars, expected, strict=True):
                assert abs(right - left - length) <= 1
            outer = drawn("Operators")
            for left, right in drawn("Operators", 1):
                # the least width may reach a pixel further than its parent
                assert any(
                    a <= left and right <= b + 1 and right - left <= b - a
                    for a, b in outer
                ) or (left < outer[0][0] or right > outer[-1][1])
        # the tooltip knows what is drawn, and nothing beside it
        tooltip = page.page.get_by_role("tooltip")
        _, y = middle_of_lane(timeline, "Stream 7")
        (left, right), (following, _) = max(
            zip(bars, bars[1:], strict=False), key=lambda pair: pair[1][0] - pair[0][1]
        )
        assert following - right > 4
        page.page.mouse.move(place["x"] + (left + right) / 2, y)
        expect(tooltip).to_be_visible()
        page.page.mouse.move(place["x"] + (right + following) / 2, y)
        expect(tooltip).not_to_be_visible()

    def test_a_click_pins_details_and_arrows_lead_from_launch_to_kernel(
        self, page: LabPage, timeline: Locator
    ) -> None:
        zoomed(page, timeline)
        pinned = pin_a_slice(page, timeline, "Stream 7")
        expect(pinned.get_by_role("heading")).to_contain_text("void kernel_")
        for known in ("Start", "Duration", "128 × 1 × 1", "Registers per thread", "32"):
            expect(pinned).to_contain_text(known)
        expect(pinned).to_contain_text("Launched by cudaLaunchKernel")
        canvas = timeline.locator(".wb-timeline-canvas")
        expect(canvas).to_have_attribute("data-arrows", "1")

        # it stays while the mouse is elsewhere, until another is clicked
        page.page.mouse.move(5, 5)
        expect(page.page.get_by_role("tooltip")).not_to_be_visible()
        pinned.get_by_role("button", name="cudaLaunchKernel").click()
        expect(pinned.get_by_role("heading")).to_have_text("cudaLaunchKernel")
        expect(pinned).to_contain_text("Launched void kernel_")
        expect(canvas).to_have_attribute("data-arrows", "1")

        pin_a_slice(page, timeline, "Operators")
        expect(pinned.get_by_role("heading")).to_have_text("aten::linear")
        expect(pinned).to_contain_text("BFloat16 [64, 128]")
        expect(canvas).to_have_attribute("data-arrows", "0")
        # the event after it, though what is seen is far away
        start = pinned.locator("dt", has_text="Start").locator("+ dd")
        before = start.inner_text()
        timeline.get_by_role("group").focus()
        for _ in range(20):
            page.page.keyboard.press("a" if seen_ms(timeline)[0] > 0 else "d")
        page.page.keyboard.press(".")
        expect(start).not_to_have_text(before)
        expect(pinned.get_by_role("heading")).to_have_text("aten::linear")
        page.page.keyboard.press("Escape")
        expect(pinned).to_have_count(0)

    def test_keys_the_minimap_and_lanes_choose_what_is_seen(
        self, page: LabPage, timeline: Locator
    ) -> None:
        keys_move_and_zoom(page, timeline)
        timeline.get_by_role("button", name="Show all").click()
        the_minimap_is_dragged(page, timeline)
        a_lane_is_collapsed_and_opened(page, timeline)

    def test_slices_have_names_and_one_small_tooltip(
        self, page: LabPage, timeline: Locator
    ) -> None:
        # the verdict takes one line here, and more when it is asked for
        verdict = page.drawer.locator(".wb-report-head > summary")
        line = verdict.bounding_box()
        assert line and line["height"] < 40
        expect(page.drawer.get_by_text("Launches", exact=True)).not_to_be_visible()
        verdict.click()
        expect(page.drawer.get_by_text("Launches", exact=True)).to_be_visible()
        # hundreds of events share a pixel here
        tooltip = over_a_slice(page, timeline, "CUDA calls")
        expect(tooltip).to_contain_text("cudaLaunchKernel")
        expect(tooltip).to_contain_text(re.compile(r"and \d+ more here|\d+ events"))
        place = tooltip.bounding_box()
        assert place
        assert place["height"] < 150
        assert place["y"] + place["height"] <= 1000
        zoomed(page, timeline)
        tooltip = over_a_slice(page, timeline, "Stream 7")
        # the name in full, which the slice cuts
        expect(tooltip).to_contain_text(re.compile(r"void kernel_\d+<float, \d+>"))
        expect(tooltip).not_to_contain_text("more here")

        def is_written() -> bool | None:
            names = names_written(page)
            # what has less room is cut
            is_cut = any(name.endswith("…") for name in names)
            return ("aten::linear" in names and is_cut) or None

        wait_for("names in slices", is_written)
        # from far no slice has room
        timeline.get_by_role("button", name="Show all").click()
        wait_for("no names", lambda: not names_written(page) or None)


def keys_move_and_zoom(page: LabPage, timeline: Locator) -> None:
    chart = timeline.get_by_role("group", name="Events over time")
    chart.focus()

    def seen_after(key: str) -> tuple[float, float]:
        page.page.keyboard.press(key)
        return still_ms(page, timeline)

    for closer, further, later, earlier in ("wsda", ("Up", "Down", "Right", "Left")):
        arrow = "" if len(closer) == 1 else "Arrow"
        page.page.keyboard.press("0")
        begin, end = still_ms(page, timeline)
        near = seen_after(arrow + closer)
        assert near[1] - near[0] < 0.6 * (end - begin)
        assert seen_after(arrow + later)[0] > near[0]
        back = seen_after(arrow + earlier)
        assert abs(back[0] - near[0]) < 0.01 * (end - begin)
        far = seen_after(arrow + further)
        assert far[1] - far[0] > 1.5 * (near[1] - near[0])


def the_minimap_is_dragged(page: LabPage, timeline: Locator) -> None:
    zoomed(page, timeline, 3)
    before = still_ms(page, timeline)
    frame = timeline.locator(".wb-minimap-frame").bounding_box()
    strip = timeline.get_by_role("img", name="The whole run").bounding_box()
    assert frame and strip
    assert frame["width"] < 0.2 * strip["width"]
    y = frame["y"] + frame["height"] / 2
    page.page.mouse.move(frame["x"] + frame["width"] / 2, y)
    page.page.mouse.down()
    page.page.mouse.move(strip["x"] + 0.8 * strip["width"], y, steps=5)
    page.page.mouse.up()
    after = still_ms(page, timeline)
    assert after[0] > before[0]
    # as much is seen as before
    length = after[1] - after[0]
    assert abs(length - (before[1] - before[0])) < 0.05 * length


def a_lane_is_collapsed_and_opened(page: LabPage, timeline: Locator) -> None:
    canvas = timeline.locator(".wb-timeline-canvas")
    lane = timeline.locator(".wb-timeline-lane", has_text="Operators")

    def height() -> float:
        page.page.wait_for_timeout(500)
        place = canvas.bounding_box()
        assert place
        return place["height"]

    whole = height()
    lane.click()
    expect(lane).to_have_attribute("aria-expanded", "false")
    wait_for("fewer rows", lambda: height() < whole - 15 or None)
    lane.press("Enter")
    expect(lane).to_have_attribute("aria-expanded", "true")
    wait_for("all rows", lambda: height() > whole - 2 or None)
    # pinned it stands above the others, and keeps the focus
    lane.press("p")
    expect(timeline.locator(".wb-timeline-lane").first).to_have_text("Operators")
    expect(lane).to_be_focused()
    pin = timeline.get_by_role("button", name="Pin Operators to the top")
    expect(pin).to_have_attribute("aria-pressed", "true")
    pin.click()
    expect(timeline.locator(".wb-timeline-lane").first).to_have_text("Stream 7")


def test_a_cell_of_plain_python_has_a_sentence_instead_of_a_chart(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cells = ["%load_ext warpbook", "%%gpuprof\nsum(range(1000))  # plain Python"]
    page.open(lab_url, lab.write_notebook("plain-python.ipynb", cells))
    page.run(0)
    page.run(1)
    output = page.output(1)
    expect(output).to_contain_text("No timeline: nothing ran on a GPU")
    expect(output.get_by_text("Timeline and figures")).to_have_count(0)
    timeline = open_report(page, "sum(range(1000))")
    expect(timeline).to_contain_text("No timeline: nothing ran on a GPU")
    expect(timeline.locator(".wb-figure")).to_have_count(0)
