"""Launches of a platform, accounts of the machine and a Ray cluster, in one class."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.hub.lti.platform import Platform
from tests.hub.lti.test_hub import ADA, GRACE, launched
from tests.hub.private_accounts import PEOPLE, SERVICES, within_accounts
from tests.hub.ray.cluster import Cluster, cluster
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.hub.service.test_system_accounts import can_make_accounts
from tests.programs import wait_for

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(
        not can_make_accounts(), reason="only root who may mount has accounts made"
    ),
]
GRADER = SERVICES["warpbook-grader"]
#: what a process that grades must not find
SECRETS = ("RAY_", "JUPYTERHUB_", "WARPBOOK_HUB_TOKEN", "WARPBOOK_HUB_GRADED")


@dataclass
class World:
    """A hub as root starts it, with a platform, and a cluster that has not begun."""

    hub: ClassHub
    platform: Platform
    nodes: Cluster

    def start_cluster(self) -> None:
        self.nodes.start_head(GRADER)
        self.nodes.start_node(1, 1, user="warpbook-grader")

    def graded(self) -> psutil.Process | None:
        """Give the process that grades a job on the node, while there is one."""
        for process in self.nodes.processes_of("node1"):
            with contextlib.suppress(psutil.Error):
                if "warpbook_hub.grader.child" in process.cmdline():
                    return process
        return None


@pytest.fixture
def world() -> Iterator[World]:
    platform = Platform([GRACE, ADA])
    platform.start()
    # pytest's own folders let nobody else in
    with (
        contextlib.ExitStack() as stack,
        tempfile.TemporaryDirectory(prefix="wb-hub-", dir="/tmp") as name,
    ):
        stack.callback(platform.stop)
        # of an account that there is only here
        stack.callback(shutil.rmtree, f"/tmp/warpbook-ray-{GRADER}", ignore_errors=True)
        folder = Path(name)
        folder.chmod(0o755)
        file = folder / "platform.json"
        file.write_text(json.dumps(platform.description))
        nodes = stack.enter_context(cluster(folder))
        os.chown(nodes.token_file, GRADER, GRADER)
        options = ["--users", "system", "--lti", str(file), "--engine", "ray"]
        options += ["--ray-address", nodes.address]
        options += ["--ray-token-file", str(nodes.token_file)]
        hub = stack.enter_context(
            class_hub(folder, *options, within=within_accounts(folder))
        )
        platform.key_set_url = f"{hub.service_url}lti/jwks.json"
        nodes.accounts_of = hub.supervisor.pid
        yield World(hub, platform, nodes)
        # before the mounts that it was started with are gone
        nodes.end()


def test_from_a_launch_by_ones_own_account_and_a_grader_of_a_cluster_to_the_score(
    world: World,
) -> None:
    hub, platform = world.hub, world.platform
    grace = launched(hub, platform, GRACE)
    lab = publish(grace, int(time.time() * 1000))
    ada = launched(hub, platform, ADA)
    # a launch is the log-in, and the server is that of the account
    ada.start_server("")
    server = hub.process("jupyterhub.singleuser")
    assert server is not None
    assert server.uids().effective == PEOPLE["ada"]
    # what her notebook hands in with
    notebook = Visitor(hub, token=server.environ()["JUPYTERHUB_API_TOKEN"])
    path = f"courses/{COURSE}/labs/{lab}/submissions"
    receipt = notebook.done(path, {"source": GOOD.read_text()})
    world.start_cluster()

    def seen() -> tuple[int, dict[str, str]] | None:
        with contextlib.suppress(psutil.Error):
            process = world.graded()
            if process is not None:
                return process.uids().real, process.environ()
        return None

    uid, environment = wait_for("a job on the node", seen, 240)
    assert uid == GRADER
    assert not [name for name in environment if name.startswith(SECRETS)]
    wait_for("the score", lambda: platform.scores or None)
    assert platform.last("s-ada")["scoreGiven"] == 10
    state = notebook.get(f"courses/{COURSE}/submissions/{receipt['submission']}").json()
    assert (state["state"], state["result"]["facts"]["verdict"]) == ("graded", "right")
    secrets = [*platform.tokens, world.nodes.token_file.read_text()]
    logs = hub.logs() + world.nodes.log("head") + world.nodes.log("node1")
    assert not [secret for secret in secrets if secret in logs]
