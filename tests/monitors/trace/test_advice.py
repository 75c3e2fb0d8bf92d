"""What a finding says to change, and which technique it names."""

from pathlib import Path

import pytest

from tests.monitors.trace.simulated import GPU
from tests.monitors.trace.written import call, kernel, report_of, trace
from warpbook_monitors.trace.figures import Finding


@pytest.mark.parametrize(
    ("name", "capability", "topic"),
    [
        ("NVIDIA A100-SXM4-80GB", (8, 0), "int8"),
        ("NVIDIA L4", (8, 9), "fp8"),
        ("NVIDIA H200", (9, 0), "fp8"),
        ("NVIDIA GeForce RTX 5090", (12, 0), "fp8"),
        # of AMD, with warps of 32 threads as NVIDIA's, and no FP8
        ("AMD Radeon RX 7900 XTX", (11, 0), "int8"),
    ],
)
def test_fp8_is_advised_where_the_gpu_has_it(
    name: str, capability: tuple[int, int], topic: str, tmp_path: Path
) -> None:
    major, minor = capability
    gpu = GPU | {"name": name, "computeMajor": major, "computeMinor": minor}
    named = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn"
    args = {"grid": [1000, 1, 1], "block": [256, 1, 1]}
    events = [call(1, 0), kernel(1, 10, name=named, dur=3000.0, args=args)]
    first = report_of(tmp_path, trace(*events, deviceProperties=[gpu])).findings[0]
    assert (first.kind, first.topic) == ("compute-bound", topic)
    assert ("FP8" in first.change) == (topic == "fp8")


def copied(tmp_path: Path, count: int, size_bytes: int, memory: str) -> Finding:
    """Copy to the GPU so often, and do nothing else."""
    events = []
    for number in range(1, count + 1):
        at = 10.0 * number
        name = f"Memcpy HtoD ({memory} -> Device)"
        args = {"bytes": size_bytes}
        events += [
            call(number, at, name="cudaMemcpyAsync"),
            kernel(number, at + 4, cat="gpu_memcpy", name=name, dur=9.0, args=args),
        ]
    findings = report_of(tmp_path, trace(*events)).findings
    return next(finding for finding in findings if finding.kind == "transfer-bound")


@pytest.mark.parametrize(
    ("count", "size_bytes", "memory", "topic", "words"),
    [
        (200, 1024, "Pinned", "zero-copy", "200 copies carry 1.00 KiB each"),
        (200, 1 << 20, "Pinned", "copy-overlap", "overlap"),
        (5, 1024, "Pinned", "copy-overlap", "overlap"),
        (200, 1024, "Pageable", "pinned-memory", "pinned memory"),
    ],
)
def test_what_is_advised_suits_the_copies(
    count: int, size_bytes: int, memory: str, topic: str, words: str, tmp_path: Path
) -> None:
    finding = copied(tmp_path, count, size_bytes, memory)
    assert finding.topic == topic
    assert words in finding.change
