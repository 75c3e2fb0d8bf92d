"""The kinds of verdict: one word for one cause, live and of a profiled cell.

Counters tell less than a trace: a live verdict is never `launch-bound` or `sync-bound`,
which to counters are `host-bound`. A trace has no `idle` and no `few-multiprocessors`.
"""

from __future__ import annotations

from typing import Literal

#: of a trace with GPU work
GpuKind = Literal[
    "launch-bound",
    "sync-bound",
    "host-bound",
    "transfer-bound",
    "memory-bound",
    "compute-bound",
    "communication-bound",
    "mixed",
    "unknown",
]
#: of a trace without, beside those above
CpuKind = Literal[
    "input-bound",
    "python-bound",
    "overhead-bound",
    "operator-bound",
    "thread-bound",
    "wait-bound",
]
#: of counters alone, beside those above
LiveKind = Literal["few-multiprocessors", "idle"]
Kind = Literal[GpuKind, CpuKind, LiveKind]
#: what a compute-bound GPU computes with, as far as counters tell
Unit = Literal["tensor cores", "CUDA cores"]
