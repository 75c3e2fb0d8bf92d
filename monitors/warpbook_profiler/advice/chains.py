"""Chains of operators that pass over tensors of one size, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.flows import Flows, Moved
from warpbook_profiler.advice.kernel_runs import launched, runs
from warpbook_profiler.events.columns import Bools, Int64s
from warpbook_profiler.facts.traffic import only_passes

#: shorter kernels are launched more slowly than they run: that is another change
_LEAST_MEAN_NS = 8_000
#: what one fused kernel would hold; a longer chain becomes several
_MOST_MEMBERS = 32
#: of a chain, operators that give a new tensor
_LEAST_NEW = 2
#: each begins a chain: two that follow one another are mostly of different tensors
_WHOLE = frozenset(
    "native_layer_norm native_group_norm native_batch_norm cudnn_batch_norm "
    "_fused_rms_norm _softmax _log_softmax".split()
)
#: of the sizes around it, below which an operator on numbers of each row is small
_ROW_RATIO = 64
#: turns of a loop; and the same call over and over, which is on other tensors
_LEAST_TURNS, _LEAST_ALIKE = 3, 4
#: a window with more launches has its chains without them
_MOST_FILLED = 50_000
#: they begin a tensor, so nothing before them is read
_NEW = frozenset("zero fill normal uniform".split())
#: sizes of a hostile file are cut here
_MOST_ELEMENTS = 2.0**60
_OPTIMIZER = "Optimizer.step#"


@dataclass(frozen=True)
class Chain:
    """Kernels that follow one another over tensors of one size."""

    #: among the events on the GPU, and the operator of each
    events: list[int]
    operators: list[int]
    moved: Moved
    time_ns: int


def pass_chains(evidence: Evidence) -> list[Chain]:
    """Give the chains of two kernels and more that would become one."""
    operators, gpu = evidence.operators, evidence.gpu
    if not len(operators.table):
        return []
    passing, elements = _passing(evidence)
    direct = operators.direct
    # the last is that of kernels that no operator called for
    passes = np.append(passing & ~_in_optimizer(evidence), False)[direct]
    gives_new = np.append(_gives_new(evidence), 0)[direct]
    order = evidence.once(launched)
    size = np.append(elements, 0)[direct]
    size[order] = _of_rows_too(size[order])
    table, flows, found = operators.table, Flows(operators), list[Chain]()
    is_whole = [base_name(name) in _WHOLE for name in table.names] or [False]
    whole = np.array(is_whole)[table.name]
    cuts: dict[tuple[int, ...], list[slice]] = {}
    for run in runs(evidence, order, passes, 2, size):
        called = direct[run]
        kinds = tuple(flows.kind[called].tolist())
        if kinds not in cuts:
            cuts[kinds] = list(_cut(kinds, whole[called].tolist()))
        if not cuts[kinds]:
            continue
        events, by, adds = run.tolist(), called.tolist(), gives_new[run].tolist()
        took_ns = gpu.duration_ns[run].tolist()
        for part in cuts[kinds]:
            for places, moved in flows.chains(by[part], kinds[part]):
                at = [part.start + place for place in places]
                time_ns = sum(took_ns[one] for one in at)
                is_long = time_ns / len(at) >= _LEAST_MEAN_NS
                # what works in place may be on another tensor each time
                if is_long and sum(adds[one] for one in at) >= _LEAST_NEW:
                    found.append(
                        Chain(
                            [events[one] for one in at],
                            [by[one] for one in at],
                            moved,
                            time_ns,
                        )
                    )
    return found


def _of_rows_too(sizes: Int64s) -> Int64s:
    """Give operators on a number of each row the size of those around them."""
    small = int(sizes.max(initial=0)) // _ROW_RATIO
    if len(sizes) > _MOST_FILLED or not ((sizes > 0) & (sizes <= small)).any():
        return sizes
    size = sizes.tolist()
    filled, is_small = size.copy(), [False] * len(size)
    for at in range(1, len(size)):
        is_small[at] = 0 < size[at] <= filled[at - 1] // _ROW_RATIO
        if is_small[at]:
            filled[at] = filled[at - 1]
    # what nothing of that size follows is at the end of a chain, and no part of it
    after = [*size[1:], 0]
    for at in range(len(size) - 1, 0, -1):
        if is_small[at] and after[at] != filled[at]:
            filled[at] = size[at]
        after[at - 1] = filled[at]
    return np.array(filled, np.int64)


def _cut(kinds: Sequence[int], wholes: list[bool]) -> Iterator[slice]:
    """Cut a run where it is too long for one kernel, or begins with a new tensor.

    A turn of a loop does, as far as is known. What is cut to one kernel is no chain.
    """
    begins, seen, turns = [0], 0, _turns(kinds)
    for at, is_whole in enumerate(wholes):
        seen += is_whole
        if at in turns or at - begins[-1] >= _MOST_MEMBERS or seen > 1:
            begins.append(at)
            seen = 0 if seen <= 1 else 1
    for first, until in pairwise([*begins, len(kinds)]):
        if until - first > 1:
            yield slice(first, until)


def _turns(kinds: Sequence[int]) -> set[int]:
    """Find where the same operators with the same operands begin once more."""
    begins, at = set[int](), 0
    while at < len(kinds):
        longest = min(_MOST_MEMBERS // 2, (len(kinds) - at) // _LEAST_TURNS)
        for length in range(1, longest + 1):
            until = at + length
            while until < len(kinds) and kinds[until] == kinds[until - length]:
                until += 1
            if until - at >= max(_LEAST_TURNS * length, _LEAST_ALIKE):
                begins |= {*range(at, until, length)}
                at = until - 1
                break
        at += 1
    return begins


def base_name(name: str) -> str:
    """Give the name of an operator without what says that it works in place."""
    return name.removeprefix("aten::").rstrip("_")


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
