"""Two GPUs under an all-reduce: NVLink against nvidia-smi and against arithmetic.

Needs two GPUs that are linked by NVLink: `pytest -m two_gpus -s tests/gpu`.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
from pathlib import Path

import pytest

from tests.gpu.lab import frames

pytestmark = pytest.mark.two_gpus

RANK = """
import os, sys, time, torch, torch.distributed as dist
rank = int(sys.argv[1])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank,
                        world_size=2)
x = torch.ones(1 << 28, device="cuda")
dist.all_reduce(x); torch.cuda.synchronize(); dist.barrier()
print("ready", time.time(), flush=True)
start = time.perf_counter()
for n in range(6000):
    dist.all_reduce(x)
    if n % 20 == 0:
        torch.cuda.synchronize()
torch.cuda.synchronize()
print(n + 1, time.perf_counter() - start, x.numel() * 4, flush=True)
dist.destroy_process_group()
"""
#: of `nvidia-smi dmon --gpm-metrics`: all NVLinks together, in MiB/s
RX, TX = 60, 61
SECONDS = 5


async def dmon() -> dict[int, tuple[float, float]]:
    """Mean rx and tx in bytes/s of both GPUs over the next seconds."""
    process = await asyncio.create_subprocess_exec(
        *("nvidia-smi", "dmon", "-d", "1", "-c", str(SECONDS + 1), "-s", "u"),
        *("--gpm-metrics", f"{RX},{TX}", "--format", "csv,nounit"),
        stdout=asyncio.subprocess.PIPE,
    )
    text = (await process.communicate())[0].decode()
    rows = [re.split(r"[,\s]+", line.strip()) for line in text.splitlines()]
    by_gpu = {}
    for gpu in (0, 1):
        tails = [row[-2:] for row in rows if row and row[0] == str(gpu)][1:]
        pairs = [(float(rx), float(tx)) for rx, tx in tails if "-" not in (rx, tx)]
        assert pairs, text
        rx, tx = (
            statistics.fmean(column) * 2**20 for column in zip(*pairs, strict=True)
        )
        by_gpu[gpu] = rx, tx
    return by_gpu


async def test_nvlink_under_an_all_reduce(jp_ws_fetch, tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    async with frames(jp_ws_fetch) as seen:
        ranks = [
            await asyncio.create_subprocess_exec(
                sys.executable, str(script), str(rank), stdout=asyncio.subprocess.PIPE
            )
            for rank in (0, 1)
        ]
        for rank in ranks:
            assert rank.stdout is not None
            line = await rank.stdout.readline()
            assert line.startswith(b"ready"), line
        await asyncio.sleep(2)
        start = len(seen.frames)
        theirs = await dmon()
        end = len(seen.frames)
        verdicts = seen.newest["verdicts"]["verdicts"]
        done = [(await rank.communicate())[0].decode().split() for rank in ranks]
    reductions, seconds, size_bytes = (float(number) for number in done[0])
    # two ranks: each sends half of the buffer, then the half that it reduced
    expected = reductions * size_bytes / seconds
    print(f"\nall-reduce of {size_bytes / 2**30:.0f} GiB: {expected / 1e9:.1f} GB/s")
    wrong = []
    for gpu in (0, 1):
        ours = tuple(
            seen.mean(f"nvlink_{way}_bytes_per_s", slice(start, end), f"gpu {gpu}")
            for way in ("rx", "tx")
        )
        for way, mine, smi in zip(("in", "out"), ours, theirs[gpu], strict=True):
            print(
                f"GPU {gpu} NVLink {way}: warpbook {mine / 1e9:.1f} GB/s, "
                f"nvidia-smi {smi / 1e9:.1f} GB/s, {mine / expected:.3f} of the data"
            )
            if abs(mine / smi - 1) > 0.02 or not 0.95 < mine / expected < 1.2:
                wrong.append((gpu, way))
    for device, verdict in verdicts.items():
        print(device[:12], verdict["kind"], verdict["sentence"])
    assert not wrong
    assert {verdict["kind"] for verdict in verdicts.values()} == {"communication-bound"}
