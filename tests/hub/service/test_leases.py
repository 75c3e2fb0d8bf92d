"""A GPU's lease on a real hub, with a device node in the GPU's place."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import requests
from playwright.sync_api import expect

from tests.hub.core.test_keeper import (
    HOLDER,
    OTHER,
    children,
    device,
    held_open,
    may_open,
    needs_root,
)
from tests.hub.service.browser import chromium
from tests.hub.service.class_hub import COURSE, SUBMIT, ClassHub, Visitor, class_hub
from tests.hub.service.test_story import Tab, serious
from tests.programs import answers, environment, free_port, program, running, wait_for
from warpbook.hub_client import HubClient
from warpbook.hub_protocol import KEEPER, KeptGpu, Orders, Report
from warpbook_hub.running.plan import read_plan
from warpbook_hub.running.supervisor import Supervisor

__all__ = ["children", "device"]
GPUS = f"courses/{COURSE}/gpus"
#: learners who have accounts of this machine
ROSTER = f"username,section\n{HOLDER},monday\n{OTHER},monday\n"


@dataclass
class LeaseHub:
    hub: ClassHub
    holder: Visitor
    other: Visitor
    grace: Visitor


@pytest.fixture(scope="module")
def lease_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeaseHub]:
    with class_hub(tmp_path_factory.mktemp("hub"), "--cpu-slots", "0") as hub:
        grace = Visitor(hub, "grace").log_in()
        grace.done(f"courses/{COURSE}/roster", {"csv": ROSTER})
        holder, other = (Visitor(hub, name).log_in() for name in (HOLDER, OTHER))
        yield LeaseHub(hub, holder, other, grace)


@contextlib.contextmanager
def keeper(hub: ClassHub, device: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the keeper as `warpbook hub --lease-gpu` does."""
    plan = read_plan(hub.folder / "hub.json")
    plan = msgspec.structs.replace(plan, lease_gpus=(device,))
    supervisor = Supervisor(plan, hub.folder / "hub.json", print)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        started = supervisor._start_keeper()
    with started as process:
        try:
            yield process
        finally:
            process.terminate()


def report(hub: ClassHub, *gpus: KeptGpu) -> None:
    """Report once, as a keeper of GPUs that a test says things of."""
    token = (hub.folder / "hub" / "keeper_token").read_text()
    client = HubClient(hub.inner_url, token, KEEPER)
    client.ask("report", Orders, Report("node7", gpus, 600_000))


def a_gpu_is_leased(visitor: Visitor) -> None:
    """Wait for the keeper's first report: before, the hub leases none."""
    wait_for("a GPU", lambda: "Take a GPU" in visitor.page(GPUS).text or None)


def state_of(visitor: Visitor) -> dict:
    return visitor.get(GPUS).json()


def until(visitor: Visitor, state: str) -> dict:
    def look() -> dict | None:
        lease = state_of(visitor)
        return lease if lease["state"] == state else None

    return wait_for(f"{visitor.name}'s lease: {state}", look)


@needs_root
def test_a_lease_from_the_line_to_its_end(
    lease_hub: LeaseHub, device: str, children
) -> None:
    hub, holder, other = lease_hub.hub, lease_hub.holder, lease_hub.other
    with keeper(hub, device):
        a_gpu_is_leased(holder)
        holder.done(f"{GPUS}/take", {"minutes": 10})
        until(holder, "held")
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
        assert not may_open(device, OTHER)
        child = held_open(device, HOLDER, children)
        waiting = other.done(f"{GPUS}/take", {"minutes": 10})
        assert (waiting["place"], 0 < waiting["eta_s"] <= 600) == (1, True)
        page = other.page(GPUS).text
        assert "number <b>1</b> in the line" in page
        # who has it is no learner's business
        assert HOLDER not in page
        assert f"<code>{HOLDER}</code>" in lease_hub.grace.page(GPUS).text
        assert holder.post(f"{GPUS}/extend", {"minutes": 30}).status_code == 409
        holder.done(f"{GPUS}/return")
        assert child.wait(120) == 7
        until(other, "held")
        wait_for("the next grant", lambda: may_open(device, OTHER) or None)
        assert not may_open(device, HOLDER)
        other.done(f"{GPUS}/return")
        until(other, "none")
    assert not may_open(device, OTHER)


@needs_root
def test_kills_leave_nothing_granted(
    lease_hub: LeaseHub, device: str, children
) -> None:
    hub, holder = lease_hub.hub, lease_hub.holder
    with keeper(hub, device) as first:
        a_gpu_is_leased(holder)
        holder.done(f"{GPUS}/take", {"minutes": 10})
        until(holder, "held")
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
        child = held_open(device, HOLDER, children)
        # the service forgets nothing, and its keeper waits for it
        hub.kill("warpbook_hub.service")
        wait_for("the service", lambda: holder.get(GPUS).ok or None)
        assert state_of(holder)["state"] == "held"
        assert child.poll() is None
        first.kill()
        first.wait()
    # nobody is there to take it back, so it is not given to anybody else
    holder.done(f"{GPUS}/return")
    assert state_of(holder)["state"] == "ending"
    assert may_open(device, HOLDER)
    with keeper(hub, device):
        assert child.wait(120) == 7
        until(holder, "none")
        assert not may_open(device, HOLDER)


