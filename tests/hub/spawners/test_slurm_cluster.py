"""A server as a job of a real Slurm, by the files of `warpbook hub config`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import requests

from tests.hub.service.class_hub import Visitor
from tests.hub.spawners.site import SLURM, Learner, SiteHub, site_hub
from tests.hub.spawners.slurm_cluster import Slurm, slurm
from tests.programs import answers, wait_for
from warpbook_hub.spawners.site_files import JOB

pytestmark = pytest.mark.slurm

#: the account of the learner: Python may be in a folder that no other one enters
LEARNER = "root"
_SITE = """
c.Spawner.args = ["--allow-root"]
c.Spawner.environment.update({{"PYTHONPATH": {python_path!r}}})
c.GpuSlurmSpawner.batch_script = c.GpuSlurmSpawner.batch_script.replace(
    "{{{{homedir}}}}/jupyterhub", "{folder}/job"
)
"""


@dataclass
class World:
    """A hub, its Slurm, and a learner."""

    hub: SiteHub
    slurm: Slurm
    learner: Learner

    def stop(self) -> None:
        self.learner.ask_for_end()
        wait_for("the end of the job", lambda: not self.slurm.jobs("%i") or None)
        wait_for("the hub to know", lambda: not self.learner.servers() or None)

    def environment(self) -> dict[str, str]:
        """Give the environment of the server, once it is ready."""

        self.learner.wait_for_server()
        prefix = f"{self.hub.base_url}user/{LEARNER}/"
        return next(
            process.environ()
            for process in psutil.process_iter()
            if "jupyterhub-singleuser" in " ".join(process.cmdline())
            and process.environ().get("JUPYTERHUB_SERVICE_PREFIX") == prefix
            and "SLURM_JOB_ID" in process.environ()
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("site")
    more = _SITE.format(python_path=":".join(filter(None, sys.path)), folder=folder)
    options = (*SLURM, "--folder", str(folder / "course"), "--instructor", LEARNER)
    options += ("--gpu", "h100", "--gpu", "1g.10gb")
    with slurm(tmp_path_factory.mktemp("slurm")) as cluster:
        conf = str(cluster.conf)
        with site_hub(folder, options, more, SLURM_CONF=conf) as hub:
            wait_for("the service", lambda: answers(f"{hub.service_url}health"))
            yield World(hub, cluster, Learner(hub, LEARNER))
    assert (folder / JOB).exists()


@pytest.fixture(autouse=True)
def no_server_is_left(world: World) -> Iterator[None]:
    yield
    world.stop()


@pytest.mark.parametrize(
    ("choice", "gres", "device"),
    [
        ("One GPU, h100", "gres:gpu:h100:1", "0"),
        ("A MIG slice, 1g.10gb", "gres:gpu:1g.10gb:1", "1"),
        ("", "N/A", ""),
    ],
)
def test_a_server_has_the_gpu_that_was_chosen(
    world: World, choice: str, gres: str, device: str
) -> None:
    assert world.learner.start(choice).ok
    environment = world.environment()
    assert world.slurm.jobs("%b") == [gres]
    assert environment["CUDA_VISIBLE_DEVICES"] == device
    # a notebook's token hands in, and does not run a course that its owner runs
    token = environment["JUPYTERHUB_API_TOKEN"]
    notebook = Visitor(world.hub, token=token)
    assert environment["WARPBOOK_HUB_URL"] == world.hub.service_url
    assert notebook.get("courses").ok
    assert notebook.post("hub/graders", {"name": "mine"}).status_code == 403


def test_a_server_waits_for_a_gpu_that_another_job_has(world: World) -> None:
    job = ("sbatch", "--gres=gpu:h100:1", "--mem=10M", "--wrap", "sleep 600")
    other = world.slurm.said(*job, f"--output={world.slurm.folder}/other").split()[-1]
    wait_for("the other job", lambda: "R" in world.slurm.jobs("%t") or None)
    assert world.learner.start("One GPU, h100").ok

    def waits() -> bool | None:
        return ("PD" in world.slurm.jobs("%t")) or None

    wait_for("the server's job", waits)
    world.slurm.said("scancel", other)
    assert world.environment()["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_notebook_sets_the_port_of_its_server_and_nothing_else(
    world: World, tmp_path: Path
) -> None:
    assert world.learner.start("").ok
    token = world.environment()["JUPYTERHUB_API_TOKEN"]
    mark = tmp_path / "mark"
    hostile = {"port": 4321, "exec_prefix": f"touch {mark};"}
    for body in (hostile, {"batch_submit_cmd": f"touch {mark}"}, {"port": 22}, [], 7):
        answer = requests.post(
            f"{world.hub.api_url}/batchspawner",
            json=body,
            headers={"Authorization": f"token {token}"},
            timeout=30,
        )
        assert answer.status_code == 400, body
    # which would run commands of the body
    world.stop()
    assert world.learner.start("").ok
    world.environment()
    assert not mark.exists()


def test_what_is_not_offered_submits_nothing(world: World) -> None:
    answer = world.learner.start("gpu:h100:8")
    assert answer.status_code == 500
    assert "no such GPU" in answer.text
    assert not world.slurm.jobs("%i")
