"""A server as a unit of a real systemd, by the files of `warpbook hub config`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hub.spawners.site import Learner, site_hub
from tests.hub.spawners.systemd_machine import Machine, machine
from tests.programs import wait_for

pytestmark = pytest.mark.systemd

#: the account of the learner: Python may be in a folder that no other one enters
LEARNER = "root"
UNIT = f"jupyter-{LEARNER}-singleuser.service"
WHOLE = "GPU-01234567-89ab-cdef-0123-456789abcdef"
OTHER = "GPU-76543210-89ab-cdef-0123-456789abcdef"
#: nodes that this machine has, in the place of GPUs
NODES = {WHOLE: "/dev/kmsg", OTHER: "/dev/net/tun"}
_SITE = """
c.Spawner.environment.update({{"PYTHONPATH": {python_path!r}}})
c.Spawner.cmd = [{server!r}]
"""
#: says what it may open, and becomes the server
_SERVER = """#!/bin/sh
for node in {nodes}; do
    if ( : <> $node ) 2>/dev/null; then echo $node; fi
done > {opened}
exec {singleuser} --allow-root "$@"
"""


@dataclass
class World:
    """A hub, its systemd, and a learner."""

    systemd: Machine
    learner: Learner
    opened: Path

    def environment(self) -> str:
        """Give what the unit's environment file has, once the server is ready."""
        self.learner.wait_for_server()
        shown = self.systemd.said("systemctl", "show", "-p", "EnvironmentFiles", UNIT)
        file = shown.split("=", 1)[1].split(" (")[0]
        return self.systemd.said("cat", file)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("site")
    opened, server = folder / "opened", folder / "server"
    server.write_text(
        _SERVER.format(
            nodes=" ".join(NODES.values()),
            opened=opened,
            singleuser=f"{sys.executable} -m jupyterhub.singleuser",
        )
    )
    server.chmod(0o755)
    python_path = ":".join(filter(None, sys.path))
    more = _SITE.format(python_path=python_path, server=str(server))
    options = ("--spawner", "systemd", "--folder", str(folder / "course"))
    options += ("--instructor", LEARNER)
    for gpu, node in NODES.items():
        options += ("--gpu", f"{gpu}={node}")
    with machine(tmp_path_factory.mktemp("systemd")) as systemd:
        with site_hub(folder, options, more, within=systemd.within) as hub:
            yield World(systemd, Learner(hub, LEARNER), opened)


@pytest.mark.parametrize(("gpu", "nodes"), [*NODES.items(), ("", "")])
def test_a_server_opens_the_gpu_that_was_chosen_and_no_other(
    world: World, gpu: str, nodes: str
) -> None:
    assert world.learner.start(gpu).ok
    assert f"CUDA_VISIBLE_DEVICES={gpu or repr(gpu)}\n" in world.environment()
    assert world.opened.read_text().split() == nodes.split()
    world.learner.ask_for_end()
    wait_for("its end", lambda: not world.learner.servers() or None)
    assert "inactive" in world.systemd.said("systemctl", "is-active", UNIT)


def test_what_is_not_offered_starts_no_unit(world: World) -> None:
    answer = world.learner.start("/dev/vda")
    assert answer.status_code == 500 and "no such GPU" in answer.text
    assert "inactive" in world.systemd.said("systemctl", "is-active", UNIT)
