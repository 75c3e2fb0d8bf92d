"""A limit card of a real GPU, and the trace of a submission on it.

pytest -m gpu tests/gpu/test_labs_limits_and_trace.py
"""

from pathlib import Path

import pytest

from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.gpu.limit_card import limit_card
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load
from warpbook_monitors.recordings.recording import read_recording
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report

pytestmark = pytest.mark.gpu


def test_the_card_is_plausible_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    gpu = find_gpu()
    card = limit_card(gpu.uuid, gpu.driver)
    assert card.gpu == gpu.name
    assert card.uuid == gpu.uuid
    assert card.copy_bytes_per_s > card.host_to_device_bytes_per_s > 1e9
    assert card.read_bytes_per_s is not None
    assert 0.9 < card.read_bytes_per_s / card.copy_bytes_per_s < 1.5
    assert 1_000 < card.launch_latency_ns < 200_000
    assert card.flops_unknown == ""
    assert card.flops_per_s["float16"] > card.flops_per_s["float32"] > 1e12
    assert limit_card(gpu.uuid, gpu.driver) == card


def test_a_submission_is_traced(tmp_path: Path) -> None:
    loaded = load(CATALOGUE / "kernels" / "vector_add")
    trace, telemetry = tmp_path / "t.trace.json.gz", tmp_path / "t.jsonl.gz"
    grader_of(loaded.lab).record_trace(
        find_gpu(), Submission(loaded, loaded.reference), trace, telemetry
    )
    trace_report = report(*read_chrome_trace(str(trace)))
    assert [kernel.name for kernel in trace_report.kernels] == ["add_relu"]
    assert trace_report.kernels[0].calls == 10
    recorded = read_recording(telemetry)
    assert recorded.problem is None
    assert len(recorded.frames) > 5
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        telemetry.name,
        trace.name,
    ]
