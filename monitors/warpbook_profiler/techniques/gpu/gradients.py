"""Gradients that are added up between GPUs while nothing is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_ALL_REDUCE = re.compile(
    r".*(nccl|rccl)\w*AllReduce|.*((one|two)_?shot_?all_?reduce)", re.I
)
_BACKWARD = re.compile(r"autograd::engine|\w*Backward\d*$|.*Backward0")
#: of the bare run, while the GPU computes nothing else
_LEAST_SHARE = 0.1
#: an all-reduce that is shorter moves less than pays for its launch on every GPU
_SMALL_NS = 100_000
#: fewer are no buckets of a model
_LEAST_SMALL = 8


def gradients(evidence: Evidence) -> Iterator[Proposal]:
    """Propose larger buckets, or an all-reduce beside the backward pass."""
    events = _all_reduces(evidence)
    exposed_ns = evidence.metrics.exposed_communication_ns
    if not len(events) or evidence.share(exposed_ns) < _LEAST_SHARE:
        return
    names = evidence.operators.table.names
    used = distinct(evidence.operators.table.name)
    if not any(_BACKWARD.match(names[at]) for at in used.tolist()):
        return
    ways = Ways(evidence)
    # it is hidden behind computing at best, wherever that leaves room
    ways.resize(events, Span(0.0, 0.0, 0.0))
    took_ns = evidence.gpu.duration_ns[events]
    is_small = len(events) >= _LEAST_SMALL and np.median(took_ns) < _SMALL_NS
    kind = _BUCKETS if is_small else _SHORTER if _within(evidence, events) else _BESIDE
    wrapped = evidence.code.calls("DistributedDataParallel", "DDP")
    yield Proposal(
        name=kind.name,
        title=kind.title,
        evidence=(
            f"{len(events):,} all-reduces of {np.median(took_ns) / 1e3:,.0f} µs each "
            f"(median) take {units.share(evidence.share(exposed_ns))} of the bare run "
            "while the GPU computes nothing else."
        ),
        ways=ways,
        is_bound=True,
        reason="The time on the links between the GPUs is not known.",
        line=wrapped[0].line if wrapped else None,
    )


class _Advice(NamedTuple):
    name: str
    title: str


_BUCKETS = _Advice(
    "gradient-buckets",
    "Reduce the gradients in larger buckets: "
    "DistributedDataParallel(bucket_cap_mb=...).",
)
_SHORTER = _Advice(
    "gradient-bytes",
    "Send fewer bytes of gradients: in bfloat16, or once every few steps.",
)
_BESIDE = _Advice(
    "gradient-overlap",
    (
        "Overlap the reduction of gradients with the backward pass, as "
        "DistributedDataParallel does."
    ),
)


def _within(evidence: Evidence, events: Int64s) -> bool:
    """Tell whether they begin within the backward pass already, as hooks have them."""
    outer = evidence.operators.outer[events]
    known = outer[outer != NONE].tolist()
    names = [evidence.operators.name(at) for at in known]
    return 2 * sum(name.startswith("autograd::engine") for name in names) > len(events)


def _all_reduces(evidence: Evidence) -> Int64s:
    gpu, operators = evidence.gpu, evidence.operators
    fits = np.array([bool(_ALL_REDUCE.match(name)) for name in gpu.names] or [False])
    # some libraries have one kernel for all that GPUs say to one another
    called = np.append(operators.named("c10d::allreduce_"), False)[operators.direct]
    called &= communicates(evidence.events, gpu)
    all_reduces = np.flatnonzero((fits[gpu.name] | called) & evidence.is_kernel)
    # a layer's statistics are needed at once, and are in no bucket
    of_layer = np.array(
        ["SyncBatchNorm" in name for name in operators.table.names] or [False]
    )
    inside = np.append(of_layer[operators.table.name], False)[
        operators.outer[all_reduces]
    ]
    kept: Int64s = all_reduces[~inside]
    return kept


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("gradient-buckets", "gradient-bytes", "gradient-overlap"),
            what=(
                "all-reduces of gradients while the GPU computes nothing else, 10 % of "
                "the bare run and more"
            ),
            time="a bound",
            lab="parallelism-by-hand",
        ),
    ),
    rule=gradients,
    untried=(
        "The other processes of the job would have to run the trial at the same time."
    ),
)
