"""Slices of a timeline: named, hovered over, pinned, and moved to by keys."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_timeline import open_report, shown, still_ms
from tests.programs import wait_for

#: canvases keep no text, so the page notes what is written on the newest frame
NOTE_CANVAS_TEXT = """() => {
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    const isOurs = pen => pen.canvas.className === "wb-timeline-overlay";
    window.written = [];
    CanvasRenderingContext2D.prototype.clearRect = function (...place) {
        if (isOurs(this)) window.written = [];
        return clearRect.apply(this, place);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (isOurs(this)) window.written.push(text);
        return fillText.call(this, text, ...place);
    };
}"""


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
    canvas = timeline.locator(".wb-timeline-overlay").bounding_box()
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


def test_slices_have_names_and_one_small_tooltip(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    timeline = shown(page, lab, lab_url, 4_016)
    page.page.evaluate(NOTE_CANVAS_TEXT)
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
        names = page.page.evaluate("() => window.written")
        # what has less room is cut
        is_cut = any(name.endswith("…") for name in names)
        return ("aten::linear" in names and is_cut) or None

    wait_for("names in slices", is_written)
    # from far no slice has room
    timeline.get_by_role("button", name="Show all").click()
    wait_for("no names", lambda: not page.page.evaluate("() => window.written") or None)


def pin_a_slice(page: LabPage, timeline: Locator, lane: str) -> Locator:
    """Click on a slice of a lane; give the panel with its details."""
    over_a_slice(page, timeline, lane)
    page.page.mouse.down()
    page.page.mouse.up()
    return timeline.get_by_role("region", name="Pinned event")


def test_a_click_pins_details_and_arrows_lead_from_launch_to_kernel(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    timeline = shown(page, lab, lab_url, 4_020)
    zoomed(page, timeline)
    pinned = pin_a_slice(page, timeline, "Stream 7")
    expect(pinned.get_by_role("heading")).to_contain_text("void kernel_")
    for known in ("Start", "Duration", "128 × 1 × 1", "Registers per thread", "32"):
        expect(pinned).to_contain_text(known)
    expect(pinned).to_contain_text("Launched by cudaLaunchKernel")
    canvas = timeline.locator(".wb-timeline-overlay")
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
    timeline.get_by_role("group").focus()
    page.page.keyboard.press("Escape")
    expect(pinned).to_have_count(0)


def test_keys_the_minimap_and_lanes_choose_what_is_seen(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    timeline = shown(page, lab, lab_url, 4_024)
    keys_move_and_zoom(page, timeline)
    timeline.get_by_role("button", name="Show all").click()
    the_minimap_is_dragged(page, timeline)
    a_lane_is_collapsed_and_opened(page, timeline)


def keys_move_and_zoom(page: LabPage, timeline: Locator) -> None:
    chart = timeline.get_by_role("group", name="W and S")
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
    canvas = timeline.locator(".wb-timeline-overlay")
    lane = timeline.get_by_role("button", name="Operators")

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
