"""Work for the GPU in a process of its own; prints how fast it went.

For each line "KIND SECONDS" it runs that work so long and prints how often it was
done in a second: "matmul" is a bf16 product of 8192 x 8192, "launches" an addition
to 64 numbers, which takes the host longer to launch than the GPU to do.
"""

from __future__ import annotations

import os
import sys
import time

import torch

_MATRIX = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
_OUT = torch.empty_like(_MATRIX)
_SMALL = torch.zeros(64, device="cuda")


def matmul() -> int:
    """Some products; how many."""
    for _ in range(20):
        torch.mm(_MATRIX, _MATRIX, out=_OUT)
    return 20


def launches() -> int:
    """Some launches; how many."""
    for _ in range(2000):
        _SMALL.add_(1)
    return 2000


def rate(kind: str, seconds: float) -> float:
    """How often a second, over so many seconds."""
    work = {"matmul": matmul, "launches": launches}[kind]
    work()
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    done = 0
    while time.perf_counter() < start_s + seconds:
        done += work()
        torch.cuda.synchronize()
    return done / (time.perf_counter() - start_s)


def main() -> None:
    """Answer each line until the end."""
    # moving between cores changes the launch rate more than what is measured
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rate("matmul", 3.0)  # clocks and temperature settle
    print("ready", flush=True)
    for line in sys.stdin:
        kind, seconds = line.split()
        print(rate(kind, float(seconds)), flush=True)


if __name__ == "__main__":
    main()
