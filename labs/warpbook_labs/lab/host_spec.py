"""What a lab on host code says of how its functions are called and checked.

Processes that run learners' code import it: nothing of a lab's cases is near it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: where a buffer is: the GPU's memory, page-locked or ordinary memory of the host
HostPlace = Literal["device", "pinned", "host"]

#: `results.findings.HostCounts`, of one call of `run`
HostCount = Literal[
    "launches",
    "graph_launches",
    "captures",
    "synchronizations",
    "copies",
    "h2d_bytes",
    "d2h_bytes",
    "pageable_bytes",
    "device_bytes",
    "held_bytes",
    "total_ns",
    "host_ns",
    "copy_ns",
    "compute_ns",
    "kernel_ns",
    "percent_of_bound",
    "convolution_percent",
    "unrepeatable",
]


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    """How the learner's `prepare` and `run` are called."""

    #: "simulated": on a GPU that is simulated; "torch": only results are judged;
    #: "cpu": the same, with tensors of the CPU
    without_gpu: Literal["simulated", "torch", "cpu"]
    #: what `prepare` returns, by name: coroutines that `run` of given.py runs on ranks,
    #: each of which has a process of its own on the CPU
    on_ranks: tuple[str, ...] = ()
    #: of `run` in each case, each with new inputs in the same memory
    calls: Annotated[int, Meta(ge=1, le=16)] = 3
    #: of the CPU: all calls of a case, and its `prepare`, without a GPU
    case_s: Annotated[float, Meta(gt=0, le=30)] = 5.0
    #: in a sentence, what of the task no grader judges; every result says it
    not_graded: Annotated[str, Meta(max_length=300)] = ""
