"""What a finding says to change, and which lab it names."""

from pathlib import Path

import pytest

from tests.monitors.trace.simulated import GPU
from tests.monitors.trace.written import call, kernel, told, trace
from warpbook_monitors.trace.figures import Finding


@pytest.mark.parametrize(
    ("name", "capability", "lab"),
    [
        ("NVIDIA A100-SXM4-80GB", (8, 0), "int8-linear"),
        ("NVIDIA L4", (8, 9), "fp8-linear"),
        ("NVIDIA H200", (9, 0), "fp8-linear"),
        ("NVIDIA GeForce RTX 5090", (12, 0), "fp8-linear"),
        # of AMD, with warps of 32 threads as NVIDIA's, and no FP8
        ("AMD Radeon RX 7900 XTX", (11, 0), "int8-linear"),
    ],
)
def test_fp8_is_advised_where_the_gpu_has_it(
    name: str, capability: tuple[int, int], lab: str, tmp_path: Path
) -> None:
    major, minor = capability
    gpu = GPU | {"name": name, "computeMajor": major, "computeMinor": minor}
    named = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn"
    args = {"grid": [1000, 1, 1], "block": [256, 1, 1]}
    events = [call(1, 0), kernel(1, 10, name=named, dur=3000.0, args=args)]
    first = told(tmp_path, trace(*events, deviceProperties=[gpu])).findings[0]
    assert (first.kind, first.lab) == ("compute-bound", lab)
    assert ("FP8" in first.change) == (lab == "fp8-linear")


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
    found = told(tmp_path, trace(*events)).findings
    return next(each for each in found if each.kind == "transfer-bound")


@pytest.mark.parametrize(
    ("count", "size_bytes", "memory", "lab", "words"),
    [
        (200, 1024, "Pinned", "zero-copy", "200 copies carry 1.00 KiB each"),
        (200, 1 << 20, "Pinned", "copy-compute-overlap", "overlap"),
        (5, 1024, "Pinned", "copy-compute-overlap", "overlap"),
        (200, 1024, "Pageable", "host-device-copies", "pinned memory"),
    ],
)
def test_what_is_advised_suits_the_copies(
    count: int, size_bytes: int, memory: str, lab: str, words: str, tmp_path: Path
) -> None:
    found = copied(tmp_path, count, size_bytes, memory)
    assert found.lab == lab
    assert words in found.change
