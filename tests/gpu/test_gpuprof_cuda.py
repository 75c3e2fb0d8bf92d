"""The cell profiler on a real GPU: every launch is matched, every kernel counted.

    pytest -m gpu -s tests/gpu/test_gpuprof_cuda.py

prints what starting, stopping and having profiled cost there.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict.analysis import analyse

pytestmark = pytest.mark.gpu

MIB = 2**20


def profiled(cell: Callable[[], object], memory: bool = False) -> CellProfile:
    capture = Capture(memory)
    capture.start()
    cell()
    cell_profile = analyse(*capture.stop())
    print(
        f"\nwall {cell_profile.wall_ns} ns, busy {cell_profile.gpu_busy_ns} ns, "
        f"kernels {cell_profile.kernel_calls}, {cell_profile.completeness}, "
        f"profiler {cell_profile.profiler_ns} ns, "
        f"first start {cell_profile.first_start_ns}"
    )
    return cell_profile


def assert_complete(cell_profile: CellProfile) -> None:
    assert cell_profile.completeness.matched == cell_profile.completeness.launches > 0
    wrong = [
        warning
        for warning in cell_profile.completeness.warnings
        if "profiler's own" not in warning and "warpbook limits" not in warning
    ]
    assert wrong == []
    assert cell_profile.gpu_busy_ns is not None
    assert 0 < cell_profile.gpu_busy_ns <= cell_profile.wall_ns
    assert cell_profile.gpu_name == torch.cuda.get_device_name()


@pytest.fixture(autouse=True)
def warm_and_idle() -> Iterator[None]:
    torch.ones(8, device="cuda").add_(1)
    torch.cuda.synchronize()
    yield
    torch.cuda.synchronize()


def test_tiny_kernels_are_counted_exactly() -> None:
    x = torch.ones(8, device="cuda")

    def cell() -> None:
        for _ in range(1000):
            x.add_(1)

    profiled(cell)
    cell_profile = profiled(cell)
    assert_complete(cell_profile)
    assert (cell_profile.kernel_calls, cell_profile.launches) == (1000, 1000)
    assert (
        cell_profile.kernel_time_ns is not None and cell_profile.gpu_busy_ns is not None
    )
    # one after the other on one stream: nothing overlaps
    assert cell_profile.kernel_time_ns == pytest.approx(
        cell_profile.gpu_busy_ns, rel=0.01
    )
    assert cell_profile.synchronizations == 0
    assert [row.calls for row in cell_profile.kernels] == [1000]
    assert {row.name: row.calls for row in cell_profile.operators}["aten::add_"] == 1000


def test_a_matmul_keeps_the_gpu_busy_as_long_as_events_say() -> None:
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    a @ a
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def cell() -> None:
        begin.record()
        for _ in range(50):
            a @ a
        end.record()
        torch.cuda.synchronize()

    cell_profile = profiled(cell)
    assert_complete(cell_profile)
    assert cell_profile.kernel_calls == 50 and cell_profile.gpu_busy_ns is not None
    assert cell_profile.gpu_busy_ns / 1e6 == pytest.approx(
        begin.elapsed_time(end), rel=0.1
    )
    assert cell_profile.synchronizations == 1


def test_copies_say_pinned_or_pageable_with_their_bytes() -> None:
    pinned = torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True)
    pageable = torch.ones(16 * MIB, dtype=torch.uint8)
    on_gpu = torch.empty_like(pinned, device="cuda")
    torch.cuda.synchronize()

    def cell() -> None:
        for _ in range(4):
            on_gpu.copy_(pinned, non_blocking=True)
        on_gpu[: 16 * MIB].copy_(pageable)
        on_gpu[: 16 * MIB].cpu()

    cell_profile = profiled(cell)
    assert_complete(cell_profile)
    by_kind = {row.kind: row for row in cell_profile.copies}
    print(by_kind)
    assert by_kind["HtoD (Pinned -> Device)"].calls == 4
    assert by_kind["HtoD (Pinned -> Device)"].size_bytes == 4 * 64 * MIB
    assert by_kind["HtoD (Pageable -> Device)"].size_bytes == 16 * MIB
    assert by_kind["DtoH (Device -> Pageable)"].size_bytes == 16 * MIB
    assert cell_profile.synchronizations > 0


def test_a_graphs_replay_has_one_launch_and_all_kernels() -> None:
    x = torch.ones(8, device="cuda")

    def record() -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(200):
                x.add_(1)
        return graph

    graph = record()
    cell_profile = profiled(lambda: [graph.replay() for _ in range(3)])
    assert_complete(cell_profile)
    assert (cell_profile.kernel_calls, cell_profile.launches) == (600, 3)

    recorded_inside = profiled(lambda: record().replay())
    assert_complete(recorded_inside)
    assert recorded_inside.kernel_calls is not None
    assert recorded_inside.kernel_calls >= 200


def test_peak_memory_is_the_cells() -> None:
    large = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    del large
    of_process = torch.cuda.max_memory_allocated()

    def cell() -> None:
        torch.empty(128 * MIB, dtype=torch.uint8, device="cuda").fill_(1)

    # another peak of the process is higher, and stays what it is
    assert profiled(cell).peak_allocated_bytes is None
    cell_profile = profiled(cell, memory=True)
    assert torch.cuda.max_memory_allocated() == of_process
    assert cell_profile.peak_allocated_bytes is not None
    assert 128 * MIB <= cell_profile.peak_allocated_bytes < 512 * MIB
    assert cell_profile.peak_reserved_bytes is not None
    assert cell_profile.peak_reserved_bytes >= cell_profile.peak_allocated_bytes


def test_twenty_profiles_in_a_row_lose_nothing() -> None:
    x = torch.ones(8, device="cuda")
    counts = []
    for _ in range(20):
        cell_profile = profiled(lambda: [x.add_(1) for _ in range(50)])
        counts.append((cell_profile.kernel_calls, cell_profile.completeness.matched))
        time.sleep(0.5)
    assert counts == [(50, 50)] * 20


def test_a_large_cell_is_whole_or_says_that_it_is_not() -> None:
    x = torch.ones(8, device="cuda")

    def cell() -> None:
        for _ in range(200_000):
            x.add_(1)

    cell_profile = profiled(cell)
    missing = cell_profile.completeness.launches - cell_profile.completeness.matched
    assert missing == 0 or any(
        "missing" in w for w in cell_profile.completeness.warnings
    )


PROGRAM = """
import json, time
import torch
from warpbook_profiler.verdict.analysis import analyse
from warpbook_profiler.capture.kineto import Capture
"""


def told_by(program: str, **env: str) -> dict[str, float]:
    """Run a program in a process of its own, since CUDA is set up only once."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=120,
    )
    print(f"\n{done.stdout}{done.stderr}")
    assert done.returncode == 0
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def test_a_first_cell_that_leaves_cuda_alone_spoils_no_later_one() -> None:
    """Kineto, set up before CUDA was, saw nothing later and hung at the exit."""
    times = told_by(
        """
capture = Capture(); capture.start()
torch.ones(3)
first = analyse(*capture.stop())
x = torch.ones(8, device="cuda")
capture = Capture(); capture.start()
for _ in range(50): x.add_(1)
later = analyse(*capture.stop())
print(json.dumps({"busy": first.gpu_busy_ns, "kernels": later.kernel_calls,
    "first_start_ns": first.first_start_ns}))
"""
    )
    assert times["busy"] == 0
    assert times["kernels"] == 50


