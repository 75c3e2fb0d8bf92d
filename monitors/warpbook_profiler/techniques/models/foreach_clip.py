"""Gradients that are clipped one by one: a norm of each, then a factor on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.joined_loops import (
    OF_LOOP,
    are_alike,
    in_optimizer,
    join,
)
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.norms_at_once import norms_at_once
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: also of squares, which are summed up
_NORMS = ("aten::linalg_vector_norm", "aten::norm", "aten::sum")
_SCALES = ("aten::mul_", "aten::div_")
#: that make another tensor, of one and a factor
_SCALED = ("aten::mul", "aten::div")
#: what else such loops do with numbers that they have
_BESIDE = frozenset(
    "item is_nonzero _local_scalar_dense pow pow_ square add add_ mul div sqrt detach "
    "detach_ alias to _to_copy stack cat max clamp clamp_ linalg_norm sum reciprocal "
    "rsub le lt gt ge minimum empty_like view reshape unsqueeze select".split()
)
_LEAST_TENSORS = 16
#: as `OF_LOOP`: 0.46 of norms and factors on an H200
_OF_NORMS = (0.7, 1.2)
#: a window with more is judged by these
_MOST_CALLS = 50_000
_LEAST_ALIKE = 0.9


def foreach_clip(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one call that takes all gradients."""
    operators = evidence.operators
    loops = list(_loops(operators))
    clipped = [
        pair for pair in zip(loops, loops[1:], strict=False) if _fit(operators, *pair)
    ]
    if not clipped:
        return
    ways, kernels = Ways(evidence), np.zeros(0, np.int64)
    for norms, scales in clipped:
        for loop, passes, kept in ((norms, 1, _OF_NORMS), (scales, 2, OF_LOOP)):
            events = join(evidence, ways, loop, len(loop), passes, kept)
            kernels = np.append(kernels, events)
    first = int(clipped[0][0][0])
    yield Proposal(
        name="foreach-clip",
        title=(
            "Clip all gradients at once: "
            "torch.nn.utils.clip_grad_norm_(..., foreach=True)."
        ),
        evidence=(
            f"The norms of {len(clipped[0][1]):,} tensors are computed, and the "
            f"tensors scaled, one by one: {len(kernels):,} kernels, "
            f"{units.share(evidence.share(evidence.time_ns(kernels)))} of the bare run."
        ),
        ways=ways,
        operator=operators.name(first),
        line=evidence.line_at(int(operators.table.start_ns[first])),
        code=norms_at_once(evidence.code)
        if all(are_alike(operators, scales) for _, scales in clipped)
        else "",
    )


def _loops(operators: Operators) -> Iterator[Int64s]:
    """Give norms, and what scales tensors, as they follow one another in loops."""
    table, launching = operators.table, operators.launching
    is_norm = operators.named(*_NORMS)
    has_factor = [not all(one.dims[:2]) for one in table.operands]
    is_scale = operators.named(*_SCALED)
    is_scale &= np.array([*has_factor, False])[table.operand]
    is_scale |= operators.named(*_SCALES)
    is_scale &= operators.outermost
    chosen = launching[(is_norm | is_scale)[launching]][:_MOST_CALLS]
    is_large = [any(one.dims[:2]) for one in table.operands]
    chosen = chosen[np.array([*is_large, False])[table.operand[chosen]]]
    cuts = is_norm[chosen[1:]] != is_norm[chosen[:-1]]
    cuts |= table.track[chosen[1:]] != table.track[chosen[:-1]]
    # a forward and a backward pass sum, too
    others = _others_before(operators, chosen)
    cuts |= others[1:] != others[:-1]
    for loop in np.split(chosen, np.flatnonzero(cuts) + 1):
        if len(loop) >= _LEAST_TENSORS and not in_optimizer(operators, int(loop[0])):
            yield loop


def _fit(operators: Operators, norms: Int64s, scales: Int64s) -> bool:
    """Tell whether tensors of the same sizes are scaled after their norms."""
    if not operators.named(*_NORMS)[norms[0]] or operators.named(*_NORMS)[scales[0]]:
        return False
    taken, scaled = (
        Counter(_first(operators, one) for one in loop.tolist())
        for loop in (norms, scales)
    )
    return (taken & scaled).total() >= _LEAST_ALIKE * len(scales)


def _first(operators: Operators, position: int) -> tuple[int, ...]:
    return next(filter(None, operators.operands(position).dims), ())


def _others_before(operators: Operators, chosen: Int64s) -> Int64s:
    """Count what a thread called, before each of these, for anything else."""
    own = {*_NORMS, *_SCALES} | {f"aten::{name}" for name in _BESIDE}
    other = np.flatnonzero(operators.outermost & ~operators.named(*own))
    track, outer = operators.table.track, operators.outer_of(chosen)
    count = np.zeros(len(chosen), np.int64)
    for thread in distinct(track[chosen]).tolist():
        mine = track[chosen] == thread
        count[mine] = np.searchsorted(other[track[other] == thread], outer[mine])
    return count


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("foreach-clip",),
            what="gradients whose norms are computed, and which are scaled, one by one",
            time="predicted",
        ),
    ),
    rule=foreach_clip,
    untried=BY_EDIT,
)
