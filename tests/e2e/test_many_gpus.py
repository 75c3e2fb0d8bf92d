"""A big node on the dashboard: eight GPUs, MIG instances within one, an XID error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import TOUR, Lab, LabPage
from tests.stub_nvml import XID_EVENT, StubNvml


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


def test_only_what_is_unfolded_is_drawn_and_instances_are_in_their_gpu(
    page: LabPage, node_url: str, screenshots: Path
) -> None:
    page.open(node_url, TOUR)
    gpus = page.dashboard.locator(".wb-body > .wb-device", has_text="GPU ")
    expect(gpus).to_have_count(8)
    expect(gpus.first.locator("canvas").first).to_be_visible()
    expect(page.dashboard.locator(".wb-device .wb-device")).to_have_count(2)
    assert gpus.nth(3).locator("canvas").count() == 0
    folded = gpus.nth(3).locator("summary").first
    page.bring_to_see(folded, folded.filter(has_text="SM 0"))

    split = gpus.last
    split.locator("summary").first.click()
    for at, share in enumerate(("25 %", "75 %")):
        instance = split.locator(".wb-device").nth(at)
        expect(instance.locator("summary").first).to_contain_text("MIG 7:")
        if instance.get_attribute("open") is None:
            instance.locator("summary").first.click()
        chip = instance.get_by_label("What the chip does", exact=True)
        page.bring_to_see(chip, chip.filter(has_text=f"SM active {share}"))
    page.page.screenshot(path=screenshots / "mig.png")


def test_an_xid_error_is_told_with_what_it_means_and_what_to_do(
    page: LabPage, node: StubNvml, node_url: str, screenshots: Path
) -> None:
    page.open(node_url, TOUR)
    page.wait_moving(page.dashboard)
    node.ring(2, XID_EVENT, 79)
    notice = page.dashboard.locator(".wb-notice")
    expect(notice).to_contain_text("GPU 2")
    expect(notice).to_contain_text("79")
    page.page.screenshot(path=screenshots / "xid.png")
    page.dashboard.locator(".wb-notices").get_by_text("Dismiss").click()
    expect(notice).to_have_count(0)
