"""A long cell under `%%gpuprof --live`: its report grows while it runs."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

PREPARE = """\
%load_ext warpbook
import time, torch
from pathlib import Path
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train():
    optimizer.zero_grad()
    model(torch.ones(8, 32)).sum().backward()
    optimizer.step()
    time.sleep(0.002)"""
TRAIN = """\
%%gpuprof --live --share 0.5
while not Path("enough").exists(): train()
for _ in range(20): train()"""


def test_a_report_grows_while_its_cell_runs(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    page.open(lab_url, lab.write_notebook("long.ipynb", [PREPARE, TRAIN]))
    page.run(0)
    page.run(1, wait=False)

    # in the notebook one line, changed in place
    line = page.output(1).locator(".warpbook-receipt")
    expect(line).to_contain_text(re.compile(r"windows · [a-z-]+ · profiling took"))
    expect(line).to_have_count(1)

    # in the list it is marked, and its report opens by keyboard
    reports = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    row = reports.locator("tr", has_text="train()").first
    expect(row).to_contain_text("running")
    row.get_by_role("button").focus()
    page.page.keyboard.press("Enter")
    live = page.drawer.get_by_role("region", name="Live profile")
    expect(live.get_by_role("status")).to_have_text("Running.")

    table = live.locator("table", has=page.page.locator("caption", has_text="Windows"))

    def more_windows(more: int) -> None:
        """Wait for them by their number: of many the older ones share a row."""

        def shown_windows() -> int:
            return int(re.sub(r"\D", "", table.locator("caption").inner_text()))

        before = shown_windows()
        wait_for("more windows", lambda: shown_windows() >= before + more or None)

    more_windows(2)
    expect(table.locator("tbody tr").nth(1)).to_be_visible()
    expect(live).to_contain_text("reported by optimizer")
    expect(live).to_contain_text("aim: below 50")
    chart = live.get_by_role("img")
    assert "the table of windows has the values" in str(
        chart.get_attribute("aria-label")
    )
    assert chart.locator("rect").count() >= 2
    # what the newest window holds is there, and grows with it
    expect(live.locator(".wb-live-newest")).to_contain_text("aten::addmm")
    page.page.screenshot(path=screenshots / "live-cell.png")

    # the focus stays in the list although it is written anew
    opener = row.get_by_role("button")
    opener.focus()
    more_windows(1)
    expect(opener).to_be_focused()

    (lab.notebooks / "enough").touch()
    page.wait_idle()
    # who reads elsewhere sees the whole report at once
    expect(live.get_by_role("status")).to_have_text("Ended.")
    expect(row).not_to_contain_text("running")
    expect(line).to_contain_text("steps")
    expect(page.output(1)).to_contain_text("reported by an optimizer")
