"""Chains of operators that pass over the same tensor, each through memory again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warpbook_monitors.changes.chip import Span
from warpbook_monitors.changes.evidence import Evidence
from warpbook_monitors.changes.kernel_runs import launched, runs
from warpbook_monitors.changes.proposal import Proposal
from warpbook_monitors.changes.ways import Ways
from warpbook_monitors.trace.columns import Bools, Int64s
from warpbook_monitors.trace.traffic import ITEM_BYTES, only_passes

#: shorter kernels are launched more slowly than they run: that is another change
_LEAST_MEAN_NS = 8_000
#: what one fused kernel would hold; a longer chain becomes several
_MOST_MEMBERS = 32
#: of a chain, operators that give a new tensor
_LEAST_NEW = 2
#: they begin a tensor, so nothing before them is read
_NEW = frozenset("zero fill normal uniform".split())
#: sizes of a hostile file are cut here
_MOST_ELEMENTS = 2.0**60
_OPTIMIZER = "Optimizer.step#"


@dataclass(frozen=True)
class _Chain:
    """Kernels that follow one another over tensors of one size."""

    #: among the events on the GPU, and the operator of each
    events: Int64s
    operators: Int64s
    #: what one kernel must move, at least and at most
    least_bytes: int
    most_bytes: int


def pointwise(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to fuse the chains into one kernel each."""
    chip, operators = evidence.chip, evidence.operators
    chains = _chains(evidence)
    if not chains:
        return
    ways = Ways(evidence)
    time_ns = kernels = 0
    for chain in chains:
        time_ns += evidence.time_ns(chain.events)
        kernels += len(chain.events)
        ways.drop_operators(np.unique(chain.operators[1:]))
        if chip is not None:
            low, high = (
                chip.pass_over(size_bytes)
                for size_bytes in (chain.least_bytes, chain.most_bytes)
            )
            usual_ns = (low.usual_ns + high.usual_ns) / 2
            span = Span(low.low_ns, usual_ns, high.high_ns)
            ways.resize(chain.events[:1], span.at_most(evidence.time_ns(chain.events)))
    longest = max(chains, key=lambda chain: evidence.time_ns(chain.events))
    names = [operators.name(at).removeprefix("aten::") for at in longest.operators]
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    yield Proposal(
        name="fuse",
        title="Fuse the chain into one kernel with torch.compile.",
        evidence=(
            f"{kernels:,} kernels pass over the same tensors one after the other "
            f"({shown}), which takes {evidence.share(time_ns):.0%} of the bare run."
        ),
        ways=ways,
        is_bound=chip is None,
        reason="" if chip else "No ceilings of this GPU are known.",
        operator=operators.name(int(longest.operators[0])),
        line=evidence.line_at(int(operators.table.start_ns[int(longest.operators[0])])),
        sketch="@torch.compile\ndef fused(x):\n    ...  # the chain, unchanged",
        lab="roofline",
    )


def _chains(evidence: Evidence) -> list[_Chain]:
    operators, gpu = evidence.operators, evidence.gpu
    if not len(operators.table):
        return []
    passing, elements = _passing(evidence)
    direct = operators.direct
    # the last is that of kernels that no operator called for
    passes = np.append(passing & ~_in_optimizer(evidence), False)[direct]
    gives_new = np.append(_gives_new(evidence), 0)[direct]
    size = np.append(elements, 0)[direct]
    chains = []
    for run in runs(evidence, launched(evidence), passes, 2, size):
        # cut where it is too long for one kernel
        for first in range(0, len(run), _MOST_MEMBERS):
            events = run[first : first + _MOST_MEMBERS]
            is_long = gpu.duration_ns[events].mean() >= _LEAST_MEAN_NS
            # what works in place may be on another tensor each time
            if len(events) > 1 and is_long and gives_new[events].sum() >= _LEAST_NEW:
                chains.append(_chain(evidence, events, direct[events]))
    return chains


def _passing(evidence: Evidence) -> tuple[Bools, Int64s]:
    """Choose the operators that pass over tensors; give the elements of the largest."""
    table = evidence.operators.table
    of_name = np.array([only_passes(name) for name in table.names] or [False])
    sizes = [
        max((math.prod(dims) for dims in operands.dims if dims), default=0)
        for operands in table.operands
    ]
    # the last is that of operators whose operands were not recorded
    known = np.minimum(np.array([*sizes, 0], np.float64), _MOST_ELEMENTS)
    elements = known[table.operand].astype(np.int64)
    return of_name[table.name] & (elements > 1), elements


def _gives_new(evidence: Evidence) -> Int64s:
    """Count 1 for each operator that gives a new tensor of what it reads."""
    table = evidence.operators.table
    names = [name.removeprefix("aten::") for name in table.names]
    fits = [not (name.endswith("_") or name.rstrip("_") in _NEW) for name in names]
    return np.array(fits or [False], np.int64)[table.name]


def _in_optimizer(evidence: Evidence) -> Bools:
    """Choose the operators of an optimizer's step, which has a change of its own."""
    marks = evidence.operators.annotations
    steps = np.array([name.startswith(_OPTIMIZER) for name in marks.names] or [False])
    marks = marks.where(steps[marks.name])
    begun_ns = evidence.operators.table.start_ns
    place = np.searchsorted(marks.start_ns, begun_ns, side="right") - 1
    ends_ns = np.append(marks.end_ns, np.iinfo(np.int64).min)
    inside: Bools = begun_ns < ends_ns[place]
    return inside & (place >= 0)


def _chain(evidence: Evidence, events: Int64s, positions: Int64s) -> _Chain:
    operators = evidence.operators
    largest = outside = 0
    for number, position in enumerate(positions.tolist()):
        operands = operators.operands(position)
        sizes = [
            math.prod(dims) * ITEM_BYTES.get(dtype, 4)
            for dims, dtype in zip(operands.dims, operands.dtypes, strict=False)
            if dims
        ]
        largest = max([largest, *sizes])
        is_new = operators.name(position).removeprefix("aten::").rstrip("_") in _NEW
        # each but the first takes at least one from the operator before it
        outside += (
            0 if is_new else sum(sizes) - (max(sizes, default=0) if number else 0)
        )
    return _Chain(events, positions, 2 * largest, outside + largest)
