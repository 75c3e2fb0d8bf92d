"""What comes back after a reload, a restart of the server, or a hidden tab."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

#: times of the rows that the page holds, and of those that the server has
ROWS = """() => {
    const { store } = window[Symbol.for("warpbook.stream.v5")];
    return [...store.times(...store.range(0, Infinity))];
}"""
RING = """async () => {
    const base = JSON.parse(
        document.getElementById("jupyter-config-data").textContent).baseUrl;
    const path = `${base}warpbook/api/v1/history/export?format=jsonl`;
    const lines = (await (await fetch(path)).text()).trim().split("\\n");
    return lines.map(line => JSON.parse(line))
        .filter(({ type }) => type === "frame").map(({ time_ms }) => time_ms);
}"""


def grow(page: LabPage, frames: int = 30) -> None:
    """Wait until so many more frames have come, with the dashboard's past."""
    # the status bar alone asks for no past
    expect(page.dashboard).to_be_visible()
    before = page.frames
    wait_for(
        f"{frames} more frames",
        lambda: (
            page.page.wait_for_timeout(100) or page.frames - before >= frames or None
        ),
    )


def assert_holds_the_ring(page: LabPage) -> None:
    """Every frame that the server has and the window reaches is a row of the page."""

    def recent_ring() -> set[float] | None:
        # the dashboard asks for its window, one minute
        ring = page.page.evaluate(RING)
        recent = {time_ms for time_ms in ring if time_ms > max(ring) - 50_000}
        return recent if len(recent) > 20 else None

    recent = wait_for("recent frames of the server", recent_ring)

    def has_all() -> bool | None:
        page.page.wait_for_timeout(100)
        return recent <= set(page.page.evaluate(ROWS)) or None

    # the past comes in many messages, and new frames between them
    wait_for("every recent frame of the server", has_all)


def test_a_reload_and_a_hidden_tab_lose_no_row(page: LabPage, lab_url: str) -> None:
    page.open(lab_url, TOUR)
    grow(page)
    newest = wait_for("rows", lambda: page.page.evaluate(ROWS) or None)[-1]
    page.reload()
    grow(page)

    def goes_back() -> bool | None:
        rows = page.page.evaluate(ROWS)
        return bool(rows and rows[0] < newest) or None

    wait_for("rows from before the reload", goes_back)
    assert_holds_the_ring(page)
    page.wait_moving(page.dashboard)
    # a hidden tab makes no traffic but alerts
    page.show_panel()
    grow(page)
    show(page, False)
    page.wait_quiet()
    page.received.clear()
    sent = len(page.sent)
    page.page.wait_for_timeout(6_000)
    assert {message["type"] for message in page.received} <= {"alerts"}
    assert len(page.sent) == sent
    show(page, True)
    grow(page)
    assert_holds_the_ring(page)
    page.wait_moving(page.dashboard)


def test_the_page_says_that_the_server_is_away_and_keeps_what_was_seen(
    page: LabPage, tmp_path: Path
) -> None:
    lab = Lab(tmp_path)
    with lab.serve() as url:
        page.open(url, TOUR)
        page.show_panel()
        grow(page)
        before = wait_for("rows", lambda: page.page.evaluate(ROWS) or None)
        expect(page.status_item).to_contain_text("Replay: GPU 0 SM")
    expect(page.status_item).to_have_text("GPU: disconnected")
    for view in (page.panel, page.dashboard):
        expect(view.locator(".wb-connection")).to_contain_text("Trying again.")
    host = page.dashboard.locator(".wb-device").last
    expect(host.locator(".wb-badge")).to_have_text("STALE")
    expect(host.locator(".wb-device-state")).to_contain_text("Trying again.")
    with lab.serve():
        expect(page.status_item).to_contain_text("Replay: GPU 0 SM")
        for view in (page.panel, page.dashboard):
            expect(view.locator(".wb-connection [role=status]")).to_be_empty()
        grow(page)
        rows = page.page.evaluate(ROWS)
        assert [row for row in before if row not in rows] == []
        assert_holds_the_ring(page)
        page.wait_moving(page.dashboard)
        expect(host.locator(".wb-badge")).to_have_text("LIVE")
        page.shut_down_kernel()
    page.forgive_lost_server()


def show(page: LabPage, shown: bool) -> None:
    """Hide the page or bring it back, as far as it can tell: no headless tab hides."""
    page.page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", {
                configurable: true, get: () => hidden
            });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        not shown,
    )
