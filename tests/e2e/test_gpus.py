"""GPUs of this machine, as the stub library gives them: one without GPM, one lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.stub_nvml import LOST, StubNvml


@pytest.fixture(scope="module")
def stub(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    state = tmp_path_factory.mktemp("stub") / "state"
    return StubNvml(stub_nvml_library, state, "a100", "h200")


@pytest.fixture(scope="module")
def live_url(stub: StubNvml, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Lab(tmp_path_factory.mktemp("live"), **stub.env).serve() as url:
        yield url


@pytest.fixture(scope="module")
def page(profile: BrowserContext, live_url: str) -> Iterator[LabPage]:
    """The dashboard, for all tests of this module."""
    with fresh_page(profile) as page:
        page.open(live_url, TOUR)
        yield page


def test_a_gpu_without_gpm_says_in_words_what_is_missing(page: LabPage) -> None:
    a100 = h200 = page.dashboard.locator(".wb-device").first
    expect(a100.locator("summary").first).to_contain_text("A100")
    # said once, and no chart without a line
    expect(a100.locator(".wb-missing li", has_text="GPM")).to_have_count(1)
    expect(a100.get_by_label("What the chip does", exact=True)).to_have_count(0)
    for title in ("NVML says", "Memory", "Power", "PCIe", "Clocks"):
        chart = a100.get_by_label(title, exact=True)
        page.bring_to_see(chart, chart.locator("canvas"))
    tiles = page.dashboard.locator(".wb-gpu-tile")
    expect(tiles.first).to_contain_text("GPU util. (NVML)")
    tiles.last.click()
    chip = h200.get_by_label("What the chip does", exact=True)
    page.bring_to_see(chip, chip.filter(has_text="%"))
    # header, two tiles, the chosen GPU, the host
    expect(page.dashboard.locator(".wb-badge-live")).to_have_text(["LIVE"] * 5)
    expect(page.status_item).to_contain_text("(NVML)")
    for view in (page.status_item, page.dashboard):
        expect(view).not_to_contain_text("replay", ignore_case=True)


def test_a_lost_gpu_says_so_and_the_others_go_on(page: LabPage, stub: StubNvml) -> None:
    gpu, host = (page.dashboard.locator(".wb-device").nth(n) for n in range(2))
    a100, h200 = (page.dashboard.locator(".wb-gpu-tile").nth(n) for n in range(2))
    state = gpu.locator(".wb-device-state")
    h200.click()
    expect(gpu.locator("canvas").first).to_be_visible()
    expect(state).to_be_hidden()
    stub.set(1, rc=LOST)
    expect(state).to_contain_text("GPU 1: lost")
    expect(gpu.locator("summary .wb-badge").first).to_have_text("LOST")
    expect(h200.locator(".wb-badge")).to_have_text("LOST")
    expect(page.status_item).to_contain_text("GPU 1 lost")
    expect(a100.locator(".wb-badge")).to_have_text("LIVE")
    expect(host.locator(".wb-device-state")).to_be_hidden()
    a100.click()
    expect(state).to_be_hidden()
    stub.set(0, power_mw=123_000)
    power = gpu.get_by_label("Power", exact=True)
    page.bring_to_see(power, power.filter(has_text="123 W"))
    page.wait_moving(gpu)
    page.wait_moving(host)