def test_the_first_cell_of_a_kernel_may_set_cuda_up() -> None:
    times = told_by(
        """
capture = Capture(); capture.start()
x = torch.ones(8, device="cuda")
for _ in range(100): x.add_(1)
found = analyse(*capture.stop())
print(found.completeness, [(row.name[:40], row.calls) for row in found.kernels])
print(json.dumps({"kernels": found.kernel_calls, "launches": found.launches,
    "matched": found.completeness.matched, "first_start_ns": found.first_start_ns}))
"""
    )
    assert times["kernels"] == 101
    assert times["matched"] == times["launches"] == 101


SLOWDOWN = """
x = torch.ones(8, device="cuda")
def launches_per_s():
    best = 0.0
    for _ in range(5):
        torch.cuda.synchronize(); began = time.perf_counter()
        for _ in range(20_000): x.add_(1)
        torch.cuda.synchronize()
        best = max(best, 20_000 / (time.perf_counter() - began))
    return best
launches_per_s()
before = launches_per_s()
capture = Capture(); capture.start(); x.add_(1); capture.stop()
began = time.perf_counter()
capture = Capture(); capture.start()
later_start_ms = (time.perf_counter() - began) * 1e3
x.add_(1); capture.stop()
print(json.dumps({"before": before, "after": launches_per_s(),
    "later_start_ms": later_start_ms}))
"""


def test_how_fast_the_kernel_launches_after_a_profile() -> None:
    """Printed, not asserted: timings belong to the machine."""
    for teardown in ("1", "0"):
        times = told_by(SLOWDOWN, TEARDOWN_CUPTI=teardown)
        print(
            f"TEARDOWN_CUPTI={teardown}: {times['after'] / times['before']:.3f} of the "
            f"launch rate from before; later start {times['later_start_ms']:.1f} ms"
        )
