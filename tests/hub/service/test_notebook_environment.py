"""What a learner's server is started with, as JupyterHub reads its configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.hub.service.test_isolation import planned
from tests.programs import environment
from warpbook_hub.running.plan import PLAN, HubPlan, write_plan

#: in a process of its own: the configuration binds its process to its parent
READ = """
import json, sys
from traitlets.config.loader import PyFileConfigLoader
from warpbook_hub.running import supervisor
config = PyFileConfigLoader(str(supervisor._CONFIG)).load_config()
print(json.dumps(dict(config.Spawner.environment)))
"""


def given_to_notebooks(plan: HubPlan, **changes: str) -> dict[str, str]:
    plan.token_file.write_text("secret")
    variables = environment(PYTHONPATH=":".join(sys.path), **changes)
    completed = subprocess.run(
        [sys.executable, "-c", READ],
        env={**variables, PLAN: str(write_plan(plan))},
        capture_output=True,
        check=True,
        text=True,
    )
    given: dict[str, str] = json.loads(completed.stdout)
    return given


@pytest.mark.parametrize(
    ("changes", "is_hidden"),
    [
        ({}, True),
        ({"notebooks_use_gpu": True}, False),
        # nothing is timed on this machine
        ({"use_gpu": False}, False),
        ({"cpu_slots": 0}, False),
        # a lease shows its own
        ({"cpu_slots": 0, "lease_gpus": ("/dev/nvidia0",)}, True),
    ],
)
def test_gpus_that_grade_are_hidden_from_notebooks(
    changes: dict[str, object], is_hidden: bool, tmp_path: Path
) -> None:
    plan = msgspec.structs.replace(planned(tmp_path, "shared"), **changes)
    given = given_to_notebooks(plan)
    assert ("CUDA_VISIBLE_DEVICES" in given) == is_hidden
    assert given.get("CUDA_VISIBLE_DEVICES", "") == ""


def test_a_terminal_finds_the_command_of_a_hub_that_was_started_by_its_path(
    tmp_path: Path,
) -> None:
    given = given_to_notebooks(planned(tmp_path, "shared"), PATH="/usr/bin:/bin")
    folders = given["PATH"].split(":")
    assert folders == [str(Path(sys.executable).parent), "/usr/bin", "/bin"]
