"""A real GPU: every value is measured or has a reason, and GPM says what runs.

    pytest -m gpu tests/gpu/test_real_nvml.py

The work runs in a process of its own (torch is needed), so that this one only watches.
"""

import math
import os
import queue
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import pytest

from tests.gpu.used_gpu import used_position
from warpbook_monitors.frames import Event, Frame
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.links import Links
from warpbook_monitors.nvml.probe import NvmlProbe, NvmlSource
from warpbook_monitors.sampling.sampler import Message, Sampler

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
PEER_COPY = """
import torch
a = torch.empty(256 << 20, dtype=torch.uint8, device="cuda:0")
b = torch.empty_like(a, device="cuda:1")
step = lambda: b.copy_(a)
"""
#: writes where there is nothing, in a process of its own: the GPU tells XID 31
ILLEGAL = """
import torch
code = 'extern "C" __global__ void f(int *p) { p[1ull << 40] = 1; }'
f = torch.cuda._compile_kernel(code, "f")
f((1, 1, 1), (1, 1, 1), (torch.zeros(1, dtype=torch.int32, device="cuda"),))
torch.cuda.synchronize()
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
    """The GPU that torch works on."""
    source = NvmlSource()
    probes = source.open().probes
    yield probes[used_position([opened.device for opened in probes])]
    source.close()


@contextmanager
def work(probe: NvmlProbe, script: str) -> Iterator[None]:
    """Keep that GPU busy, and another one where the script needs two."""
    uuid = str(probe.device.facts["uuid"])
    both = "0,1" if probe.device.index == 0 else f"{probe.device.index},0"
    visible = both if "cuda:1" in script else uuid
    child = subprocess.Popen(
        [sys.executable, "-c", script + LOOP],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": visible},
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
    seen: dict[str, list[float]] = {metric.name: [] for metric in probe.device.metrics}
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
    # bf16 runs on the HMMA pipe and on no other
    difference = median(seen["tensor_active_ratio"]) - median(seen["hmma_active_ratio"])
    assert abs(difference) < 0.05
    assert median(seen["imma_active_ratio"]) < 0.02
    assert median(seen["dfma_active_ratio"]) < 0.02
    assert median(seen["performance_state"]) == 0
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


#: by metric: how nvidia-smi calls it, what one of its units is, and what may differ
ASKED = {
    "performance_state": ("pstate", 1, 0),
    "pcie_link_generation": ("pcie.link.gen.current", 1, 0),
    "pcie_link_width": ("pcie.link.width.current", 1, 0),
    "memory_used_bytes": ("memory.used", 2**20, 2**20),
    "memory_free_bytes": ("memory.free", 2**20, 2**20),
    "memory_reserved_bytes": ("memory.reserved", 2**20, 2**20),
    "power_limit_watts": ("enforced.power.limit", 1, 0.01),
    "memory_temperature_celsius": ("temperature.memory", 1, 2),
    "encoder_utilization_ratio": ("utilization.encoder", 0.01, 0.02),
    "decoder_utilization_ratio": ("utilization.decoder", 0.01, 0.02),
    "jpeg_utilization_ratio": ("utilization.jpeg", 0.01, 0.02),
    "optical_flow_utilization_ratio": ("utilization.ofa", 0.01, 0.02),
    "ecc_corrected_count": ("ecc.errors.corrected.volatile.total", 1, 0),
    "ecc_uncorrected_count": ("ecc.errors.uncorrected.volatile.total", 1, 0),
    "ecc_corrected_lifetime_count": ("ecc.errors.corrected.aggregate.total", 1, 0),
    "ecc_uncorrected_lifetime_count": ("ecc.errors.uncorrected.aggregate.total", 1, 0),
    "retired_pages_pending": ("retired_pages.pending", 1, 0),
}
REMAPPED = {
    "remapped_rows_corrected_count": ("remapped_rows.correctable", 1, 0),
    "remapped_rows_uncorrected_count": ("remapped_rows.uncorrectable", 1, 0),
    "remapped_rows_pending": ("remapped_rows.pending", 1, 0),
    "remapped_rows_failed": ("remapped_rows.failure", 1, 0),
}
WORDS = {"No": "0", "Yes": "1"}


def nvidia_smi(
    probe: NvmlProbe, option: str, queries: dict[str, tuple[str, float, float]]
) -> dict[str, float | None]:
    """What NVIDIA's own tool says, in our units; None where it says N/A."""
    names = ",".join(name for name, _, _ in queries.values())
    command = ["nvidia-smi", f"{option}={names}", "--format=csv,noheader,nounits"]
    command += ["-i", str(probe.device.facts["uuid"])]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: dict[str, float | None] = {}
    for (metric, (_, unit, _)), word in zip(
        queries.items(), output.strip().split(","), strict=True
    ):
        word = WORDS.get(word.strip(), word.strip()).removeprefix("P")
        try:
            values[metric] = float(word) * unit
        except ValueError:
            values[metric] = None
    return values


