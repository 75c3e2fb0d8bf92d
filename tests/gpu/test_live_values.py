"""The whole live path on a real GPU: values against NVIDIA's own tool, while cells run.

A real Jupyter server reads the real NVML, a real kernel runs the work, a WebSocket
client takes the frames. `pytest -m gpu -s tests/gpu/test_live_values.py` prints the
figures that are kept in docs/evidence/.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
import re
import statistics
import subprocess

import pytest

from tests.gpu.lab import Frames, frames, kernel
from tests.gpu.used_gpu import used_index

pytestmark = pytest.mark.gpu

#: what each kind of cell runs, in steady state for as long as it is measured
CELLS = {
    "idle": "time.sleep(11)",
    "bf16 matmul": """
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while time.monotonic() < end:
    for _ in range(50):
        y = x @ x
    torch.cuda.synchronize()
""",
    "device copy": """
x = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
y = torch.empty_like(x)
while time.monotonic() < end:
    for _ in range(50):
        y.copy_(x)
    torch.cuda.synchronize()
""",
    "pinned H2D copy": """
x = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
y = torch.empty_like(x, device="cuda")
while time.monotonic() < end:
    for _ in range(20):
        y.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
""",
    "launch-bound loop": """
x = torch.zeros(64, device="cuda")
while time.monotonic() < end:
    for _ in range(2000):
        x.add_(1)
""",
}
PREAMBLE = "import time, torch; end = time.monotonic() + 11\n"
#: name in a frame: (GPM metric id of `nvidia-smi dmon --gpm-metrics`, points per unit)
COMPARED = {
    "sm_active_ratio": (2, 100),
    "sm_occupancy_ratio": (3, 100),
    "tensor_active_ratio": (5, 100),
    "dfma_active_ratio": (6, 100),
    "hmma_active_ratio": (7, 100),
    "imma_active_ratio": (9, 100),
    "dram_active_ratio": (10, 100),
    "fp32_active_ratio": (12, 100),
    "pcie_rx_bytes_per_s": (21, 1 / 2**20),
}
SECONDS = 5


async def dmon() -> dict[int, float]:
    """Mean of what nvidia-smi reads of the GPU in the next seconds, by metric id."""
    ids = sorted(number for number, _ in COMPARED.values())
    listed = ",".join(map(str, ids))
    gpu = str(used_index())
    process = await asyncio.create_subprocess_exec(
        *("nvidia-smi", "dmon", "-i", gpu, "-d", "1", "-c", str(SECONDS + 1)),
        *("-s", "u", "--gpm-metrics", listed, "--format", "csv,nounit"),
        stdout=subprocess.PIPE,
    )
    output = (await process.communicate())[0].decode()
    rows = [re.split(r"[,\s]+", line.strip()) for line in output.splitlines()]
    # the first row's window began before this one; the GPM columns are the last
    data = [row for row in rows if row and row[0] == gpu][1:]
    tails = [row[-len(ids) :] for row in data]
    assert tails, output
    return {
        number: statistics.fmean(float(row[at]) for row in tails if row[at] != "-")
        for at, number in enumerate(ids)
    }


async def test_frames_agree_with_nvidia_smi(jp_fetch, jp_ws_fetch) -> None:
    wrong = []
    async with frames(jp_ws_fetch) as seen, kernel(jp_fetch, jp_ws_fetch) as busy:
        gpu = seen.gpu
        print(f"\n{gpu['name']}, driver {gpu['facts']['driver_version']}, ", end="")
        print(f"Python {platform.python_version()}, ", end="")
        print(f"nvidia-ml-py {importlib.metadata.version('nvidia-ml-py')}")
        assert seen.hello["replay"] is None
        for name, code in CELLS.items():
            await busy.begin(PREAMBLE + code)
            await asyncio.sleep(4)  # imports, warm-up, clocks
            reading = asyncio.create_task(dmon())
            await asyncio.sleep(1)  # its first second is left out, so is ours
            start = len(seen.frames)
            theirs = await reading
            measured = slice(start, len(seen.frames))
            wrong += compare(name, seen, measured, theirs)
            await busy.finish()
    assert not wrong


def compare(
    name: str, seen: Frames, measured: slice, theirs: dict[int, float]
) -> list[tuple[str, str, float, float]]:
    """Print both sides; give where they differ too much."""
    times = [frame["time_ms"] for frame in seen.frames[measured]]
    rate = (len(times) - 1) / (times[-1] - times[0]) * 1000
    cpu = 100 * seen.mean("sampler_cpu_ratio", measured, "monitor")
    tick = seen.values("tick_ms", measured, "monitor")
    lag = max(seen.values("loop_lag_ms", measured, "monitor"))
    print(
        f"{name}: asked 10/s, delivered {rate:.2f}/s; NVML utilization "
        f"{100 * seen.mean('gpu_utilization_ratio', measured):.0f} %; sampler "
        f"{cpu:.2f} % of a core, tick {statistics.median(tick):.1f} ms "
        f"(max {max(tick):.1f}), lag {lag:.1f} ms"
    )
    wrong = []
    for metric, (number, scale) in COMPARED.items():
        ours = seen.mean(metric, measured) * scale
        difference = ours - theirs[number]
        print(f"    {metric:22} ours {ours:9.2f} ", end="")
        print(f"nvidia-smi {theirs[number]:9.2f} difference {difference:+.2f}")
        # PCIe in MiB/s: within 2 %, or what an idle bus chatters
        allowed = 2.0 if scale == 100 else max(0.02 * theirs[number], 20.0)
        if abs(difference) > allowed:
            wrong.append((name, metric, ours, theirs[number]))
    assert rate > 9.5
    return wrong
