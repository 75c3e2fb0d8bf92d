"""The receipt of a matmul on a real GPU, and what watching costs a cell there.

`pytest -m gpu -s tests/gpu/test_gpuwatch_cuda.py` prints the receipt and the cost;
`python benchmarks/gpuwatch.py` measures the cost beside a kernel that is not watched.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.gpu.lab import Frames, frames, kernel

pytestmark = pytest.mark.gpu

# before the watch is on, so that it hooks what is timed
TIME_THE_HOOKS = """
%load_ext warpbook
import statistics, time
from warpbook.kernel.profile.gpuwatch import GpuWatch
spent_us = {}
def time_calls(name, call):
    def timed(self, told):
        begin_ns = time.perf_counter_ns()
        call(self, told)
        spent_us[name].append((time.perf_counter_ns() - begin_ns) / 1000)
    spent_us[name] = []
    setattr(GpuWatch, name, timed)
for name in ("before_cell", "after_cell"):
    time_calls(name, getattr(GpuWatch, name))
%gpuwatch on
"""
PREPARE = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
product = a @ a
torch.cuda.synchronize()
"""
MATMUL = """# the matmul
begin = time.monotonic()
large = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
del large
while time.monotonic() - begin < 3:
    for _ in range(20):
        torch.mm(a, a, out=product)
    torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())
"""
TELL = """
print(*(statistics.median(spent_us[name]) for name in ("before_cell", "after_cell")))
"""
QUICK = 100


async def receipt_of(title: str, seen: Frames) -> dict[str, Any]:
    """Wait for the receipt of the cell with this first line."""
    for _ in range(100):
        receipt = seen.newest.get("receipt")
        if receipt is not None and receipt["cell"]["title"] == title:
            return receipt
        await asyncio.sleep(0.1)
    raise AssertionError(f"no receipt of {title!r}")


async def test_a_matmuls_receipt_says_what_the_gpu_did(jp_fetch, jp_ws_fetch) -> None:
    async with frames(jp_ws_fetch) as seen, kernel(jp_fetch, jp_ws_fetch) as running:
        for code in (TIME_THE_HOOKS, PREPARE):
            await running.begin(code)
            await running.finish()
        await running.begin(MATMUL)
        peak, allocated = map(int, (await running.finish()).split())
        receipt = await receipt_of("# the matmul", seen)
        for _ in range(QUICK):
            await running.begin("pass")
            await running.finish()
        await running.begin(TELL)
        before_us, after_us = map(float, (await running.finish()).split())
    (device,) = receipt["devices"]
    span = device["span"]
    print(f"\n{receipt['line']}\n{json.dumps(device, indent=1)}")
    print(f"a watched cell: {before_us:.0f} µs before it, {after_us:.0f} µs after it")

    (counted,) = receipt["cell"]["allocators"]
    assert (counted["peak_allocated_bytes"], counted["allocated_bytes"]) == (
        peak,
        allocated,
    )
    assert peak - allocated >= 1 << 30
    assert span["device"] == f"gpu:{counted['uuid']}"
    assert 3000 <= receipt["wall_ms"] < 5000
    assert span["metrics"]["sm_active_ratio"]["mean"] > 0.6
    assert span["metrics"]["tensor_active_ratio"]["mean"] > 0.3
    seconds = receipt["wall_ms"] / 1000
    watts = span["energy_joules"] / seconds
    assert watts == pytest.approx(span["metrics"]["power_watts"]["mean"], rel=0.3)