IN_A_KERNEL = """
import os
from IPython.core.interactiveshell import InteractiveShell
import warpbook
shell = InteractiveShell.instance()
warpbook.load_ipython_extension(shell)
shell.run_line_magic("gpulease", "")
print(os.environ["CUDA_VISIBLE_DEVICES"])
"""


@needs_root
def test_a_terminal_and_a_stopped_keeper(lease_hub: LeaseHub, device: str) -> None:
    hub, holder = lease_hub.hub, lease_hub.holder
    env = environment(
        PYTHONPATH=os.pathsep.join(sys.path),
        WARPBOOK_HUB_URL=hub.inner_url,
        JUPYTERHUB_API_TOKEN=holder.token(SUBMIT, "access:services!service=warpbook"),
    )

    def gpulease(*words: str) -> dict:
        command = [sys.executable, "-m", "warpbook.cli.main", "gpulease", *words]
        completed = subprocess.run(
            [*command, "--json"], env=env, capture_output=True, text=True
        )
        assert completed.stdout, completed.stderr
        return json.loads(completed.stdout)

    with keeper(hub, device):
        a_gpu_is_leased(holder)
        lease = gpulease("take", "--minutes", "10", "--wait")
        assert (lease["state"], lease["gpu"]) == ("held", device)
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
    # who ends it leaves nobody to take it back later
    assert not may_open(device, HOLDER)
    with keeper(hub, device):
        # the lease itself goes on until its end
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
        assert gpulease("extend", "--minutes", "30")["left_s"] > 20 * 60
        in_kernel = subprocess.run(
            [sys.executable, "-c", IN_A_KERNEL],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert re.search(r"is yours for (30|2\d) more minutes", in_kernel.stdout)
        assert in_kernel.stdout.splitlines()[-1] == device
        gpulease("return")
        until(holder, "none")


def test_the_page_is_for_everybody(lease_hub: LeaseHub) -> None:
    hub = lease_hub.hub
    h100 = KeptGpu("GPU-1", "H100 <b>", "", True, True, 1_000)
    l4 = KeptGpu("GPU-2", "L4", "", True, None, None)
    unfit = KeptGpu("GPU-3", "T4", "open to everybody", False, None, None)
    with chromium() as browser:
        learner, staff = (
            Tab(browser, hub, HOLDER, "dark"),
            Tab(browser, hub, "grace", "light"),
        )
        # it is not free for long where its keeper says no more
        report(hub, h100, l4, unfit)
        page = learner.open("/gpus")
        page.locator("select[name=model]").select_option("H100 <b>")
        page.get_by_role("button", name="Take a GPU").click()
        expect(page.get_by_text("number 1 in the line for H100 <b>")).to_be_visible()
        expect(page.get_by_text("Free now: H100 <b>, L4")).to_be_visible()
        assert serious(page) == []
        report(hub, h100, l4, unfit)
        page.reload()
        expect(
            page.get_by_text(re.compile(r"\babout (10|9|8) min more"))
        ).to_be_visible()
        assert serious(page) == []
        page = staff.open("/gpus")
        expect(page.locator("#board")).to_contain_text(HOLDER)
        expect(page.locator("#board")).to_contain_text("open to everybody")
        page.get_by_text("Reserve GPUs").click()
        page.get_by_label("Session").fill("Monday's <i>exercise</i>")
        page.get_by_role("button", name="Reserve").click()
        expect(page.locator("#sessions tbody")).to_contain_text("<i>exercise</i>")
        assert serious(page) == []
        page = learner.open("/gpus")
        page.get_by_role("button", name="Give it back").click()
        expect(page.get_by_text("is taken back. You gave it back.")).to_be_visible()
        report(hub, h100, l4, unfit)
        assert learner.complaints == []
        assert staff.complaints == []


SPAWNER_HUB = """
import os
from warpbook_hub.running.lease_spawner import LeaseSpawner
c = get_config()
c.JupyterHub.bind_url = os.environ["T_URL"]
c.JupyterHub.hub_bind_url = os.environ["T_HUB_URL"]
c.ConfigurableHTTPProxy.api_url = os.environ["T_PROXY_URL"]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret = bytes(32)
c.JupyterHub.spawner_class = LeaseSpawner
c.LeaseSpawner.service_url = os.environ["T_SERVICE"]
c.LeaseSpawner.keeper_token_file = os.environ["T_TOKEN"]
c.LeaseSpawner.lease_course = os.environ["T_COURSE"]
# a server that only says what it was started with
told = os.environ["T_TOLD"]
c.Spawner.cmd = ["/bin/sh", "-c", f"env > {told}.part; mv {told}.part {told}; exit 3"]
"""


@needs_root
def test_a_server_is_started_with_a_gpu_or_told_its_place(lease_hub: LeaseHub) -> None:
    hub, other = lease_hub.hub, lease_hub.other
    gpu = KeptGpu("GPU-spawn", "H100", "", True, None, None)
    other.done(f"{GPUS}/take", {"minutes": 10, "model": ""})
    report(hub, gpu)
    assert state_of(other)["gpu"] == "GPU-spawn"
    with tempfile.TemporaryDirectory() as folder, spawner_hub(hub, Path(folder)) as url:
        session = requests.Session()
        session.trust_env = False

        def form(path: str, **values: str) -> requests.Response:
            at = session.get(f"{url}{path}", timeout=60)
            assert at.ok, at.text
            xsrf = session.cookies.get("_xsrf", path="/hub/")
            return session.post(
                f"{url}{path}", data={**values, "_xsrf": xsrf}, timeout=60
            )

        form("/hub/login", username=HOLDER, password="x")
        assert 'name="gpu_minutes"' in session.get(f"{url}/hub/spawn", timeout=60).text
        form("/hub/spawn", gpu_minutes="10")

        def place_in_line() -> str | None:
            page = session.get(f"{url}/hub/spawn-pending/{HOLDER}", timeout=60).text
            return page if "You keep your place" in page else None

        page = wait_for("the place in the line", place_in_line)
        assert "number 1 in the line" in page
        environment_file = Path(folder, "told")
        assert not environment_file.exists()
        # it comes, and the next start has it
        other.done(f"{GPUS}/return")
        for _ in range(2):
            report(hub, gpu)
        form("/hub/spawn", gpu_minutes="10")

        def has_started() -> bool | None:
            # as a keeper goes on saying
            report(hub, gpu)
            return environment_file.exists() or None

        wait_for("the server", has_started)
        assert (
            "CUDA_VISIBLE_DEVICES=GPU-spawn"
            in environment_file.read_text().splitlines()
        )
        session.close()
    lease_hub.holder.done(f"{GPUS}/return")
    report(hub, gpu)


@contextlib.contextmanager
def spawner_hub(hub: ClassHub, folder: Path) -> Iterator[str]:
    """Run a JupyterHub whose servers are those of accounts of this machine."""
    folder.chmod(0o777)
    config = folder / "config.py"
    config.write_text(SPAWNER_HUB)
    url = f"http://127.0.0.1:{free_port()}"
    env = environment(
        PYTHONPATH=os.pathsep.join(sys.path),
        HOME=str(folder),
        T_URL=url,
        T_HUB_URL=f"http://127.0.0.1:{free_port()}",
        T_PROXY_URL=f"http://127.0.0.1:{free_port()}",
        T_SERVICE=hub.inner_url,
        T_TOKEN=str(hub.folder / "hub" / "keeper_token"),
        T_COURSE=COURSE,
        T_TOLD=str(folder / "told"),
    )
    env["PATH"] += f"{os.pathsep}{program('configurable-http-proxy').parent}"
    command = [sys.executable, "-m", "jupyterhub", "-f", str(config)]
    log = folder / "hub.log"
    with running(command, env, log) as process:

        def is_up() -> bool | None:
            assert process.poll() is None, log.read_text()[-4000:]
            return answers(f"{url}/hub/health")

        wait_for("the spawner's hub", is_up)
        yield url


def test_the_keepers_address_is_the_keepers(lease_hub: LeaseHub) -> None:
    url = f"{lease_hub.hub.service_url}keeper/v1/report"
    session = lease_hub.holder.session
    for headers in ({}, {"Authorization": "Bearer guessed"}):
        answer = session.post(url, json={}, headers=headers, timeout=60)
        assert answer.status_code == 403
    token = (lease_hub.hub.folder / "hub" / "keeper_token").read_text()
    own = {"Authorization": f"Bearer {token}"}
    assert session.post(url, data="[", headers=own, timeout=60).status_code == 400
    huge = session.post(url, data="x" * (1 << 20), headers=own, timeout=60)
    assert huge.status_code == 413


def test_staff_reserve_and_learners_do_not(lease_hub: LeaseHub) -> None:
    body = {"title": "x", "gpus": 50, "starts_ms": 0, "ends_ms": 7_000_000_000_000}
    assert lease_hub.holder.post(f"{GPUS}/sessions", body).status_code == 403
    assert lease_hub.grace.post(f"{GPUS}/sessions", body).status_code == 400
