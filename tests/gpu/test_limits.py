"""`warpbook limits` on a real GPU, against its datasheet; prints what it found.

pytest -m gpu -s tests/gpu/test_limits.py
"""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from warpbook_profiler.capture.limits import Answer, limits_here
from warpbook_profiler.model.calibration import defaults
from warpbook_profiler.model.ceilings import ceilings
from warpbook_profiler.model.limits import Limits

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def started(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "warpbook.cli.main", "limits", *options],
        stdout=subprocess.PIPE,
    )


def measured(process: subprocess.Popen[bytes]) -> tuple[Limits, ...]:
    printed = process.communicate(timeout=400)[0]
    assert process.returncode == 0
    return msgspec.json.decode(printed, type=Answer).limits


def test_what_is_measured_is_near_the_datasheet_and_kept() -> None:
    # two at once: the second waits, and finds what the first kept
    both = [started("--json") for _ in range(2)]
    first, second = map(measured, both)
    assert first == second
    print("\n" + started().communicate(timeout=400)[0].decode())
    assert len(first) == torch.cuda.device_count()
    for limits in first:
        assert limits.gpu == torch.cuda.get_device_name(0)
        assert not limits.left_out
        assert set(limits.curves) == set(defaults().curves)
        sheet, reached = ceilings(limits.gpu), limits.ceilings
        assert sheet is not None, "a GPU whose datasheet is not in ceilings.py"
        assert reached is not None
        assert 0.6 < reached.memory_bytes_per_s / sheet.memory_bytes_per_s < 1.05
        for name, rate in reached.flops_per_s.items():
            assert 0.3 < rate / sheet.flops_per_s[name] < 1.1, name
        assert reached.flops_per_s["c10::Half"] > reached.flops_per_s["float"]
        for way in ("to_gpu", "to_host"):
            pinned = limits.rate(f"copy.{way}.pinned")
            assert pinned is not None and 1e9 < pinned < 1e12
        (launch,), (trip,) = limits.curves["launch"], limits.curves["round_trip"]
        assert 500 < launch.low_ns < trip.usual_ns < 1e6
    assert limits_here(first[0].gpu, str(torch.__version__)) in first
    (again, *_) = measured(started("--json", "--again"))
    assert again.measured_ms > first[0].measured_ms


def test_the_uuid_is_the_drivers() -> None:
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid,driver_version", "--format=csv,noheader"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    uuids, drivers = zip(*(line.split(", ") for line in listed), strict=True)
    for limits in measured(started("--json")):
        assert limits.uuid in uuids
        assert limits.driver in drivers
