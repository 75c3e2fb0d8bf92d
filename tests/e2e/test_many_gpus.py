"""A big node on the dashboard: eight GPUs, MIG instances within one, an XID error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for
from tests.stub_nvml import LOST, XID_EVENT, StubNvml


@pytest.fixture(scope="module")
def node(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    """Seven H200s and one that is split in two instances."""
    state = tmp_path_factory.mktemp("stub") / "state"
    stub = StubNvml(stub_nvml_library, state, *["h200"] * 8)
    stub.set(7, mig=1)
    stub.make_instance(7, 0, slices=1, SM_UTIL=25)
    stub.make_instance(7, 1, slices=2, SM_UTIL=75)
    return stub


@pytest.fixture(scope="module")
def node_url(node: StubNvml, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Lab(tmp_path_factory.mktemp("node"), **node.env).serve() as url:
        yield url


@pytest.fixture(scope="module")
def page(profile: BrowserContext, node_url: str) -> Iterator[LabPage]:
    """The dashboard, for all tests of this module."""
    with fresh_page(profile) as page:
        page.open(node_url, TOUR)
        yield page


def test_all_gpus_are_seen_at_once_and_the_chosen_ones_charts_are_below(
    page: LabPage, node: StubNvml, screenshots: Path
) -> None:
    page.page.set_viewport_size({"width": 1440, "height": 900})
    tiles = page.dashboard.locator(".wb-gpu-tile")
    expect(tiles).to_have_count(8)

    def is_seen(tile: Locator) -> bool | None:
        # what a busy machine says above them goes again
        box = tile.bounding_box()
        return box is not None and box["y"] + box["height"] < 900 or None

    for tile in tiles.all():
        wait_for("a tile in sight", lambda tile=tile: is_seen(tile))
    # what is known of each, and a state where nothing is
    expect(tiles.nth(3)).to_contain_text("NVIDIA H200")
    expect(tiles.nth(3)).to_contain_text("SM 0")
    node.set(4, rc=LOST)
    expect(tiles.nth(4)).to_contain_text("lost")
    expect(tiles.nth(4)).not_to_contain_text("%")
    expect(page.status_item).to_contain_text("8 GPUs, SM mean")
    expect(page.status_item).to_contain_text("GPU 4 lost")
    node.set(4, rc=0)
    # one GPU's charts are below: the first's, until another is chosen by keyboard
    gpus = page.dashboard.locator(".wb-body > .wb-device", has_text="GPU ")
    expect(gpus).to_have_count(1)
    expect(gpus.locator("h3").first).to_contain_text("GPU 0")
    expect(gpus.locator("canvas").first).to_be_visible()
    tiles.first.focus()
    page.page.keyboard.press("End")
    # the workspace keeps who was chosen
    with page.page.expect_request(
        lambda request: (
            request.method == "PUT"
            and "warpbook:arrangement" in (request.post_data or "")
        )
    ):
        page.page.keyboard.press("Enter")
    expect(tiles.last).to_have_attribute("aria-pressed", "true")
    expect(tiles.last).to_be_focused()
    expect(tiles.last).to_contain_text("2 MIG instances")

    split = gpus.first
    expect(split.locator(".wb-device")).to_have_count(2)
    for at, share in enumerate(("25 %", "75 %")):
        instance = split.locator(".wb-device").nth(at)
        expect(instance.locator("summary").first).to_contain_text("MIG 7:")
        chip = instance.get_by_label("What the chip does", exact=True)
        page.bring_to_see(chip, chip.filter(has_text=f"SM active {share}"))
    page.page.screenshot(path=screenshots / "mig.png")
    page.reload()
    expect(tiles.last).to_have_attribute("aria-pressed", "true")
    expect(gpus.locator("h3").first).to_contain_text("GPU 7")


def test_an_xid_error_is_told_with_what_it_means_and_what_to_do(
    page: LabPage, node: StubNvml, screenshots: Path
) -> None:
    page.wait_moving(page.dashboard)
    node.ring(2, XID_EVENT, 79)
    notice = page.dashboard.locator(".wb-notice")
    expect(notice).to_contain_text("GPU 2")
    expect(notice).to_contain_text("79")
    tile = page.dashboard.locator(".wb-gpu-tile").nth(2)
    expect(tile.locator(".wb-badge")).to_have_text("LOST")
    expect(tile).to_have_attribute("title", re.compile("XID 79: .* Reboot"))
    expect(page.dashboard.locator(".wb-origin")).to_contain_text("7 of 8 GPUs")
    page.page.screenshot(path=screenshots / "xid.png")
    page.dashboard.locator(".wb-notices").get_by_text("Dismiss").click()
    expect(notice).to_have_count(0)
