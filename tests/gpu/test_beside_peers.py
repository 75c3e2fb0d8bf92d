"""nvitop, gpustat and nvidia-smi beside warpbook: the same GPU at the same second.

`pytest -m gpu -s tests/gpu/test_beside_peers.py` prints the figures that are kept in
docs/evidence/.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys

import pytest

from tests.gpu.lab import frames, kernel
from tests.gpu.used_gpu import used_uuid

pytestmark = pytest.mark.gpu

WORK = """
import time, torch
held = torch.empty(8 << 30, device="cuda", dtype=torch.uint8)
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + 16
while time.monotonic() < end:
    for _ in range(50):
        y = x @ x
    torch.cuda.synchronize()
import os; print(os.getpid())
"""
#: the first argument is the GPU's UUID
NVITOP = """
import json, nvitop, sys
gpu = nvitop.Device(uuid=sys.argv[1])
print(json.dumps({
    "memory_used_bytes": gpu.memory_used(), "power_watts": gpu.power_usage() / 1000,
    "pids": {pid: each.gpu_memory() for pid, each in gpu.processes().items()},
}))
"""
GPUSTAT = """
import gpustat, json, sys
gpu = next(each for each in gpustat.new_query().gpus if each.uuid == sys.argv[1])
print(json.dumps({
    "memory_used_bytes": gpu.memory_used * 2**20, "power_watts": gpu.power_draw,
    "pids": {p["pid"]: p["gpu_memory_usage"] * 2**20 for p in gpu.processes},
}))
"""
#: gpustat and nvidia-smi speak whole MiB
MIB = 2**20


async def output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE
    )
    text = (await process.communicate())[0].decode()
    assert process.returncode == 0, command
    return text


async def ask(script: str) -> str:
    return await output(sys.executable, "-c", script, used_uuid())


async def nvidia_smi() -> dict:
    command = ("nvidia-smi", "-i", used_uuid(), "--format=csv,noheader,nounits")
    query = "--query-gpu=memory.used,power.draw.instant,power.draw"
    row = await output(*command, query)
    used, _, power = (float(word) for word in row.split(","))
    query = "--query-compute-apps=pid,used_memory"
    rows = await output(*command, query)
    pids = {}
    for line in rows.splitlines():
        pid, memory = line.split(",")
        pids[pid.strip()] = float(memory) * MIB
    return {"memory_used_bytes": used * MIB, "power_watts": power, "pids": pids}


async def test_memory_power_and_pids_are_those_of_the_peers(
    jp_fetch, jp_ws_fetch
) -> None:
    async with frames(jp_ws_fetch) as seen, kernel(jp_fetch, jp_ws_fetch) as busy:
        await busy.begin(WORK)
        await asyncio.sleep(8)  # imports, warm-up, clocks
        start = len(seen.frames)
        theirs = {
            "nvitop": json.loads(await ask(NVITOP)),
            "gpustat": json.loads(await ask(GPUSTAT)),
            "nvidia-smi": await nvidia_smi(),
        }
        await asyncio.sleep(0.5)
        used = statistics.median(seen.values("memory_used_bytes", slice(start, None)))
        watts = statistics.median(seen.values("power_watts", slice(start, None)))
        answer = await jp_fetch("warpbook", "api", "v1", "holders")
        of_gpu = json.loads(answer.body)["devices"][f"gpu:{used_uuid()}"]
        ours = {
            str(pid): holder["used_bytes"]
            for holder in of_gpu["holders"]
            for pid in holder["pids"]
        }
        pid = (await busy.finish()).strip()
    print(f"\nwarpbook: {used / MIB:.0f} MiB, {watts:.0f} W, processes {ours}")
    for name, said in theirs.items():
        print(
            f"{name}: {said['memory_used_bytes'] / MIB:.0f} MiB, "
            f"{said['power_watts']:.0f} W, processes {said['pids']}"
        )
    assert pid in ours
    for said in theirs.values():
        pids = {str(process): memory for process, memory in said["pids"].items()}
        assert set(pids) == set(ours)
        assert abs(pids[pid] - ours[pid]) <= MIB
        assert abs(said["memory_used_bytes"] - used) <= 2 * MIB
        # each reads at a moment of its own, and board power swings with the work
        assert abs(said["power_watts"] - watts) < 0.1 * watts
