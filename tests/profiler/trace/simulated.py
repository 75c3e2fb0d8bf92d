"""A simulated program: a Chrome trace as torch.profiler writes it, and its truth.

The truth comes from the simulation and a sweep over marks, never from the code under
test. Nothing here needs torch or a GPU.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BASE_NS = 1_790_857_026_000_000_000
THREAD, COMPUTE, COMMUNICATION = 4242, 7, 20
GPU = {
    "id": 0,
    "name": "NVIDIA H200",
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
}
#: name, on tensor cores, typical time in ns
KERNELS = [
    ("nvjet_sm90_tst_192x192_64x4_1x2_h_bz_coopA_NTN", True, 140_000),
    ("void pytorch_flash::flash_fwd_kernel<Flash_traits>(params)", True, 90_000),
    ("ampere_sgemm_128x64_tn", False, 200_000),
    ("void at::native::vectorized_elementwise_kernel<4, add>(int)", False, 9_000),
    ("triton_poi_fused_add_mul_7", False, 8_000),
]
ALL_REDUCE = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
)

Span = tuple[int, int]


@dataclass
class Work:
    """One piece of work on the GPU and the call that launched it."""

    span: Span
    stream: int
    launch: Span


@dataclass
class Program:
    """Simulates a host that launches work and waits for it, in ns from BASE_NS."""

    seed: int
    steps: int = 400
    #: how slow the host is; above 2 the GPU waits for it
    host_slow: float = 1.0
    #: how long kernels take, against the usual
    kernel_scale: float = 1.0
    #: share of the work that is communication, on a stream of its own
    communication: float = 0.05
    #: of each copy to the GPU, which comes after every 60 steps
    copy_bytes: int = 64 << 20
    #: an `.item()` after so many steps; 0 is never
    sync_every: int = 40

    events: list[dict[str, Any]] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)
    spans: dict[str, list[Span]] = field(
        default_factory=lambda: {"compute": [], "communication": [], "copy": []}
    )

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._host = 50_000
        self._free = {COMPUTE: 0, COMMUNICATION: 0}
        self._correlation = 100
        for step in range(1, self.steps + 1):
            self._step()
            if step % 60 == 0:
                self._copy_in()
            if self.sync_every and step % self.sync_every == 0:
                self._item()
        end = max(*self._free.values(), self._host)
        self._call("cudaDeviceSynchronize", end + 3000 - self._host)
        self.window_ns = self._host + 20_000
        self.events.append(
            {
                "ph": "X",
                "cat": "Trace",
                "name": "PyTorch Profiler (0)",
                "pid": "Spans",
                "tid": "PyTorch Profiler",
                "ts": 0.0,
                "dur": self.window_ns / 1000,
            }
        )

    def write(self, path: Path) -> str:
        """Write the trace; the order of its events means nothing."""
        self._random.shuffle(self.events)
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [GPU],
            "baseTimeNanoseconds": BASE_NS,
            "traceEvents": self.events,
        }
        path.write_text(json.dumps(trace))
        return str(path)

    def _step(self) -> None:
        begin = self._host
        self._host += round(self._random.uniform(1500, 6000) * self.host_slow)
        cost = round(self._random.uniform(3500, 7000) * self.host_slow)
        if self._random.random() < self.communication:
            name, tensor, kind, stream = (
                ALL_REDUCE,
                False,
                "communication",
                COMMUNICATION,
            )
            duration = 300_000
        else:
            name, tensor, duration = self._random.choice(KERNELS)
            kind, stream = "compute", COMPUTE
            scale = self.kernel_scale * self._random.uniform(0.5, 1.5)
            duration = round(duration * scale)
        api = "cuLaunchKernel" if name.startswith("triton") else "cudaLaunchKernel"
        span = self._launch(api, cost, "kernel", name, stream, duration, {})
        self.spans[kind].append(span)
        self.sums["kernels"] += 1
        self.sums["kernel_ns"] += duration
        self.sums["tensor_ns"] += duration * tensor
        self._host += 700
        self._event("cpu_op", "aten::something", THREAD, (begin, self._host), {})

    def _copy_in(self) -> None:
        pinned = self._random.random() < 0.5
        size = self.copy_bytes
        duration = size // (55 if pinned else 11)
        name = f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)"
        args = {"bytes": size}
        span = self._launch(
            "cudaMemcpyAsync", 6000, "gpu_memcpy", name, COMPUTE, duration, args
        )
        self.spans["copy"].append(span)
        self.sums[f"HtoD {'pinned' if pinned else 'pageable'} bytes"] += size
        self.sums[f"HtoD {'pinned' if pinned else 'pageable'} ns"] += duration

    def _item(self) -> None:
        name, args = "Memcpy DtoH (Device -> Pageable)", {"bytes": 4}
        span = self._launch(
            "cudaMemcpyAsync", 7000, "gpu_memcpy", name, COMPUTE, 1400, args
        )
        self.spans["copy"].append(span)
        self.sums["DtoH pageable bytes"] += 4
        self.sums["DtoH pageable ns"] += 1400
        waited = max(2000, span[1] + 3000 - self._host)
        self._call("cudaStreamSynchronize", waited)
        self.sums["syncs"] += 1
        self.sums["sync_ns"] += waited

    def _call(self, name: str, duration: int) -> None:
        self._correlation += 1
        span = self._host, self._host + duration
        args = {"correlation": self._correlation}
        self._event("cuda_runtime", name, THREAD, span, args)
        self._host += duration

    def _launch(
        self,
        api: str,
        cost: int,
        category: str,
        name: str,
        stream: int,
        duration: int,
        args: dict[str, Any],
    ) -> Span:
        call = self._host, self._host + cost
        self._call(api, cost)
        ready = call[1] + round(self._random.uniform(900, 4000))
        free = self._free[stream]
        start = max(ready, free + self._random.randint(700, 1500)) if free else ready
        if self._random.random() < 0.02:
            start += 50_000  # it waited for another stream's event
        span = start, start + duration
        self._free[stream] = span[1]
        self.works.append(Work(span, stream, call))
        self.sums["launches"] += 1
        self.sums["launch_cost_ns"] += cost
        args |= {"device": 0, "stream": stream, "correlation": self._correlation}
        self._event(category, name, stream, span, args)
        return span

    def _event(
        self, category: str, name: str, tid: int, span: Span, args: dict[str, Any]
    ) -> None:
        start, end = span
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": tid,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": args,
            }
        )


def covered(spans: list[Span], depth: int = 1) -> int:
    """Time in which at least `depth` of the spans hold."""
    marks = sorted([(a, 1) for a, _ in spans] + [(b, -1) for _, b in spans])
    total = since = 0
    held = 0
    for at, step in marks:
        if held >= depth:
            total += at - since
        since, held = at, held + step
    return total


def merged(spans: list[Span]) -> list[Span]:
    """The spans' union, as spans."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def stream_idle(works: list[Work]) -> Iterator[tuple[int, dict[str, int]]]:
    """HTA's split of each stream's gaps."""
    for stream in (COMPUTE, COMMUNICATION):
        mine = [work for work in works if work.stream == stream]
        idle = {"host_wait": 0, "kernel_wait": 0, "other": 0}
        for before, after in zip(mine, mine[1:], strict=False):
            gap = after.span[0] - before.span[1]
            if after.launch[0] > before.span[1]:
                idle["host_wait"] += gap
            else:
                idle["kernel_wait" if gap < 30_000 else "other"] += gap
        if mine:
            yield stream, idle
