"""Traces written by hand, event by event, for files unlike the samples."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from tests.profiler.trace.simulated import BASE_NS, GPU
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.report.report import TraceReport, report


def call(correlation: int, at: float, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": at,
        "dur": 4.0,
        "args": {"correlation": correlation},
        **more,
    }


def kernel(correlation: int, at: float, **more: Any) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, "correlation": correlation}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": at,
        "dur": 2.0,
        **more,
        "args": args | more.get("args", {}),
    }


def trace(*events: dict[str, Any], **more: Any) -> bytes:
    head = {"deviceProperties": [GPU], "baseTimeNanoseconds": BASE_NS}
    return json.dumps({**head, "traceEvents": events, **more}).encode()


def report_of(tmp_path: Path, content: bytes, untaxed: bool = False) -> TraceReport:
    """Report on a trace; untaxed, the profiler is known to have slowed nothing down."""
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    events, run = read_chrome_trace(str(path))
    return report(events, as_bare(run) if untaxed else run)


def as_bare(run: Run) -> Run:
    """Say of a run that it takes as long without the profiler."""
    took_ns = run.end_ns - run.start_ns
    bare = BareTimes(1, took_ns, took_ns, took_ns, "executions")
    return dataclasses.replace(run, bare=bare)


def program(**more: Any) -> list[dict[str, Any]]:
    """Launches of 49 kernels of 2 µs, one each 20 µs."""
    events = []
    for at in range(1, 50):
        events += [call(at, 20.0 * at, **more), kernel(at, 20.0 * at + 6)]
    return events
