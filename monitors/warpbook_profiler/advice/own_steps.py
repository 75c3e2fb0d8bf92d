"""An update of a model's tensors that the cell writes itself, as a loop over them.

Turns of a simulation call the same operators. What tells them apart is a backward pass
before, and tensors of several sizes; or a loop of the source that updates a list.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.found_loops import FoundLoops
from warpbook_profiler.advice.joined_loops import (
    OF_LOOP,
    are_averages,
    in_optimizer,
    join,
)
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import Repeat, repeats
from warpbook_profiler.advice.translation.foreach import updating_loops
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s

_LEAST_TENSORS = 16
#: what updates one tensor: elements of it, its gradient and what is kept beside
_PARTS = frozenset(
    "abs add add_ addcdiv addcdiv_ addcmul addcmul_ clamp clamp_ clamp_max clamp_max_ "
    "clamp_min clamp_min_ copy_ div div_ exp lerp lerp_ maximum mul mul_ neg pow "
    "reciprocal rsqrt sign sqrt sqrt_ square sub sub_ where zero_ fill_".split()
)
#: one of them writes what a turn computed to a tensor that was there
_WRITES = frozenset("add_ sub_ addcdiv_ addcmul_ copy_".split())
#: tensors that a fused update reads and writes, at least
_PASSES = 3
_LEAST_SHARE = 0.05
#: operators of a turn; one alone may only clip
_LEAST_IN_SIGHT = 2


def own_steps(evidence: Evidence, name: str) -> Iterator[Proposal]:
    """Propose one call for all tensors.

    Args:
        evidence: of a window in which no optimizer of torch makes a step.
        name: of the change.
    """
    operators, table = evidence.operators, evidence.operators.table
    is_trained = any("Backward" in one for one in table.names)
    in_sight: FoundLoops | None = None
    launches = np.zeros(len(table), np.bool_)
    launches[operators.outer_of(operators.launching)] = True
    ways, found = Ways(evidence), list[tuple[Repeat, Int64s]]()
    for repeat in repeats(operators, _LEAST_TENSORS):
        one = repeat.one[launches[repeat.one]]
        if not _computes_alone(operators, one):
            continue
        is_known = is_trained and _is_update(operators, repeat, one)
        # after a backward pass the same operators may be a step with momentum or decay
        is_other = len(one) < _LEAST_IN_SIGHT or are_averages(operators, one)
        if not is_known and not is_other:
            in_sight = in_sight or FoundLoops(evidence, updating_loops)
            is_known = in_sight.hold(repeat)
        if is_known:
            found.append((repeat, repeat.operators[launches[repeat.operators]]))
    if not found:
        return
    ends_ns = table.end_ns[[repeat.operators[-1] for repeat, _ in found]]
    begins_ns = table.start_ns[[repeat.operators[0] for repeat, _ in found]]
    if evidence.share(int((ends_ns - begins_ns).sum())) < _LEAST_SHARE:
        return
    kernels = 0
    for repeat, loop in found:
        each = len(loop) // repeat.turns
        # a fused update takes next to no time, one call for each operator that much
        kept = (0.0, OF_LOOP[0] * each)
        kernels += len(join(evidence, ways, loop, repeat.turns, _PASSES, kept))
    first = int(found[0][1][0])
    yield Proposal(
        name=name,
        title=(
            "Update all tensors at once: an optimizer of torch with fused=True, or "
            "torch._foreach functions on lists of them."
        ),
        evidence=(
            f"{found[0][0].turns:,} tensors are updated one by one"
            f"{' after the backward pass' if is_trained else ''}: {kernels:,} kernels "
            f"in {len(found):,} loop{'s' if len(found) != 1 else ''}."
        ),
        ways=ways,
        is_bound=True,
        reason="What remains is the host's part of these calls.",
        operator=operators.name(first),
        line=evidence.line_at(int(table.start_ns[first])),
    )


def _computes_alone(operators: Operators, turn: Int64s) -> bool:
    """Tell whether a turn only does arithmetic, and no optimizer of torch calls it."""
    names = {operators.name(at).removeprefix("aten::") for at in turn.tolist()}
    is_arithmetic = bool(names) and names <= _PARTS
    return is_arithmetic and not in_optimizer(operators, int(turn[0]))


def _is_update(operators: Operators, repeat: Repeat, turn: Int64s) -> bool:
    """Tell whether turns write other tensors each."""
    if not any(operators.name(at).removeprefix("aten::") in _WRITES for at in turn):
        return False
    place = int(np.flatnonzero(repeat.one == turn[0])[0])
    firsts = repeat.operators[place :: repeat.length].tolist()
    sizes = {operators.operands(at).dims[:1] for at in firsts}
    # turns of a simulation take the same tensors again
    return len(sizes) > 1
