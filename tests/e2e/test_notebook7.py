"""Notebook 7, which has a shell of its own: one document, and no status bar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import BASE_URL, Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_accessible import serious


@pytest.fixture
def page(page: LabPage) -> Iterator[LabPage]:
    """Notebook 7.6 has errors of its own, also without warpbook; ours count."""
    yield page
    page.errors = [error for error in page.errors if "extensions/warpbook" in error]


def test_panel_dashboard_and_widget_are_live(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    cells = ["import warpbook\nwarpbook.Monitor(gpu=0)"]
    notebook = lab.write_notebook("seven.ipynb", cells)
    url = urlsplit(lab_url)
    server = f"{url.scheme}://{url.netloc}{BASE_URL}"
    page.goto(f"{server}notebooks/{notebook}?{url.query}")
    page.run(0)
    expect(page.monitor.locator(".wb-badge")).to_have_text("REPLAY")
    page.wait_moving(page.monitor)
    page.show_panel()
    expect(page.panel.locator(".wb-gpu").first).to_contain_text("SM active")
    expect(page.panel.locator(".wb-gpu").first).to_contain_text("%")
    page.page.screenshot(path=screenshots / "notebook7-panel.png")
    page.execute("warpbook:dashboard")
    page.wait_moving(page.dashboard)
    page.page.screenshot(path=screenshots / "notebook7-dashboard.png")
    assert serious(page, ".wb-dashboard", ".wb-panel", ".wb-widget") == []


def test_the_tree_is_left_alone(page: LabPage, lab_url: str) -> None:
    url = urlsplit(lab_url)
    page.page.goto(f"{url.scheme}://{url.netloc}{BASE_URL}tree?{url.query}")
    expect(page.page.get_by_role("tab", name="Running")).to_be_visible()
