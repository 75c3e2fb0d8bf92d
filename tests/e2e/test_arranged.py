"""What a person arranges on the dashboard: lines, places, full screen, alert rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

ATTACK = "<img src=x onerror=window.attacked=1>"
MONITOR = "import warpbook\nwarpbook.Monitor(gpu=0)"


@pytest.fixture
def new_lab(tmp_path: Path) -> Lab:
    """A server that nobody has looked at: what is drawn at first it did not read."""
    return Lab(tmp_path / "new")


def titles(page: LabPage) -> Locator:
    """Of the charts of the chosen GPU, as they stand."""
    return page.dashboard.locator(".wb-grid-gpu").first.locator("h4")


def shows_history(plot: Locator) -> bool:
    """Whether the left half of a chart has lines in it, and not only its grid."""
    return bool(
        plot.locator("canvas").evaluate(
            """canvas => {
                const { width: w, height: h } = canvas;
                const { data } = canvas.getContext("2d").getImageData(
                    w * 0.25, 0, w * 0.25, h);
                for (let at = 0; at < data.length; at += 4) {
                    const [red, green, blue, alpha] = data.slice(at, at + 4);
                    const least = Math.min(red, green, blue);
                    if (alpha > 200 && Math.max(red, green, blue) - least > 60) {
                        return true;
                    }
                }
                return false;
            }"""
        )
    )


def test_charts_are_filled_and_arranged_and_rules_are_edited(
    page: LabPage, new_lab: Lab, screenshots: Path
) -> None:
    lab = new_lab
    with lab.serve() as url:
        page.open(url, lab.write_notebook("arranged.ipynb", [MONITOR]))
        page.run(0)
        arrange(page, lab, screenshots)
    page.forgive_lost_server()


def arrange(page: LabPage, lab: Lab, screenshots: Path) -> None:
    page.wait_moving(page.dashboard)
    board = page.dashboard
    chip = board.get_by_label("What the chip does", exact=True).first
    # the recording's past is there at first sight: it was sent, and is drawn
    hello = next(message for message in page.received if message["type"] == "hello")
    past_ms = hello["time_ms"] - 20_000
    frames = [message for message in page.received if message["type"] == "frame"]
    assert any(frame["time_ms"] < past_ms for frame in frames)
    plot = chip.locator(".wb-plot")
    wait_for("what was before", lambda: shows_history(plot) or None)

    # a line is hidden by its name, by pointer and by keyboard
    tensor = chip.get_by_role("button", name="Tensor")
    tensor.click()
    expect(tensor).to_have_attribute("aria-pressed", "false")
    dram = chip.get_by_role("button", name="DRAM")
    dram.focus()
    page.page.keyboard.press("Enter")
    expect(dram).to_have_attribute("aria-pressed", "false")
    plot.focus()
    described = plot.get_attribute("aria-label") or ""
    assert "SM active" in described and "Tensor" not in described

    # over the whole page, and back by Escape
    page.page.keyboard.press("f")
    full = page.page.locator("dialog.wb-full")
    expect(full.locator("canvas")).to_be_visible()
    page.page.screenshot(path=screenshots / "full-screen.png")
    page.page.keyboard.press("Escape")
    expect(full).to_be_hidden()
    expect(chip.locator(".wb-plot")).to_be_focused()

    # to another place, by keyboard and by hand
    before = titles(page).all_inner_texts()
    page.page.keyboard.press("Shift+ArrowDown")
    moved = [before[0], before[2], before[1], *before[3:]]
    expect(titles(page)).to_have_text(moved)
    expect(chip.locator(".wb-plot")).to_be_focused()
    power = board.get_by_label("Power", exact=True).first
    nvml = board.get_by_label("NVML says", exact=True).first
    power.locator(".wb-tile-head").drag_to(nvml)
    expect(titles(page)).to_have_text(
        ["Power", *(name for name in moved if name != "Power")]
    )

    rules = board.locator(".wb-rules")
    rules.locator("summary").click()
    rules.get_by_role("button", name="Add a rule").click()
    rules.get_by_label("Name").fill("two words")
    rules.get_by_label("Title of the alert").fill(ATTACK)
    rules.get_by_label("Metric").select_option("memory_used_bytes")
    rules.get_by_label("Threshold").fill("80")
    rules.get_by_role("button", name="Save").click()
    expect(rules.get_by_role("alert").first).to_contain_text("letters, digits")
    rules.get_by_label("Name").fill("arranged")
    rules.get_by_role("button", name="Save").click()
    row = rules.locator("li", has_text="arranged")
    expect(row).to_contain_text(ATTACK)
    expect(row).to_contain_text("above 80\u00a0GiB")
    file = lab.home / ".jupyter" / "warpbook-alerts.toml"
    assert "above = 85899345920" in file.read_text()
    page.page.screenshot(path=screenshots / "rules.png")
    row.get_by_role("checkbox").uncheck()
    expect(rules.get_by_text("arranged is off.")).to_be_visible()
    assert "enabled = false" in file.read_text()
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Yes").click()
    expect(row).to_have_count(0)
    assert "arranged" not in file.read_text()
    assert page.page.evaluate("() => window.attacked") is None

    # the workspace keeps it; a Monitor without its kernel shows what it showed
    page.page.get_by_role("tab", name="arranged.ipynb").click()
    page.execute("docmanager:save")
    page.shut_down_kernel()
    page.reload()
    expect(tensor).to_have_attribute("aria-pressed", "false")
    expect(titles(page).first).to_have_text("Power")
    output = page.output(0)
    expect(output).to_contain_text("The Monitor's figures when its cell ran")
    expect(output).to_contain_text("REPLAY")
    expect(output).not_to_contain_text("model not found")
    page.errors = [error for error in page.errors if "model not found" not in error]
