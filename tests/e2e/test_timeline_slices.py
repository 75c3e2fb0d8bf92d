"""Slices of a timeline: named, hovered over, pinned, and moved to by keys."""

from __future__ import annotations

from playwright.sync_api import Locator

from tests.e2e.lab import Lab, LabPage
from tests.e2e.test_timeline import shown, still_ms
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


def test_slices_with_room_have_their_names(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    timeline = shown(page, lab, lab_url, 4_012)
    page.page.evaluate(NOTE_CANVAS_TEXT)
    zoomed(page, timeline, 8)

    def written() -> list[str] | None:
        return page.page.evaluate("() => window.written") or None

    names = wait_for("names in slices", written)
    assert "aten::linear" in names
    # what has less room is cut
    assert any(name.endswith("…") for name in names)
    # from far no slice has room
    timeline.get_by_role("button", name="Show all").click()
    wait_for("no names", lambda: not page.page.evaluate("() => window.written") or None)
