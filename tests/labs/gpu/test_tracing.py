"""A submission's trace: where there can be none, it is said why."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from warpbook_labs.engines.kernels.tracing import trace_submission
from warpbook_labs.errors import NoTrace
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.tracing import TraceRequest, case_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load

GPU = Gpu("GPU-5", "NVIDIA H200", "sm_90", "580.1")
LAB = CATALOGUE / "kernels" / "vector_add"


def test_a_pytorch_that_knows_no_gpu_is_named(tmp_path: Path) -> None:
    loaded = load(LAB)
    trace, telemetry = tmp_path / "t.json.gz", tmp_path / "t.jsonl.gz"
    with pytest.raises(NoTrace, match=r"PyTorch .* can't use the GPU here"):
        trace_submission(GPU, Submission(loaded, loaded.reference), trace, telemetry)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_compile_is_not_traced(tmp_path: Path) -> None:
    source = "// launch: f<<<1, 1>>>(n)\nno kernel"
    with pytest.raises(NoTrace, match="does not compile"):
        trace_submission(
            GPU, Submission(load(LAB), source), tmp_path / "t", tmp_path / "u"
        )


def test_a_source_without_a_launch_is_not_traced(tmp_path: Path) -> None:
    with pytest.raises(NoTrace):
        trace_submission(GPU, Submission(load(LAB), ""), tmp_path / "t", tmp_path / "u")


def test_without_pytorch_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    request = TraceRequest(
        folder=str(LAB),
        source=load(LAB).reference,
        image=b"",
        case=case_of(load(LAB)),
        trace=str(tmp_path / "t"),
        telemetry=str(tmp_path / "u"),
    )
    without = "import sys; sys.modules['torch'] = None\n"
    code = without + "from warpbook_labs.engines.kernels.tracing import main; main()"
    completed = subprocess.run(
        [sys.executable, "-c", code],
        input=msgspec.msgpack.encode(request),
        capture_output=True,
        check=True,
    )
    answer = msgspec.json.decode(completed.stdout)
    assert "no trace without PyTorch" in answer["problem"]
    assert "pip install 'warpbook-labs[torch]'" in answer["problem"]
