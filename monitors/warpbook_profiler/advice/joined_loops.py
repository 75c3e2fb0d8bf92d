"""What one call that takes many tensors does in the place of a loop over them."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.facts.traffic import tensor_sizes

#: of the host's time for an operator of a loop, what one call takes for each tensor,
#: usually and at most: 0.31 of averages on an H200
OF_LOOP = (0.35, 0.9)
#: of the usual share, at best: it has its lists from the turn before
_LISTED = 0.7
#: what one turn calls, without views, for an average in place or a new one
_AVERAGES = frozenset(
    tuple(names.split())
    for names in (
        "lerp_",
        "lerp copy_",
        "mul_ add_",
        "mul_ mul add_",
        "mul mul add copy_",
        "mul mul add",
        "mul add copy_",
        "sub mul sub_",
        "sub mul_ sub_",
        "sub mul add_",
    )
)
#: the argument of `add_` that what is added is multiplied by
_ALPHA = 2
#: tensors that one kernel takes
_AT_ONCE = 60


def are_alike(operators: Operators, loop: Int64s) -> bool:
    """Tell whether each operator takes tensors of one size and dtype, and numbers."""
    kinds = np.unique(operators.table.operand[loop])
    taken = [operators.table.operands[kind] for kind in kinds[kinds != NONE].tolist()]
    return all(
        len({one for one in zip(called.dims, called.dtypes, strict=False) if one[0]})
        < 2
        for called in taken
    )


def are_averages(operators: Operators, turn: Int64s) -> bool:
    """Tell whether a turn's operators move an average, whichever of them is first."""
    names = tuple(operators.name(at).removeprefix("aten::") for at in turn.tolist())
    whole = [names[at:] + names[:at] for at in range(len(names))]
    if ("mul_", "add_") in whole:
        add = next(at for at in turn.tolist() if operators.name(at) == "aten::add_")
        return _is_share(operators.operands(add).scalars[_ALPHA:])
    return not _AVERAGES.isdisjoint(whole)


def _is_share(alpha: tuple[str, ...]) -> bool:
    """Tell whether so much is added to an average; a step adds all, or subtracts."""
    try:
        return 0 < float(alpha[0]) < 1
    except (IndexError, ValueError):
        # it was not recorded
        return True


def in_optimizer(operators: Operators, position: int) -> bool:
    """Tell whether an optimizer's step calls an operator."""
    marks = operators.annotations
    steps = [name.startswith("Optimizer.step") for name in marks.names]
    is_step = np.array([*steps, False])[marks.name]
    begun_ns = operators.table.start_ns[position]
    return bool(
        (is_step & (marks.start_ns <= begun_ns) & (begun_ns < marks.end_ns)).any()
    )


def outermost(operators: Operators, first: int, last: int) -> Int64s:
    """Give a thread's outermost operators from one to another."""
    table = operators.table
    begin, end = operators.outer_of(np.array([first, last])).tolist()
    tops = begin + np.flatnonzero(operators.outermost[begin : end + 1])
    mine: Int64s = tops[table.track[tops] == table.track[first]]
    return mine


def join(
    evidence: Evidence,
    ways: Ways,
    loop: Int64s,
    tensors: int,
    passes: int,
    kept: tuple[float, float],
) -> Int64s:
    """Have one call do the work of a loop over tensors; give the loop's kernels.

    Args:
        evidence: the window.
        ways: where it is done.
        loop: the operators that do the work, as many for each tensor.
        tensors: how many there are.
        passes: over the tensors, by one that takes all of them.
        kept: of the host's time for an operator of the loop, what such a call takes
            for each tensor, usually and at most: it lists them, and looks at each.
    """
    operators, table = evidence.operators, evidence.operators.table
    between = outermost(operators, int(loop[0]), int(loop[-1]))
    events = operators.launched_within(between)
    first = operators.launched_within(between[:1])[:1]
    ways.drop(np.setdiff1d(events, first))
    begins = table.start_ns[between]
    spans_ns = np.diff(begins, append=table.end_ns[between[-1:]])
    # what is between, such as reads, goes
    own_ns = np.where(
        np.isin(between, operators.outer_of(loop)), table.duration_ns[between], 0
    )
    thread, ratio = int(table.track[loop[0]]), tensors / len(loop)
    least, also, gone = (
        (begins + spans_ns - np.minimum(share * ratio * own_ns, spans_ns))[1:].astype(
            np.int64
        )
        for share in (_LISTED * kept[0], *kept)
    )
    ways.drop_host(thread, begins[1:], gone, in_worst=True)
    ways.drop_host(thread, gone, also)
    ways.drop_host(thread, also, least, in_usual=False)
    kinds = table.operand[loop]
    moved = 0.0
    for kind, count in zip(
        *np.unique(kinds[kinds != NONE], return_counts=True), strict=True
    ):
        sizes = tensor_sizes(table.operands[kind])
        moved += int(count) * (sizes[0] if sizes else 0)
    moved *= ratio
    launches = max(tensors / _AT_ONCE, 1.0)
    if evidence.chip is not None:
        kernel = evidence.chip.pass_over(passes * moved / launches)
        ways.resize(first, kernel.times(launches).at_most(evidence.time_ns(events)))
    return events
