"""A class whose people have accounts of the machine, from log-in to lease and marks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from tests.hub.core.test_keeper import device
from tests.hub.private_accounts import PASSWORD, PEOPLE, SERVICES, within_accounts
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.programs import wait_for

__all__ = ["device"]
HERE = f"courses/{COURSE}"
ROSTER = "username,section\nada,monday\nbob,tuesday\n"
MAKES_ACCOUNTS = ("/usr/sbin/useradd", "/usr/sbin/chpasswd", "/etc/pam.d/login")


def can_make_accounts() -> bool:
    """Whether this is root, who may mount, on a system with Debian's programs."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        os.geteuid() == 0
        and all(Path(path).exists() for path in MAKES_ACCOUNTS)
        and subprocess.run(probe, capture_output=True).returncode == 0
    )


pytestmark = pytest.mark.skipif(
    not can_make_accounts(), reason="only root who may mount has accounts made"
)


@pytest.fixture
def hub(device: str) -> Iterator[ClassHub]:
    """A hub as root starts it for a class, with a device in a GPU's place."""
    # pytest's own folders let nobody else in
    with tempfile.TemporaryDirectory(prefix="wb-hub-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        options = ("--users", "system", "--lease-gpu", device)
        with class_hub(folder, *options, within=within_accounts(folder)) as hub:
            yield hub


def uid_of(hub: ClassHub, words: str) -> int:
    """Give the account of a program of the hub's, once it runs."""
    process = wait_for(words, lambda: hub.process(words))
    return process.uids().effective


def may_open(path: str, name: str) -> bool:
    script = 'exec 3<>"$0"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, path],
        user=PEOPLE[name],
        group=PEOPLE[name],
        extra_groups=[],
        stderr=subprocess.DEVNULL,
    )
    return done.returncode == 0


def test_everybody_is_an_account_of_the_machine(hub: ClassHub, device: str) -> None:
    with pytest.raises(requests.HTTPError):
        Visitor(hub, "ada").log_in(password="wrong")
    people = {name: Visitor(hub, name).log_in(password=PASSWORD) for name in PEOPLE}
    grace, ada = people["grace"], people["ada"]
    grace.done(f"{HERE}/roster", {"csv": ROSTER})
    lab = publish(grace, int(time.time() * 1000))
    submitted = ada.done(
        f"{HERE}/labs/{lab}/submissions", {"source": GOOD.read_text()}
    )["submission"]
    for program, account in (("service", "hub"), ("grader", "grader")):
        words = f"warpbook_hub.{program}"
        assert uid_of(hub, words) == SERVICES[f"warpbook-{account}"]
    assert uid_of(hub, "warpbook_hub.keeper") == 0

    # a server is its learner's, and so is the GPU while it is leased
    ada.start_server("")
    assert uid_of(hub, "jupyterhub.singleuser") == PEOPLE["ada"]
    # the keeper has told of it by now, or does soon
    wait_for("a GPU", lambda: "Take a GPU" in ada.page(f"{HERE}/gpus").text or None)
    ada.done(f"{HERE}/gpus/take", {"minutes": 10})
    wait_for("the grant", lambda: may_open(device, "ada") or None)
    assert not may_open(device, "bob")
    ada.done(f"{HERE}/gpus/return")
    wait_for("the end of the grant", lambda: not may_open(device, "ada") or None)

    def graded() -> dict | None:
        state = ada.get(f"{HERE}/submissions/{submitted}").json()
        return state if state["state"] == "graded" else None

    state = wait_for("the result", graded, 120)
    assert state["result"]["facts"]["verdict"] == "right"
    # nobody reaches what they must not: each account was tried
    doctor = subprocess.run(
        [
            *("nsenter", "--mount", "--target", str(hub.supervisor.pid)),
            *(sys.executable, "-m", "warpbook.cli.main", "doctor", "--json"),
        ],
        env={**os.environ, "WARPBOOK_HUB_FOLDER": str(hub.folder)},
        capture_output=True,
        text=True,
    )
    checks = {check["what"]: check for check in json.loads(doctor.stdout)["checks"]}
    assert "Accounts are apart" in checks["Hub isolation"]["message"]
    assert checks["Hub database"]["state"] == "ok"


def test_what_a_notebook_hands_in_while_the_hub_restarts_is_delivered() -> None:
    with tempfile.TemporaryDirectory(prefix="wb-hub-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        users = ("--users", "system")
        within = within_accounts(folder)
        with class_hub(folder, *users, within=within, keeps_servers=True) as hub:
            people = {
                name: Visitor(hub, name).log_in(password=PASSWORD) for name in PEOPLE
            }
            people["grace"].done(f"{HERE}/roster", {"csv": ROSTER})
            lab = publish(people["grace"], int(time.time() * 1000))
            people["ada"].start_server("")
            server = wait_for(
                "her server", lambda: hub.process("jupyterhub.singleuser")
            )
            given = server.environ()
        command = [sys.executable, "-m", "warpbook.cli.main", "labs", "submit"]
        with (
            ended(server),
            handing_in(
                [*command, "vector-add", str(GOOD), "--hub", "--json"],
                {**given, "HOME": name},
            ) as submit,
        ):
            assert submit.stderr is not None and submit.stdout is not None
            assert "It is tried again, for up to 10 min" in submit.stderr.readline()
            # the accounts are those of her server, which goes on
            within = ("nsenter", "--mount", "--target", str(server.pid))
            with class_hub(folder, *users, within=within, port=hub.port) as hub:
                receipt = json.loads(submit.stdout.read())["receipt"]
                ada = Visitor(hub, "ada").log_in(password=PASSWORD)
                kept = ada.get(f"{HERE}/submissions/{receipt['submission']}").json()
                assert kept["receipt"] == receipt
                assert receipt["publication"] == lab

                def is_known() -> bool | None:
                    url = f"{hub.url}hub/api/users/ada"
                    servers = ada.session.get(url, timeout=60).json()["servers"]
                    return servers.get("", {}).get("ready") or None

                wait_for("her server, found by the hub", is_known, 120)
                assert server.is_running()


@contextlib.contextmanager
def ended(server: psutil.Process) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            server.kill()


@contextlib.contextmanager
def handing_in(
    command: list[str], given: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=given, text=True, stdout=pipe, stderr=pipe
    ) as submit:
        try:
            yield submit
        finally:
            submit.kill()