@pytest.mark.parametrize(
    ("option", "queries"), [("--query-gpu", ASKED), ("--query-remapped-rows", REMAPPED)]
)
def test_what_changes_seldom_is_as_nvidia_smi_says(
    probe: NvmlProbe, option: str, queries: dict[str, tuple[str, float, float]]
) -> None:
    theirs = nvidia_smi(probe, option, queries)
    # all tiers are due
    values = probe.read(time.monotonic_ns() + 20_000_000_000)
    ours = {m.name: v for m, v in zip(probe.device.metrics, values, strict=True)}
    for name in queries:
        print(f"{name:36} ours {ours[name]} nvidia-smi {theirs[name]}")
    for name, (_, _, allowed) in queries.items():
        if theirs[name] is None or ours[name] is None:
            assert theirs[name] == ours[name], name
        else:
            assert ours[name] == pytest.approx(theirs[name], abs=allowed), name
    for name in ("temperature_slowdown_celsius", "ecc_mode", "power_limit_watts"):
        print(name, probe.device.facts.get(name))


def test_a_reading_costs_what_the_tiers_promise(probe: NvmlProbe) -> None:
    """Prints what a tick costs on this GPU: the figures are for the evidence."""
    tick_ms = []
    for _ in range(110):
        time.sleep(0.1)
        begun_s = time.perf_counter()
        values = probe.read(time.monotonic_ns())
        tick_ms.append(1000 * (time.perf_counter() - begun_s))
    tick_ms.sort()
    print(f"median {median(tick_ms):.2f} ms, 90 % {tick_ms[99]:.2f}, ", end="")
    print(f"max {tick_ms[-1]:.2f}")
    assert len(values) == len(probe.device.metrics)


def test_pcie_without_gpm_agrees_with_gpm(probe: NvmlProbe) -> None:
    """What A100 and T4 are read by, on a GPU that can be read both ways."""
    links = Links(None)
    with work(probe, PINNED_COPY):
        seen = watch(probe, [0.1] * 20)
        blocking = [links.pcie(probe.handle) for _ in range(10)]
    by_gpm = median(seen["pcie_rx_bytes_per_s"])
    by_nvml = median(rx for rx, _ in blocking)
    print(f"PCIe in: GPM {by_gpm / 1e9:.2f} GB/s, NVML {by_nvml / 1e9:.2f} GB/s")
    assert by_nvml == pytest.approx(by_gpm, rel=0.02)


def test_nvlink_without_gpm_agrees_with_gpm(probe: NvmlProbe) -> None:
    count = probe.device.facts["nvlink_count"]
    links = Links(count)
    if count == 0:
        with pytest.raises(nvml.NotSupported, match="No NVLink"):
            links.nvlink(probe.handle)
        return
    with work(probe, PEER_COPY):
        links.nvlink(probe.handle)
        seen = watch(probe, [0.1] * 20)
        _, by_nvml = links.nvlink(probe.handle)
    by_gpm = median(seen["nvlink_tx_bytes_per_s"])
    print(f"NVLink out: GPM {by_gpm / 1e9:.2f} GB/s, NVML {by_nvml / 1e9:.2f} GB/s")
    # NVML counts the data alone, GPM what the protocol adds as well
    assert by_nvml == pytest.approx(by_gpm, rel=0.05)


def test_an_illegal_access_is_told_as_an_event(probe: NvmlProbe) -> None:
    assert probe.event_kinds, "the event set does not register on this GPU"
    sampler = Sampler([NvmlSource()])
    messages: queue.Queue[Message] = queue.Queue()
    sampler.listen(messages.put)
    sampler.open()
    with sampler.watch("test"):
        while not isinstance(messages.get(timeout=10), Frame):
            pass
        time.sleep(0.5)
        subprocess.run([sys.executable, "-c", ILLEGAL], capture_output=True)
        time.sleep(1)
        events = []
        while not messages.empty():
            message = messages.get()
            if isinstance(message, Event):
                events.append(message)
    sampler.close()
    print(events)
    # a container may not be told of errors; then nothing is, and nothing breaks
    assert {event.code for event in events} <= {13, 31, 43, 45, 154}
