"""The jobs that a real BatchSpawner submits; Slurm is played here.

`make test-slurm` has them run by a Slurm of this machine.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyterhub.spawner import Spawner

from tests.hub.spawners.servers import People, calls, play, run
from tests.hub.spawners.site import HUB_URL, SLURM, config_of, written
from warpbook_hub.spawners.choice import NotGiven
from warpbook_hub.spawners.site_files import JOB

GPUS = ("--gpu", "whole", "--gpu", "1g.10gb")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    # a command may change who it is run by
    then = f"cat > {tmp_path}/job.sh; env > {tmp_path}/job.env; echo 17"
    play(tmp_path, "sbatch", then)
    play(tmp_path, "squeue", "echo RUNNING localhost")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    config = config_of(written(tmp_path / "site", *SLURM, *GPUS))
    config.GpuSlurmSpawner.exec_prefix = "env"
    people = People(config)
    yield people
    people.close()


async def started(server: Spawner) -> None:
    begun = asyncio.ensure_future(server.start())
    while not begun.done():
        # as the job says
        server.port = 4321
        await asyncio.sleep(0.05)
    await begun


def job_of(people: People, folder: Path, options: dict) -> tuple[str, dict[str, str]]:
    """Start a server; give its script and what Slurm gets."""
    run(started(people.server(options)))
    assert calls(folder / "sbatch.calls") == [[str(folder / "sbatch"), "--parsable"]]
    script = (folder / "job.sh").read_text()
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    directives = re.findall(r"^#SBATCH --([a-z-]+)=(\S*)$", script, re.MULTILINE)
    assert len(directives) == script.count("#SBATCH")
    return script, dict(directives)


@pytest.mark.parametrize(
    ("gpu", "gres"), [("One GPU", "gpu:1"), ("A MIG slice, 1g.10gb", "gpu:1g.10gb:1")]
)
def test_a_job_asks_for_what_was_chosen(
    people: People, tmp_path: Path, gpu: str, gres: str
) -> None:
    script, job = job_of(people, tmp_path, {"gpu": gpu})
    assert job["gres"] == gres
    assert (job["partition"], job["time"], job["mem"]) == ("debug", "0:30:00", "1G")
    # Slurm says which GPU it is
    assert "CUDA_VISIBLE_DEVICES" not in script
    assert script.rstrip().splitlines()[-1].startswith("batchspawner-singleuser ")


def test_a_job_without_a_gpu_sees_none(people: People, tmp_path: Path) -> None:
    script, job = job_of(people, tmp_path, {})
    assert "gres" not in job
    assert "\nexport CUDA_VISIBLE_DEVICES=\n" in script
    assert "WARPBOOK_HUB_URL" in job["export"].split(",")
    environment = (tmp_path / "job.env").read_text()
    assert f"\nWARPBOOK_HUB_URL={HUB_URL}services/warpbook/\n" in environment


def test_a_program_puts_nothing_else_into_the_script(
    people: People, tmp_path: Path
) -> None:
    hostile = {"gpu": "One GPU", "gres": "gpu:8", "partition": "x\n#SBATCH --uid=0"}
    script, job = job_of(people, tmp_path, hostile)
    assert (job["gres"], job["partition"]) == ("gpu:1", "debug")
    assert "--uid" not in script


def test_a_gpu_that_is_not_offered_submits_nothing(
    people: People, tmp_path: Path
) -> None:
    with pytest.raises(NotGiven, match="One GPU, A MIG slice"):
        run(people.server({"gpu": "gpu:8"}).start())
    assert not calls(tmp_path / "sbatch.calls")


def test_the_form_offers_what_the_site_has(people: People, tmp_path: Path) -> None:
    server = people.server({})
    offered = re.findall(r'<option value="([^"]*)"', server.options_form)
    assert offered == ["", "One GPU", "A MIG slice, 1g.10gb"]
    assert server.options_from_form({"gpu": [offered[1]]}) == {"gpu": "One GPU"}
    assert server.options_from_form({}) == {"gpu": ""}
    # and its lines may be changed before the hub reads it
    assert (tmp_path / "site" / JOB).read_text().count("#SBATCH") == 9
