"""What a finding says to change, and which technique it names."""

from pathlib import Path

import pytest

from tests.profiler.trace.simulated import GPU
from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.model.figures import Finding, KernelWork
from warpbook_profiler.verdict.advice import moved_better


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


@pytest.mark.parametrize(
    ("times_us", "names", "words"),
    [
        ((900.0,), ("float",), "That is one kernel: there is nothing to fuse."),
        (
            (300.0, 300.0, 300.0),
            ("float",) * 3,
            "That is one kernel, launched 3 times: there is nothing to fuse unless",
        ),
        ((300.0, 300.0), ("float", "half"), "Move fewer bytes: fuse kernels"),
        # a product that the pass may be a part of
        ((900.0, 900.0), ("float", "ampere_sgemm_128x64_tn"), "fuse kernels"),
        # and one that takes too little to matter
        ((900.0, 12.0), ("float", "ampere_sgemm_128x64_tn"), "nothing to fuse"),
    ],
)
def test_what_stands_alone_is_not_to_be_fused(
    times_us: tuple[float, ...], names: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    args = {"grid": [4096, 1, 1], "block": [256, 1, 1]}
    events, at = [], 10.0
    for number, (name, time_us) in enumerate(zip(names, times_us, strict=True), 1):
        title = name if "gemm" in name else f"void nchwToNhwcKernel<{name}>"
        events += [
            call(number, float(number)),
            kernel(number, at, name=title, dur=time_us, args=args),
        ]
        at += time_us
    findings = report_of(tmp_path, trace(*events)).findings
    (finding,) = [one for one in findings if one.topic == "memory-traffic"]
    assert words in finding.change


def test_a_kernel_far_from_the_ceiling_wants_another_layout() -> None:
    slow = KernelWork("memory", 1_000, 1, 0.03, kinds=1)
    assert "Another layout" in moved_better(slow, (slow,))
    # the ceiling that was measured here counts more than the datasheet's
    near = KernelWork("memory", 1_000, 1, 0.4, 0.6, kinds=1)
    assert "smaller dtype" in moved_better(near, (near,))


def test_kernels_that_nobody_counted_may_be_fused() -> None:
    old = KernelWork("memory", 1_000, 1, 0.6)
    assert "fuse kernels" in moved_better(old, (old,))
