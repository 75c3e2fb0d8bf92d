"""Kernels on another machine: the dashboard shows that machine's GPUs, by its name.

The other machine is a Jupyter server that is this one's gateway. It has a GPU, and the
server of the page has none.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import TIMEOUT_MS, LabPage
from tests.programs import answers, environment, free_port, running, wait_for
from tests.stub_nvml import StubNvml

NODE = "node-7 <b>"
HEADING = f"GPUs of {NODE}, where the kernel of far.ipynb runs"
CELLS = ["%load_ext warpbook", "import os; os.getpid()", "%unload_ext warpbook"]
TOKEN = "of-the-gateway"


@pytest.fixture(scope="module")
def gateway(
    stub_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Jupyter server on a machine with a GPU; gives its URL."""
    folder = tmp_path_factory.mktemp("gateway")
    stub = StubNvml(stub_nvml_library, folder / "state", "h200")
    home = folder / "home"
    home.mkdir()
    url = f"http://127.0.0.1:{free_port()}"
    env = environment(HOME=str(home), WARPBOOK_MACHINE_NAME=NODE, **stub.env)
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        *(f"--ServerApp.port={url.rsplit(':', 1)[1]}", "--ServerApp.ip=127.0.0.1"),
        *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={home}"),
    ]
    with running(command, env, folder / "gateway.log"):
        wait_for(f"the gateway, see {folder}", lambda: answers(f"{url}/api"))
        yield url


@pytest.fixture(scope="module")
def far_lab(gateway: str, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab whose kernels are the gateway's."""
    env = {"JUPYTER_GATEWAY_URL": gateway, "JUPYTER_GATEWAY_AUTH_TOKEN": TOKEN}
    return Lab(tmp_path_factory.mktemp("far") / "lab", **env)


@pytest.fixture(scope="module")
def far_url(far_lab: Lab) -> Iterator[str]:
    with far_lab.serve() as url:
        yield url


def open_far(page: LabPage, url: str, notebook: str) -> None:
    """Open a notebook, once more where the page never learns of its kernel.

    A gateway speaks no subprotocol, so JupyterLab connects twice, and what is said on
    the first socket may be lost. No other page is loaded a second time.
    """
    try:
        page.open(url, notebook, TIMEOUT_MS / 2)
    except PlaywrightTimeoutError:
        page.open(url, notebook)


def test_the_gpus_of_the_kernels_machine_come_and_go_with_the_kernel(
    page: LabPage, far_lab: Lab, far_url: str
) -> None:
    notebook = far_lab.write_notebook("far.ipynb", CELLS)
    section = page.dashboard.locator(".wb-elsewhere > section")
    open_far(page, far_url, notebook)
    expect(page.dashboard).to_be_visible()
    expect(section).to_have_count(0)
    page.run(0)
    # a name is text
    expect(section.locator("h3").first).to_have_text(HEADING)
    expect(section).to_contain_text("H200")
    page.wait_moving(section, frames=0)
    # the server's own figures are another part
    expect(page.dashboard.locator(".wb-badge-replay").first).to_be_visible()

    # a page that comes later asks for what was said
    open_far(page, far_url, notebook)
    expect(section.locator("h3").first).to_have_text(HEADING)
    page.wait_moving(section, frames=0)

    page.run(1)
    pid = int("".join(page.cells()[1]["outputs"][0]["data"]["text/plain"]))
    os.kill(pid, signal.SIGSTOP)
    expect(section).to_contain_text("Nothing comes from the kernel")
    os.kill(pid, signal.SIGCONT)
    expect(section).not_to_contain_text("Nothing comes from the kernel")

    page.run(2)
    expect(section).to_have_count(0)
    page.run(0)
    expect(section).to_have_count(1)
    page.restart_kernel()
    expect(section).to_have_count(0)
    # a gateway lets go of the kernel's own socket then
    page.forgive_lost_server()


def test_a_kernel_beside_the_server_shows_nothing_twice(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    notebook = lab.write_notebook("near.ipynb", [*CELLS, "2"])
    page.open(lab_url, notebook)
    page.run(0)
    # what the kernel has said by then has been heard
    page.run(3)
    expect(page.dashboard.locator(".wb-elsewhere")).to_have_count(1)
    expect(page.dashboard.locator(".wb-elsewhere > section")).to_have_count(0)
