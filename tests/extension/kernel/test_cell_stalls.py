"""`%%gpuprof --stalls` with a stub of CUPTI: how a cell runs again, what is said."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stub_cupti import build

PROGRAM = """\
import json, sys
import msgspec
from IPython.core.interactiveshell import InteractiveShell
from warpbook.kernel.profile.cell_stalls import cell_stalls
from warpbook_profiler.model.cell_profile import KernelRow

shell = InteractiveShell.instance()
shell.extension_manager.load_extension("warpbook")
shell.run_cell("import signal\\nran = 0\\ntold = []")
shell.run_cell("%%gpuprof -q -o p\\nran = 1")
kernels = (KernelRow("kernel", 1, 1_000_000, 1.0),)
profile = msgspec.structs.replace(shell.user_ns["p"].figures, kernels=kernels)
for way, cell in json.loads(sys.argv[1]):
    stalls = cell_stalls(shell, cell, way, profile)
    ran = shell.user_ns["ran"]
    print(json.dumps([stalls.state, stalls.note, len(stalls.kernels), ran]))
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stub_cupti"))


def run(stub: Path, fault: str, *cells: tuple[str, str]) -> list[Any]:
    """Return state, note, sampled kernels and `ran` after each cell."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(cells)],
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(stub),
            "CUDA_HOME": str(stub),
            "IPYTHONDIR": str(stub / "ipython"),
            "STUB_FAULT": fault,
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("enabled") == ran.stderr.count("disabled")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_cell_runs_again_as_it_is_asked_for(stub: Path) -> None:
    copies, rerun, interrupted, opened, failed, awaits = run(
        stub,
        "",
        ("copies", "ran += 1"),
        ("rerun", "ran += 1"),
        ("rerun", "ran += 1\nsignal.raise_signal(signal.SIGINT)"),
        ("copies", "ran += 1\nopen('file', 'w')"),
        ("rerun", "1 / 0"),
        ("rerun", "import asyncio\nawait asyncio.sleep(0)"),
    )
    assert (copies[0], copies[2:]) == ("sampled", [1, 1])
    assert "on copies of its state" in copies[1]
    assert (rerun[0], rerun[2:]) == ("sampled", [1, 2])
    assert "side effects happened twice" in rerun[1]
    assert (interrupted[0], interrupted[2:]) == ("failed", [0, 3])
    assert "interrupted" in interrupted[1]
    assert (opened[0], opened[2:]) == ("refused", [0, 3])
    assert "writing" in opened[1] and "--stalls rerun" in opened[1]
    assert (failed[0], failed[2:]) == ("failed", [0, 3])
    assert "ZeroDivisionError" in failed[1]
    # what was asked for is no remedy
    assert (awaits[0], "awaits" in awaits[1]) == ("refused", True)
    assert "--stalls rerun" not in awaits[1]


def test_what_the_sampler_says_is_not_taken_for_the_cells(stub: Path) -> None:
    said = run(
        stub, "PCSamplingEnable=35", ("copies", "ran += 1"), ("rerun", "ran += 1")
    )
    for state, note, kernels, _ in said:
        assert (state, kernels) == ("denied", 0)
        assert "RmProfilingAdminOnly" in note
