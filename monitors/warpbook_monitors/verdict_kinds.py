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

#: what each kind means; docs/reference/verdicts.md has the rules
MEANINGS: dict[Kind, str] = {
    "launch-bound": "The GPU idled while the host launched one small piece of work "
    "after another. Launch less: fuse, batch, torch.compile, a CUDA graph.",
    "sync-bound": "The GPU ran out of work while the host stood still and waited for "
    "it: .item(), .cpu(), a copy to pageable memory. Wait less often.",
    "host-bound": "The GPU idled while the host did other work: loading data, Python, "
    "operators on the CPU. Live it also stands for launch-bound and sync-bound.",
    "transfer-bound": "Copies between host and GPU took the time, and no kernel ran "
    "beside them. Pin memory, copy earlier, copy less.",
    "memory-bound": "Kernels, or operators without a GPU, wait for memory: their least "
    "traffic takes longer than their arithmetic. Fuse, use a smaller dtype, pass over "
    "data less often.",
    "compute-bound": "Kernels, or operators without a GPU, wait for arithmetic units. "
    "Use tensor cores, a smaller dtype, or less work.",
    "communication-bound": "GPUs exchanged data while they computed nothing else; "
    "without GPU work, the thread waited for other ranks or for the network.",
    "input-bound": "Without GPU work: the thread waited for its DataLoader.",
    "python-bound": "Without GPU work: Python itself took the time, between operators "
    "or in a loop that reads single elements.",
    "overhead-bound": "Without GPU work: many small operator calls.",
    "operator-bound": "Without GPU work: operators that are neither bound by memory "
    "nor by arithmetic.",
    "thread-bound": "Without GPU work: too few threads, or too many, for the cores.",
    "wait-bound": "Without GPU work: the thread slept or waited outside operators.",
    "few-multiprocessors": "Live: a kernel ran nearly always, on few multiprocessors.",
    "idle": "Live: next to nothing ran on the GPU.",
    "mixed": "No single cause leads: those that explain most are named.",
    "unknown": "Too little is known to conclude anything: it was not recorded, or what "
    "limits most kernels is not known.",
}
