"""torch.profiler, ncu and warpbook's GPM windows at once: nobody disturbs anybody.

The counters of a GPU are shared, and DCGM's users report that one profiler takes them
from another. `pytest -m gpu -s tests/gpu/test_profilers_together.py` prints what an
evidence file keeps.
"""

from __future__ import annotations

import asyncio
import re
import sys

import pytest

from tests.gpu.lab import frames, kernel

pytestmark = pytest.mark.gpu

PROFILED = """
import time, torch
from torch.profiler import profile, ProfilerActivity
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
y = x @ x
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    end, launched = time.monotonic() + 20, 0
    while time.monotonic() < end:
        for _ in range(20):
            y = x @ x
        launched += 20
        torch.cuda.synchronize()
        time.sleep(0.01)
kernels = sum(e.count for e in prof.key_averages()
              if "gemm" in e.key or "nvjet" in e.key)
print(launched, kernels)
"""
MEASURED_BY_NCU = """
import torch
x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
for _ in range(5):
    y = x @ x
torch.cuda.synchronize()
"""
METRIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


async def test_ncu_and_torch_profiler_and_gpm_at_once(jp_fetch, jp_ws_fetch) -> None:
    async with frames(jp_ws_fetch) as seen, kernel(jp_fetch, jp_ws_fetch) as busy:
        await busy.begin(PROFILED)
        while not seen.values("sm_active_ratio", slice(-3, None))[-1:] > [0.05]:
            await asyncio.sleep(0.2)  # torch and the profiler are being loaded
        before = len(seen.frames)
        await asyncio.sleep(2)
        start = len(seen.frames)
        ncu = await asyncio.create_subprocess_exec(
            *("ncu", "--clock-control", "none", "--metrics", METRIC),
            *("-k", "regex:gemm|nvjet|cutlass", "-c", "3"),
            *(sys.executable, "-c", MEASURED_BY_NCU),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        text = (await ncu.communicate())[0].decode()
        end = len(seen.frames)
        launched, profiled = (int(word) for word in (await busy.finish()).split()[-2:])
    values = [float(number) for number in re.findall(rf"{METRIC}\s+%\s+([\d.]+)", text)]
    active = seen.values("sm_active_ratio")
    print(f"\ntorch.profiler: {launched} matmuls launched, {profiled} kernels seen")
    print(f"ncu beside it: rc {ncu.returncode}, SM throughput % {values}")
    calm = seen.mean("sm_active_ratio", slice(before, start))
    beside = seen.mean("sm_active_ratio", slice(start, end))
    print(
        f"GPM: {len(active)} values in {len(seen.frames)} frames; SM active "
        f"{100 * calm:.1f} % before ncu, {100 * beside:.1f} % while it ran"
    )
    assert ncu.returncode == 0, text[-2000:]
    assert len(values) == 3
    assert profiled == launched
    # two frames pass before a first window is full, and a late tick may find one short
    assert len(active) >= 0.98 * len(seen.frames)
    assert all(0 <= ratio <= 1 for ratio in active)
