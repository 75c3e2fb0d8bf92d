"""Programs written by hand for the replay: calls of the host, and work of the GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.profiler.trace.simulated import BASE_NS, GPU
from warpbook_profiler.events.columns import (
    Category,
    interned,
    make_columns,
)
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.facts.trace import Trace as Recorded


@dataclass
class Trace:
    """Events in ns since the window began."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    correlation: int = 0

    def operator(self, at: int, took: int, tid: int = 1) -> None:
        self.events.append((Category.OPERATOR, "aten::op", at, took, -1, tid, -1))

    def overhead(self, at: int, took: int) -> None:
        name = "Activity Buffer Request"
        self.events.append((Category.OVERHEAD, name, at, took, -1, 0, -1))

    def call(self, name: str, at: int, took: int, tid: int = 1) -> int:
        self.correlation += 1
        self.events.append((Category.API, name, at, took, -1, tid, self.correlation))
        return self.correlation

    def launch(
        self,
        at: int,
        works_at: int,
        works: int,
        *,
        took: int = 4_000,
        stream: int = 7,
        tid: int = 1,
        call: str = "cudaLaunchKernel",
        name: str = "k",
        category: Category = Category.KERNEL,
    ) -> None:
        number = self.call(call, at, took, tid)
        self.work(works_at, works, number, stream, name, category)

    def work(
        self,
        at: int,
        took: int,
        correlation: int,
        stream: int = 7,
        name: str = "k",
        category: Category = Category.KERNEL,
    ) -> None:
        self.events.append((category, name, at, took, 0, stream, correlation))

    def read(self, code_end_ns: int | None = None) -> Recorded:
        category, name, at, took, device, track, correlation = zip(
            *self.events, strict=True
        )

        def numbers(values: Any) -> Any:
            return np.array(values, np.int64)

        columns = make_columns(
            names=interned(name),
            categories=np.array(category, np.int8),
            start_ns=BASE_NS + numbers(at),
            duration_ns=numbers(took),
            device=numbers(device),
            track=numbers(track),
            correlation=numbers(correlation),
            size_bytes=np.full(len(at), -1),
        )
        last = max(a + b for a, b in zip(at, took, strict=True))
        end_ns = BASE_NS + last
        run = Run(
            BASE_NS,
            end_ns if code_end_ns is None else BASE_NS + code_end_ns,
            end_ns,
            gpu_name=GPU["name"],
            gpus=(GpuLimits(GPU["name"], (9, 0), GPU["numSms"]),),
            cuda_used=True,
        )
        return Recorded(columns, run)
