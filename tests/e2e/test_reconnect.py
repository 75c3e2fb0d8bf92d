"""A server that goes away and comes back."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage


def test_the_page_says_that_it_is_disconnected_and_comes_back(
    page: LabPage, tmp_path: Path
) -> None:
    lab = Lab(tmp_path)
    with lab.serve() as url:
        page.open(url, TOUR)
        expect(page.status_item).to_contain_text("Replay: GPU 0 SM")
    expect(page.status_item).to_have_text("GPU: disconnected")
    expect(page.dashboard.locator(".wb-connection")).to_contain_text("Trying again.")
    host = page.dashboard.locator(".wb-device").last
    expect(host.locator(".wb-badge")).to_have_text("STALE")
    expect(host.locator(".wb-device-state")).to_contain_text("Trying again.")
    with lab.serve():
        expect(page.status_item).to_contain_text("Replay: GPU 0 SM")
        expect(page.dashboard.locator(".wb-connection [role=status]")).to_be_empty()
        page.wait_moving(page.dashboard)
        expect(host.locator(".wb-badge")).to_have_text("LIVE")
        page.shut_down_kernel()
    page.forgive_lost_server()
