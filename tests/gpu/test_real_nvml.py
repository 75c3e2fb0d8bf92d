"""A real GPU: every value is measured or has a reason, and GPM says what runs.

    pytest -m gpu tests/gpu/test_real_nvml.py

The work runs in a process of its own (torch is needed), so that this one only watches.
"""

import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import pytest

from warpbook_monitors.nvml_probe import NvmlProbe, NvmlSource

pytestmark = pytest.mark.gpu

MATMUL = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
step = lambda: a @ a
"""
PINNED_COPY = """
import torch
host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
there = torch.empty_like(host, device="cuda")
step = lambda: there.copy_(host, non_blocking=True)
"""
LOOP = """
for _ in range(20): step()
torch.cuda.synchronize()
print("busy", flush=True)
while True:
    for _ in range(20): step()
    torch.cuda.synchronize()
"""


@pytest.fixture
def probe() -> Iterator[NvmlProbe]:
    """The first GPU of this machine."""
    source = NvmlSource()
    yield source.open().probes[0]
    source.close()


@contextmanager
def work(probe: NvmlProbe, script: str) -> Iterator[None]:
    """Keep that GPU busy."""
    uuid = str(probe.device.facts["uuid"])
    child = subprocess.Popen(
        [sys.executable, "-c", script + LOOP],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid},
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"busy\n"
        time.sleep(0.5)
        yield
    finally:
        child.kill()
        child.communicate()


def watch(probe: NvmlProbe, gaps_s: list[float]) -> dict[str, list[float]]:
    """Read once after each gap; per metric the values that were there."""
    probe.rest()
    seen: dict[str, list[float]] = {each.name: [] for each in probe.device.metrics}
    for gap_s in gaps_s:
        time.sleep(gap_s)
        for name, value in zip(seen, probe.read(time.monotonic_ns()), strict=True):
            if value is not None:
                seen[name].append(value)
    return seen


def test_every_metric_is_measured_or_has_a_reason(probe: NvmlProbe) -> None:
    seen = watch(probe, [0.1] * 15)
    for metric in probe.device.metrics:
        if metric.state == "ok":
            assert seen[metric.name], metric.name
            assert all(math.isfinite(value) for value in seen[metric.name]), metric.name
        else:
            assert metric.why, metric.name
            assert seen[metric.name] == [], metric.name
    print(probe.device)


def test_a_bf16_matmul_is_tensor_work(probe: NvmlProbe) -> None:
    with work(probe, MATMUL):
        seen = watch(probe, [0.1] * 30)
    print({name: median(values) for name, values in seen.items() if values})
    assert median(seen["sm_active_ratio"]) > 0.8
    assert median(seen["tensor_active_ratio"]) > 0.7
    assert median(seen["fp32_active_ratio"]) < 0.1
    assert median(seen["gpu_utilization_ratio"]) > 0.9


def test_a_copy_is_no_work_of_the_multiprocessors(probe: NvmlProbe) -> None:
    with work(probe, PINNED_COPY):
        seen = watch(probe, [0.1] * 30)
    print({name: median(values) for name, values in seen.items() if values})
    # what NVML calls utilization, and what the chip did
    assert median(seen["gpu_utilization_ratio"]) > 0.9
    assert median(seen["sm_active_ratio"]) < 0.05
    assert median(seen["pcie_rx_bytes_per_s"]) > 5e9


def test_an_idle_gpu_reads_near_zero(probe: NvmlProbe) -> None:
    time.sleep(2)
    seen = watch(probe, [0.1] * 20)
    for name in ("sm_active_ratio", "tensor_active_ratio", "dram_active_ratio"):
        assert median(seen[name]) < 0.02, name


def test_no_window_is_short_however_the_ticks_fall(probe: NvmlProbe) -> None:
    jitter = random.Random(1)
    with work(probe, MATMUL):
        seen = watch(probe, [jitter.uniform(0.01, 0.15) for _ in range(60)])
    # a window under 100 ms reads 0.0 on the chip, with success
    assert len(seen["sm_active_ratio"]) > 50
    assert min(seen["sm_active_ratio"]) > 0.5
    assert min(seen["tensor_active_ratio"]) > 0.5
