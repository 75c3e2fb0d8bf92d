"""Traces with the steps of a profiler's schedule, written by hand."""

import random
from typing import Any

from tests.profiler.trace.simulated import GPU
from tests.profiler.trace.written import call, kernel, trace


def stepped(
    kernel_us: float,
    *,
    steps: int = 8,
    kernels: int = 10,
    jitter: float = 0.01,
    seed: int = 1,
    size: int = 512,
    gpu: str = "NVIDIA H200",
    schedule: bool = True,
    **head: Any,
) -> bytes:
    """A step launches kernels back to back, and waits for them."""
    chance, at_us, number = random.Random(seed), 0.0, 0
    events: list[dict[str, Any]] = []
    for step in range(steps):
        begin = at_us
        took = kernel_us * chance.uniform(1 - jitter, 1 + jitter)
        for one in range(kernels):
            number += 1
            operator = call(0, begin + 6 * one, cat="cpu_op", name="aten::mm", dur=5.0)
            operator["args"] = {
                "External id": number,
                "Input Dims": [[size, size], [size, size]],
                "Input type": ["float", "float"],
            }
            launch = {"External id": number, "grid": [size // 4, 1, 1]}
            launch |= {"block": [128, 1, 1]}
            events += [
                operator,
                call(number, begin + 6 * one + 1, dur=3.0),
                kernel(
                    number,
                    begin + 10 + one * took,
                    name="ampere_sgemm_128x64_tn",
                    dur=took,
                    args=launch,
                ),
            ]
        at_us = begin + 20 + max(kernels * took, 6.0 * kernels)
        wait = call(0, begin + 6 * kernels, name="cudaDeviceSynchronize")
        events.append({**wait, "dur": at_us - wait["ts"] - 1, "args": {}})
        if schedule:
            mark = call(
                0, begin, cat="user_annotation", name=f"ProfilerStep#{step + 3}"
            )
            events.append({**mark, "dur": at_us - begin, "args": {}})
    return trace(*events, deviceProperties=[GPU | {"name": gpu}], **head)
