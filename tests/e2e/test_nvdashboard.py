"""jupyterlab-nvdashboard's own prebuilt front end, as released, on our routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, WebSocket, expect

from tests.e2e.lab import BASE_URL, TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import ROOT, wait_for
from tests.stub_nvml import StubNvml

PEER = ROOT / ".cache" / "nvdashboard"
BAR, LINE = ".recharts-bar-rectangle path", ".recharts-line-curve"
#: its panels, in the order of its buttons: id, route, and what each draws
PANELS = [
    ("gpu-memory-widget", "gpu_usage", BAR),
    ("gpu-utilization-widget", "gpu_utilization", BAR),
    ("gpu-resource-widget", "gpu_resource", LINE),
    ("machine-resource-widget", "cpu_resource", LINE),
    ("pci-throughput-widget", "pci_stats", BAR),
    ("nvlink-throughput-widget", "nvlink_throughput", BAR),
    ("nvlink-throughput-timeseries-widget", "nvlink_throughput", LINE),
]


@pytest.fixture(scope="module")
def stub(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    state = tmp_path_factory.mktemp("stub") / "state"
    stub = StubNvml(stub_nvml_library, state, "h200", "h200")
    for gpu in range(2):
        stub.set(gpu, utilization_percent=40, memory_used_bytes=30 << 30)
        stub.set_gpm(gpu, PCIE_TX_PER_SEC=500, PCIE_RX_PER_SEC=700)
        stub.set_gpm(gpu, NVLINK_TOTAL_TX_PER_SEC=5000, NVLINK_TOTAL_RX_PER_SEC=7000)
    return stub


@pytest.fixture(scope="module")
def peer_url(stub: StubNvml, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A lab with the peer's files on the path of JupyterLab extensions, and no more."""
    assert PEER.exists(), f"there is no {PEER}: run `make setup-test`"
    folder = tmp_path_factory.mktemp("peer")
    lab = Lab(folder, JUPYTER_PATH=str(PEER / "share" / "jupyter"), **stub.env)
    settings = folder / "home" / ".jupyter" / "jupyter_server_config.json"
    settings.write_text(json.dumps({"WarpbookApp": {"nvdashboard_routes": True}}))
    with lab.serve() as url:
        yield url


def test_all_panels_of_the_peers_front_end_draw_what_we_read(
    page: LabPage, peer_url: str, stub: StubNvml
) -> None:
    samples: dict[str, int] = {}

    def follow(socket: WebSocket) -> None:
        path = urlsplit(socket.url).path
        if not path.startswith(f"{BASE_URL}nvdashboard/"):
            return
        route = path.rpartition("/")[2]

        def count(message: str | bytes) -> None:
            samples[route] = samples.get(route, 0) + ("status" not in str(message))

        socket.on("framereceived", count)

    page.page.on("websocket", follow)
    page.open(peer_url, TOUR)
    page.page.evaluate("() => window.jupyterapp.shell.activateById('gpu-dashboard')")
    buttons = page.page.locator("#gpu-dashboard .gpu-dashboard-container > button")
    expect(buttons).to_have_count(len(PANELS))
    # one after the other: what nobody sees isn't drawn
    for number, (name, route, mark) in enumerate(PANELS):
        before = samples.get(route, 0)
        buttons.nth(number).click()
        panel = page.page.locator(f"#{name}")
        expect(panel.locator(mark).first).to_be_attached()
        more = partial(arrived, page, samples, route, before)
        wait_for(f"samples of {route}", more)
        if mark == LINE:
            move = partial(moves, page, panel, stub, cycle((50, 40)))
            wait_for(f"lines of {name} that move", move)


def arrived(
    page: LabPage, samples: dict[str, int], route: str, before: int
) -> bool | None:
    page.page.wait_for_timeout(100)
    return samples.get(route, 0) - before > 5 or None


def moves(
    page: LabPage, panel: Locator, stub: StubNvml, shares: Iterator[int]
) -> bool | None:
    """Whether the lines are drawn anew within a moment.

    A line of one value stands still once it goes from one edge to the other.
    """
    share = next(shares)
    stub.set(0, utilization_percent=share)
    stub.set_gpm(0, NVLINK_TOTAL_TX_PER_SEC=100 * share)

    def drawn() -> list[str]:
        return panel.locator(LINE).evaluate_all(
            "lines => lines.map(line => line.getAttribute('d'))"
        )

    first = drawn()
    page.page.wait_for_timeout(300)
    return drawn() != first or None
