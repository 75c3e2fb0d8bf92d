"""A running sum, product or best of a tensor's rows, taken in a loop row by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import (
    written,
)
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import (
    Repeat,
    repeats,
    rows_from,
    taking_apart,
)
from warpbook_profiler.advice.rewriting.scans import SCANS
from warpbook_profiler.advice.translation.carried_rows import OTHERS, carried, steps_of
from warpbook_profiler.advice.translation.running_rows import (
    RunningLoop,
    at_once,
    scans,
)
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: fewer rows are no loop worth a word
_LEAST_ROWS = 8
_COPIES = ("aten::copy_",)
_JOINS = ("aten::stack", "aten::cat")
#: operators after the loop, among which they are joined
_NEAR = 4
#: along the last axis a scan reads again what others wait for, and is as many passes
_PASSES = (1.0, 4.0, 10.0)


def scan(evidence: Evidence) -> Iterator[Proposal]:
    """Propose cumsum, cumprod, cummax or cummin."""
    chip = evidence.chip
    if chip is None:
        return
    for loop in scans(evidence.code):
        name = f"aten::{loop.operation}"
        mine = [
            repeat
            for repeat in repeats(evidence.operators, _LEAST_ROWS)
            if _is_turn(evidence, repeat, name)
        ]
        if not mine:
            continue
        operators, ways = evidence.operators, Ways(evidence)
        table, apart = operators.table, taking_apart(operators)
        outer = np.flatnonzero(operators.outermost)
        for repeat in mine:
            first, last = int(repeat.operators[0]), int(repeat.operators[-1])
            (kept, *_) = (at for at in repeat.one if operators.name(int(at)) == name)
            launched = operators.launched_from(first, last)
            own = operators.launched_within(np.array([kept]))
            ways.drop(np.setdiff1d(launched, own[:1]))
            ways.resize(own[:1], _span(evidence, repeat, int(kept), loop))
            # with taking the rows apart, and giving them back before others come
            begun = rows_from(operators, repeat, apart)
            joined = _joined(evidence, repeat) if loop.is_list else outer[:0]
            ways.drop_operators(joined)
            (then, *_) = (*outer[outer > last], last)
            ended = table.start_ns[then] if then in joined else table.end_ns[last]
            starts = np.array(
                [table.start_ns[first if begun is None else begun], table.end_ns[kept]]
            )
            ends = np.array([table.start_ns[kept], ended])
            ways.drop_host(repeat.thread, starts, ends, in_worst=True)
            ways.add_host(
                evidence.calls.launch[own[:1]],
                evidence.takes("operator").each(*OTHERS),
            )
        rows = sum(repeat.turns for repeat in mine)
        longest = max(mine, key=lambda repeat: repeat.turns)
        begun, ended = longest.operators[[0, -1]]
        took_ns = int(operators.table.end_ns[ended] - operators.table.start_ns[begun])
        function = SCANS[loop.operation].running
        yield Proposal(
            name="scan",
            title=f"Compute all rows at once with torch.{function}.",
            evidence=(
                f"A loop carries {loop.carried} through {rows:,} rows of "
                f"{written(loop.rows)} and stores each value: {name} is called once a "
                f"row, in {duration_ns(took_ns)} of the profiled run."
            ),
            ways=ways,
            operator=name,
            line=loop.node.lineno,
            code=at_once(evidence.code, loop)
            if operators.takes_rows
            and all(_are_alike(evidence, repeat, loop) for repeat in mine)
            else "",
        )
        return
    yield from carried(evidence)


def _is_turn(evidence: Evidence, repeat: Repeat, name: str) -> bool:
    """Tell whether a turn is one such operator, with looks at tensors and copies."""
    operators = evidence.operators
    launched = operators.launched_from(int(repeat.one[0]), int(repeat.one[-1]))
    names = {operators.name(int(at)) for at in operators.outer[launched]}
    return name in names and names <= {name, *_COPIES}


def _are_alike(evidence: Evidence, repeat: Repeat, loop: RunningLoop) -> bool:
    """Tell whether what is carried, rows and what is kept have one shape and dtype.

    What the first turn takes along the first axis may be smaller, or a number.
    """
    operators, name = evidence.operators, f"aten::{loop.operation}"
    computes, shapes, dtypes = 0, set[tuple[int, ...]](), set[str]()
    for at in repeat.operators.tolist():
        is_copy, taken = operators.name(at) in _COPIES, operators.operands(at)
        if not is_copy and operators.name(at).rstrip("_") != name:
            continue
        computes += not is_copy
        if is_copy or computes > 1 or loop.axis:
            shapes |= set(taken.dims[:2])
            # what is kept may be of another dtype
            dtypes |= set(() if is_copy else taken.dtypes[:2])
    return len(shapes) == 1 and len(dtypes) == 1 and not dtypes & {"bool", ""}


def _span(evidence: Evidence, repeat: Repeat, operator: int, loop: RunningLoop) -> Span:
    """Return how long the scan takes."""
    operators, chip = evidence.operators, evidence.chip
    operands = operators.operands(operator)
    size_bytes = max(tensor_sizes(operands) or [0]) * repeat.turns
    passed = Span(0, 0, 0) if chip is None else chip.pass_over(2.0 * size_bytes)
    if operands.dims and loop.axis >= len(operands.dims[0]):
        return passed.each(*_PASSES)
    function = SCANS[loop.operation].running
    return Span(*map(max, passed, steps_of(repeat.turns, function)))


def _joined(evidence: Evidence, repeat: Repeat) -> Int64s:
    """Return the operator that joins the rows of a list right after the loop."""
    operators = evidence.operators
    outer = np.flatnonzero(operators.outermost)
    at = int(np.searchsorted(outer, repeat.operators[-1])) + 1
    near = outer[at : at + _NEAR]
    joins: Int64s = near[operators.named(*_JOINS)[near]][:1]
    return joins


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("scan",),
            what=(
                "a running sum, product, maximum or minimum that a loop computes row "
                "by row"
            ),
            time=(
                "predicted; a bound where iterations do more than pass over their rows"
            ),
        ),
    ),
    rule=scan,
    untried=BY_EDIT,
)
