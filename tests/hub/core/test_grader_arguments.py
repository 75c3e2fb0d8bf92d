"""What a grader takes for granted of its machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux tells it")
def test_a_grader_takes_the_cores_that_it_may_use() -> None:
    """A container, or `taskset`, leaves it one of many."""
    core = min(os.sched_getaffinity(0))
    script = (
        f"import os; os.sched_setaffinity(0, {{{core}}})\n"
        "from warpbook_hub.grader.__main__ import _arguments\n"
        "import sys; sys.argv[1:] = ['http://127.0.0.1:1']\n"
        "print(_arguments().cpu_slots)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


def test_a_port_of_rays_workers_is_refused_for_a_head() -> None:
    """Ray would refuse it again and again, as the command starts it anew."""
    command = [sys.executable, "-m", "warpbook_hub.grader.cluster", "10.0.0.1:12000"]
    done = subprocess.run(
        [*command, "--head", "--token-file", "none"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "name another" in done.stderr
