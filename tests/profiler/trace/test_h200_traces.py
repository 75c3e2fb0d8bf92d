"""Traces recorded on a real H200; expectations are computed here from the JSON.

The few literal figures are those of the research notes that came with the traces.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile, CopyRow
from warpbook_profiler.report.report import report
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
NAMES = sorted(path.name.removesuffix(".json.gz") for path in TRACES.glob("*.gz"))


def profile(name: str) -> CellProfile:
    return analyse(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))


def events(name: str) -> list[dict[str, Any]]:
    with gzip.open(TRACES / f"{name}.json.gz") as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]


def nanoseconds(event: dict[str, Any]) -> tuple[int, int]:
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def union_by_marks(pairs: list[tuple[int, int]]) -> int:
    """A sweep over begin and end marks, unlike the code under test."""
    marks = sorted([(a, 1) for a, _ in pairs] + [(b, -1) for _, b in pairs])
    open_count = total = since = 0
    for at, step in marks:
        if open_count:
            total += at - since
        since = at
        open_count += step
    return total


@pytest.mark.parametrize("name", NAMES)
def test_times_on_the_gpu_agree_with_the_file(name: str) -> None:
    cell_profile, on_gpu = (
        profile(name),
        [e for e in events(name) if e["cat"] in ON_GPU],
    )
    kernels = [e for e in on_gpu if e["cat"] == "kernel"]
    assert cell_profile.gpu_name == "NVIDIA H200"
    assert cell_profile.gpu_busy_ns == union_by_marks([nanoseconds(e) for e in on_gpu])
    assert cell_profile.kernel_calls == len(kernels)
    kernel_ns = sum(b - a for a, b in map(nanoseconds, kernels))
    assert cell_profile.kernel_time_ns == kernel_ns
    calls = Counter(e["name"][:1000] for e in kernels)
    assert {row.name: row.calls for row in cell_profile.kernels} == calls
    assert sum(row.share_ratio for row in cell_profile.kernels) == pytest.approx(
        1 if kernels else 0
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_launch_finds_its_work(name: str) -> None:
    cell_profile = profile(name)
    on_gpu = {e["args"]["correlation"] for e in events(name) if e["cat"] in ON_GPU}
    assert cell_profile.launches == len(on_gpu)
    assert cell_profile.completeness.matched == cell_profile.launches
    assert not [w for w in cell_profile.completeness.warnings if "missing" in w]


@pytest.mark.parametrize("name", NAMES)
def test_the_lanes_hold_every_event_on_the_gpu(name: str) -> None:
    cell_profile = profile(name)
    drawn = sum(
        len(lane.starts_ns)
        for lane in cell_profile.lanes
        if lane.label.startswith("Stream")
    )
    assert cell_profile.completeness.lanes_omitted == 0
    assert drawn == len([e for e in events(name) if e["cat"] in ON_GPU])
    for lane in cell_profile.lanes:
        assert list(lane.starts_ns) == sorted(lane.starts_ns)
        assert min(lane.starts_ns) >= 0


def test_kernels_of_a_microsecond_are_not_rounded_away() -> None:
    cell_profile = profile("tiny_kernels")
    assert cell_profile.kernel_calls == 800
    assert cell_profile.gpu_busy_ns == pytest.approx(802_600, abs=100)


def test_one_graph_launch_owns_all_its_kernels() -> None:
    cell_profile = profile("graph_replay")
    assert (cell_profile.launches, cell_profile.kernel_calls) == (1, 800)
    assert cell_profile.gpu_busy_ns == pytest.approx(917_600, abs=100)


def test_driver_launches_count() -> None:
    """nvjet goes through cuLaunchKernelEx, Triton through cuLaunchKernel."""
    assert profile("matmul_bf16").launches == 10
    assert profile("train_fp32").launches == 47 + 6 + 6 + 8 + 4


def test_busy_is_the_union_where_streams_overlap() -> None:
    cell_profile = profile("ddp_rank0")
    assert (
        cell_profile.gpu_busy_ns is not None and cell_profile.kernel_time_ns is not None
    )
    assert cell_profile.kernel_time_ns / cell_profile.gpu_busy_ns == pytest.approx(
        1.39, abs=0.005
    )


def test_the_profilers_own_waits_are_not_the_cells() -> None:
    """Each file ends with two cudaDeviceSynchronize of the profiler."""
    assert profile("tiny_kernels").synchronizations == 0
    waits = [e for e in events("ddp_rank0") if e["name"] == "cudaEventSynchronize"]
    assert profile("ddp_rank0").synchronizations == len(waits)


def test_a_copy_says_whether_its_memory_was_pinned() -> None:
    (row,) = profile("pinned_h2d").copies
    assert row == CopyRow(
        "HtoD (Pinned -> Device)", 8, 8 * 134_217_728, 19_344_292, ("host copies",)
    )


def test_the_profilers_buffer_request_is_nobodys_operator() -> None:
    """It takes 1.5 ms in the middle of the first operator."""
    cell_profile = profile("tiny_kernels")
    assert any("profiler's own work" in w for w in cell_profile.completeness.warnings)
    operators = union_by_marks(
        [nanoseconds(e) for e in events("tiny_kernels") if e["cat"] == "cpu_op"]
    )
    overhead = [e for e in events("tiny_kernels") if e["cat"] == "overhead"]
    overhead_ns = sum(round(e["dur"] * 1e3) for e in overhead)
    assert sum(row.self_ns for row in cell_profile.operators) == operators - overhead_ns


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        # five 8192 products of bf16 fill the window; nothing waits
        ("matmul_bf16", "compute-bound", "tensor cores"),
        # nothing but copies from pinned memory, at the bus's rate
        ("pinned_h2d", "transfer-bound", "already pinned"),
        # 800 launches of 1 µs kernels: the host is 10 times slower than the GPU
        ("tiny_kernels", "launch-bound", "one by one"),
        # the same in a CUDA graph: no launch is in the way, the kernels are too small
        ("graph_replay", "launch-bound", "too small"),
        # FP32 matrix products on FP32 cores, 67 TFLOP/s where bf16 has 989
        ("train_fp32", "compute-bound", "FP32 cores"),
        # half of the window computes on tensor cores; a third waits for the all-reduce
        ("ddp_rank0", "compute-bound", "tensor cores"),
    ],
)
def test_the_verdict_is_an_experts(name: str, kind: str, words: str) -> None:
    trace_report = report(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))
    assert trace_report.verdict.kind == kind
    assert words in trace_report.verdict.sentence
    assert trace_report.completeness.lost == 0
    # the profiler's own set-up takes 1.4 to 2.6 ms of each of these windows
    assert trace_report.completeness.profiler_ns > 1_000_000


def test_half_the_time_of_a_distributed_step_is_exposed_communication() -> None:
    trace_report = report(*read_chrome_trace(str(TRACES / "ddp_rank0.json.gz")))
    assert trace_report.rank == 0
    causes = {finding.kind: finding.share for finding in trace_report.findings}
    # 3.14 ms of a bare run of 10.1
    assert causes["communication-bound"] == pytest.approx(0.31, abs=0.01)


def test_arithmetic_from_shapes_meets_the_measured_rate() -> None:
    metrics = report(*read_chrome_trace(str(TRACES / "matmul_bf16.json.gz"))).metrics
    assert metrics.flops == 5 * 2 * 8192**3
    # 770 to 815 TFLOP/s were measured without a profiler
    assert metrics.flops / metrics.compute_ns / 1e3 == pytest.approx(800, rel=0.05)


def test_occupancy_where_upstream_says_zero() -> None:
    metrics = report(*read_chrome_trace(str(TRACES / "matmul_bf16.json.gz"))).metrics
    # 384 threads of 2048, one block: 188,636 bytes of shared memory leave no second
    assert metrics.occupancy_share == pytest.approx(384 / 2048)
