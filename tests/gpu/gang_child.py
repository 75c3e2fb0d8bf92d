"""Grades a job by two ranks that add up numbers through NCCL, one on each of its GPUs.

It stands in for the labs, and notes when it ran, so that a test sees that no other job
had one of its GPUs at that time.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from hashlib import sha256

import msgspec

from warpbook.hub_protocol import GradedFacts, JobOrder
from warpbook_hub.grader.engine import Graded

RANK = """
import os, sys, torch, torch.distributed as dist
rank, port = int(sys.argv[1]), sys.argv[2]
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                        world_size=2)
x = torch.full((1 << 24,), float(rank + 1), device="cuda")
for _ in range(200):
    y = x.clone()
    dist.all_reduce(y)
print(torch.cuda.get_device_properties(rank).uuid, y.unique().tolist())
dist.destroy_process_group()
"""
#: a job's environment has none of the machine's; NVLink multicast stays off
WITHOUT_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=JobOrder)
    began_s = time.time()
    lines = ranks() if order.stage == "gpu" else []
    spent = f"{began_s:.3f} {time.time():.3f}"
    facts = GradedFacts("right", "gang", f"{spent} {' '.join(lines)}", 1, 1)
    digest = sha256(order.source.encode()).hexdigest()
    outcome = Graded(facts, "ab" * 32, digest, '{"card": null}')
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


def ranks() -> list[str]:
    """Run both; give a line of each: the UUID of its GPU, and the sums that it has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), port],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **WITHOUT_MULTICAST},
        )
        for rank in (0, 1)
    ]
    return [process.communicate(timeout=120)[0].strip() for process in processes]


if __name__ == "__main__":
    main()
