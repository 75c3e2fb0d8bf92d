"""`Monitor()` on a page whose Jupyter server has no warpbook: the kernel reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.stub_nvml import StubNvml

CELLS = [
    "import warpbook\nwarpbook.Monitor(gpu=0)",
    "import pathlib, time\nwhile not pathlib.Path('seen').exists(): time.sleep(0.1)",
    "import sys; 'torch' in sys.modules",
]


@pytest.fixture(scope="module")
def lab_without_warpbook(
    stub_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Lab:
    folder = tmp_path_factory.mktemp("plain")
    stub = StubNvml(stub_nvml_library, folder / "state", "h200")
    lab = Lab(folder / "lab", **stub.env)
    config = folder / "lab/home/.jupyter/jupyter_server_config.json"
    disabled = {"ServerApp": {"jpserver_extensions": {"warpbook": False}}}
    config.write_text(json.dumps(disabled))
    return lab


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[LabPage]:
    """A page where nothing goes wrong, but that the server knows no warpbook."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    page = LabPage(context.new_page())
    yield page
    errors = [error for error in page.errors if "/warpbook/api/v1/" not in error]
    page.shut_down_kernel()
    context.close()
    assert errors == []


def test_without_our_server_the_kernel_feeds_the_widget_and_it_says_so(
    plain_page: LabPage, lab_without_warpbook: Lab
) -> None:
    page = plain_page
    notebook = lab_without_warpbook.write_notebook("plain.ipynb", CELLS)
    with lab_without_warpbook.serve() as url:
        page.open(url, notebook)
        page.run(0)
        expect(page.monitor).to_contain_text("GPU 0")
        expect(page.monitor).to_contain_text("These figures come from this kernel")
        expect(page.monitor.locator(".wb-badge-replay")).to_have_count(0)
        expect(page.monitor).to_contain_text("Power")

        page.run(1, wait=False)
        page.wait_running(1)
        page.scroll_to(0)
        # no frames of a server
        page.wait_moving(page.monitor, frames=0)
        (lab_without_warpbook.notebooks / "seen").touch()
        page.wait_idle()

        page.restart_kernel()
        expect(page.monitor).to_contain_text("Nothing comes from the kernel")
        page.run(0)
        expect(page.monitor).not_to_contain_text("Nothing comes from the kernel")
        expect(page.monitor.locator("canvas").first).to_be_visible()
