"""A GPU's lease on a real hub, with a device node in the GPU's place."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hub.core.test_keeper import (
    HOLDER,
    OTHER,
    children,
    device,
    held_open,
    may_open,
    needs_root,
)
from tests.hub.service.class_hub import COURSE, SUBMIT, ClassHub, Visitor, class_hub
from tests.programs import environment, wait_for

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
    with class_hub(tmp_path_factory.mktemp("hub")) as hub:
        grace = Visitor(hub, "grace").log_in()
        grace.done(f"courses/{COURSE}/roster", {"csv": ROSTER})
        holder, other = (Visitor(hub, name).log_in() for name in (HOLDER, OTHER))
        yield LeaseHub(hub, holder, other, grace)


@contextlib.contextmanager
def keeper(hub: ClassHub, device: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the keeper as `warpbook hub --lease-gpu` does."""
    command = [sys.executable, "-m", "warpbook.hub.keeper", hub.inner_url, device]
    env = environment(PYTHONPATH=os.pathsep.join(sys.path))
    token = (hub.folder / "hub" / "keeper_token").read_bytes()
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None
        process.stdin.write(token)
        process.stdin.close()
        try:
            yield process
        finally:
            process.terminate()


def state_of(visitor: Visitor) -> dict:
    return visitor.get(GPUS).json()


def until(visitor: Visitor, state: str) -> dict:
    def look() -> dict | None:
        lease = state_of(visitor)
        return lease if lease["state"] == state else None

    return wait_for(f"{visitor.name}'s lease: {state}", look, 60)


@needs_root
def test_a_lease_from_the_line_to_its_end(
    lease_hub: LeaseHub, device: str, children
) -> None:
    hub, holder, other = lease_hub.hub, lease_hub.holder, lease_hub.other
    with keeper(hub, device):
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
        assert child.wait(30) == 7
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
        holder.done(f"{GPUS}/take", {"minutes": 10})
        until(holder, "held")
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
        child = held_open(device, HOLDER, children)
        # the service forgets nothing, and its keeper waits for it
        hub.kill("warpbook.hub.service")
        wait_for("the service", lambda: holder.get(GPUS).ok or None, 60)
        assert state_of(holder)["state"] == "held"
        assert child.poll() is None
        first.kill()
        first.wait()
    # nobody is there to take it back, so it is not given to anybody else
    holder.done(f"{GPUS}/return")
    assert state_of(holder)["state"] == "ending"
    assert may_open(device, HOLDER)
    with keeper(hub, device):
        assert child.wait(30) == 7
        until(holder, "none")
        assert not may_open(device, HOLDER)


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
        told = subprocess.run(
            [*command, "--json"], env=env, capture_output=True, text=True
        )
        assert told.stdout, told.stderr
        return json.loads(told.stdout)

    with keeper(hub, device):
        lease = gpulease("take", "--minutes", "10", "--wait")
        assert (lease["state"], lease["gpu"]) == ("held", device)
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
    # who ends it leaves nobody to take it back later
    assert not may_open(device, HOLDER)
    with keeper(hub, device):
        # the lease itself goes on until its end
        wait_for("the grant", lambda: may_open(device, HOLDER) or None)
        assert gpulease("extend", "--minutes", "30")["left_s"] > 20 * 60
        gpulease("return")
        until(holder, "none")


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
