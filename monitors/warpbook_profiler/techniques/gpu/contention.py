"""Additions at indices that take far longer than what they move.

Many additions at one address come one after the other. Whether many indices are the
same is in no trace; that memory was hardly used is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.facts.roofline import Called
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_ADDS = frozenset(
    "scatter_add scatter_reduce index_add index_reduce bincount histc _histc histogram "
    "embedding_dense_backward _embedding_bag_dense_backward".split()
)
_INDEX_PUT = frozenset("index_put _index_put_impl".split())
#: kernels of other libraries, whose threads add one number each
_KERNEL = re.compile(r"cupyx?_(scatter_add|bincount|histogram)\w*$")
_LEAST_THREAD_BYTES = 8
#: of the ceiling of memory: what adds at random addresses reaches several times that
_MOST_OF_CEILING = 0.03
#: of the bare run, and of one call: less is nothing to care for
_LEAST_SHARE, _LEAST_CALL_NS = 0.05, 30_000


def contention(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to add up what goes to one address before it is written."""
    chip = evidence.chip
    if chip is None:
        return
    groups, _ = evidence.trace.called
    slow = [
        (group.time_ns, group.name, max(group.calls, 1), moved)
        for group in groups
        if _adds(group) and (moved := sum(tensor_sizes(group.operands) or ()))
    ]
    slow += _of_kernels(evidence, np.flatnonzero(evidence.is_kernel))
    # what one pass takes at the ceiling, far below what these take
    slow = [
        one
        for one in slow
        if one[0] >= _LEAST_CALL_NS * one[2]
        and chip.least_ns(one[3] * one[2]) < _MOST_OF_CEILING * one[0]
    ]
    time_ns = sum(one[0] for one in slow)
    if not slow or evidence.share(time_ns) < _LEAST_SHARE:
        return
    longest_ns, name, calls, moved = max(slow)
    of_ceiling = chip.least_ns(moved * calls) / longest_ns
    yield Proposal(
        name="contention",
        title="Sort by index first, or sum within each block, before adding to memory.",
        evidence=(
            f"{name} takes {units.share(evidence.share(longest_ns))} of the bare run "
            f"and moves its data at {units.share(of_ceiling)} of the memory's ceiling, "
            "which is typical of atomic additions to few addresses."
        ),
        ways=None,
        events=_launched_by(evidence, name),
        reason="The trace does not show how many indices are the same.",
        operator=name,
        line=evidence.code.first_line(name.removeprefix("aten::").rstrip("_")),
    )


def _adds(by: Called) -> bool:
    name = by.name.removeprefix("aten::").rstrip("_")
    if name in _INDEX_PUT:
        # its last scalars are `accumulate` and, of the inner one, `unsafe`
        return "True" in by.operands.scalars[3:4]
    return name in _ADDS


def _launched_by(evidence: Evidence, name: str) -> Int64s:
    """Return the events of an operator, or of a kernel that no operator called."""
    gpu, (groups, group) = evidence.gpu, evidence.trace.called
    called = [at for at, one in enumerate(groups) if one.name == name]
    if called:
        return np.flatnonzero(evidence.is_kernel)[np.isin(group, called)]
    return np.flatnonzero(gpu.name == gpu.names.index(name))


def _of_kernels(
    evidence: Evidence, kernels: Int64s
) -> Iterator[tuple[int, str, int, int]]:
    """Give time, name, calls and bytes at least of kernels that no operator called."""
    gpu = evidence.gpu
    kernels = kernels[gpu.shape[kernels] != NONE]
    for at, name in enumerate(gpu.names):
        if not _KERNEL.match(name):
            continue
        mine = kernels[gpu.name[kernels] == at]
        if not len(mine):
            continue
        shape = gpu.shapes[gpu.shape[mine[0]]]
        threads = shape.blocks * shape.threads_per_block
        moved = threads * _LEAST_THREAD_BYTES
        yield evidence.time_ns(mine), name, len(mine), moved


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("contention",),
            what="additions at indices that run below 3 % of the memory's ceiling",
            time="known only after a trial",
            lab="roofline",
        ),
    ),
    rule=contention,
    untried=BY_EDIT,
)
