"""`warpbook limits` on a real GPU, against its datasheet; prints what it found.

pytest -m gpu -s tests/gpu/test_limits.py
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from warpbook_profiler.capture.limits import measured_ceilings
from warpbook_profiler.model.ceilings import ceilings

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    # a GPU that worked within the last second counts as in use
    time.sleep(2)


def limits(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", "limits", *options],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(*options: str) -> list[dict[str, Any]]:
    measured_limits: list[dict[str, Any]] = json.loads(limits("--json", *options))[
        "limits"
    ]
    return measured_limits


def test_what_is_measured_is_near_the_datasheet_and_kept() -> None:
    first = measured()
    print("\n" + limits())
    assert len(first) == torch.cuda.device_count()
    for limits_of_gpu in first:
        assert limits_of_gpu["gpu"] == torch.cuda.get_device_name(0)
        sheet = ceilings(limits_of_gpu["gpu"])
        assert sheet is not None, "a GPU whose datasheet is not in ceilings.py"
        assert (
            0.6 < limits_of_gpu["memory_bytes_per_s"] / sheet.memory_bytes_per_s < 1.05
        )
        for name, rate in limits_of_gpu["flops_per_s"].items():
            assert 0.3 < rate / sheet.flops_per_s[name] < 1.1, name
        assert (
            limits_of_gpu["flops_per_s"]["c10::Half"]
            > limits_of_gpu["flops_per_s"]["float"]
        )
        assert 1e9 < limits_of_gpu["host_to_device_bytes_per_s"] < 1e12
        assert 1e9 < limits_of_gpu["device_to_host_bytes_per_s"] < 1e12
        assert 500 < limits_of_gpu["launch_ns"] < limits_of_gpu["round_trip_ns"] < 1e6
    assert measured() == first
    again = measured("--again")
    assert again[0]["measured_ms"] > first[0]["measured_ms"]
    reached = measured_ceilings(first[0]["gpu"])
    assert reached is not None
    assert reached.memory_bytes_per_s == pytest.approx(
        first[0]["memory_bytes_per_s"], rel=0.1
    )


def test_the_uuid_is_the_drivers() -> None:
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid,driver_version", "--format=csv,noheader"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    uuids, drivers = zip(*(line.split(", ") for line in listed), strict=True)
    for limits_of_gpu in measured():
        assert limits_of_gpu["uuid"] in uuids
        assert limits_of_gpu["driver"] in drivers
