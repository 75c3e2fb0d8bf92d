"""One person, or one mistake, takes nothing from the rest of the class."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.hub.service.class_hub import COURSE, free_ports
from tests.hub.service.conftest import World
from tests.programs import ROOT, environment, program


def test_second_hub_in_a_folder_changes_nothing(world: World) -> None:
    """It would take the grader's token and the plan from the one that runs."""
    hub = world.hub
    plan = (hub.folder / "hub.json").read_bytes()
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    env = environment(HOME=str(hub.folder.parent), PYTHONPATH=os.pathsep.join(folders))
    env["PATH"] += f"{os.pathsep}{program('configurable-http-proxy').parent}"
    command = [sys.executable, "-m", "warpbook.cli.main", "hub", "--no-gpu"]
    command += ["--folder", str(hub.folder), "--port", str(free_ports(4))]
    command += ["--course", COURSE, "--restore", "no-such-file"]
    second = subprocess.run(command, env=env, capture_output=True, text=True)
    assert second.returncode != 0
    assert "runs in" in second.stderr and "already" in second.stderr
    assert (hub.folder / "hub.json").read_bytes() == plan
