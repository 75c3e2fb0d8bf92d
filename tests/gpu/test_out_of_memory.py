"""A cell that runs out of a real GPU's memory, beside a notebook that holds most of it.

`pytest -m gpu -s tests/gpu/test_out_of_memory.py` prints what the notebook shows.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.gpu.lab import Kernel, frames, kernel

pytestmark = pytest.mark.gpu

HOLDS = """
import os, torch
free, total = torch.cuda.mem_get_info()
held = torch.empty(int(0.7 * free), device="cuda", dtype=torch.uint8)
print(os.getpid(), held.nbytes, free)
"""
RUNS_OUT = """
%load_ext warpbook
import os, torch
small = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
print(os.getpid(), flush=True)
free, total = torch.cuda.mem_get_info()
asked = torch.empty(int(0.8 * total), device="cuda", dtype=torch.uint8)
"""


async def fail(busy: Kernel, code: str) -> dict[str, Any]:
    """Run a cell that fails; give all that it showed, by the message's type."""
    await busy.begin(code)
    shown: dict[str, Any] = {}
    while True:
        message = json.loads(await busy._socket.read_message())
        shown[message["msg_type"]] = message["content"]
        idle = message["content"].get("execution_state") == "idle"
        if message["msg_type"] == "status" and idle and "display_data" in shown:
            return shown


async def test_a_real_failure_names_who_holds_the_memory(jp_fetch, jp_ws_fetch) -> None:
    async with (
        frames(jp_ws_fetch) as seen,
        kernel(jp_fetch, jp_ws_fetch) as holder,
        kernel(jp_fetch, jp_ws_fetch) as failing,
    ):
        await holder.begin(HOLDS)
        pid, held_bytes, _ = map(int, (await holder.finish()).split())
        shown = await fail(failing, RUNS_OUT)
        for _ in range(50):
            if "post_mortem" in seen.newest and "holders" in seen.newest:
                break
            await asyncio.sleep(0.1)
    text = shown["display_data"]["data"]["text/plain"]
    print(f"\n{text}")
    assert shown["error"]["ename"] == "OutOfMemoryError"
    message = seen.newest["post_mortem"]
    assert message["sentence"] in text
    assert message["kernel_id"] == failing.id
    gpu = seen.gpu
    assert message["device"] == gpu["id"]
    total = gpu["facts"]["memory_total_bytes"]
    # torch's message is rounded to 0.01 GiB
    assert message["asked_bytes"] == pytest.approx(0.8 * total, rel=0.02)
    holders = {one["kernel_id"]: one for one in message["holders"]["holders"]}
    other = holders[holder.id]
    assert other["pids"] == [pid]
    # the context of CUDA comes on top
    assert held_bytes < other["used_bytes"] < held_bytes + (2 << 30)
    own = holders[failing.id]
    assert own["allocated_bytes"] == pytest.approx(1 << 30, rel=0.02)
    assert own["used_bytes"] > own["allocated_bytes"]
    assert "restarting its kernel would free that" in message["sentence"]
