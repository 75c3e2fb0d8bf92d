"""What a loop carries through rows and computes with in each: a scan gives it first."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.cell_code import walk
from warpbook_profiler.advice.code.torch_code import BINARY, steps
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import (
    Repeat,
    repeats,
    rows_from,
    taking_apart,
)
from warpbook_profiler.advice.rewriting.scans import running
from warpbook_profiler.advice.translation.carried_loop import carried_loop
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.facts.traffic import only_passes, tensor_sizes

#: fewer rows are no loop worth a word
_LEAST_ROWS = 8
#: of all that is launched, what the loop launches at least
_LEAST_SHARE = 0.5
#: of the host, in operators: what is beside a scan
OTHERS = (0.0, 0.8, 2.5)
#: each step waits for the one before: 155 ns for sums and products and 260 ns for the
#: best, in ten shapes on an H200
_STEP_NS, _BEST_STEP_NS = (140.0, 160.0, 180.0), (190.0, 260.0, 280.0)
_REAL = frozenset(("float", "double"))
_CARRIES = (
    *("aten::mul", "aten::add", "aten::mul_", "aten::add_"),
    *("aten::maximum", "aten::minimum", "aten::logaddexp"),
)
#: what turns store, choose or cast may be called by these
_STORES = "copy fill zero to clone contiguous index index_put".split()
_NUMPY = ("np", "numpy")


def steps_of(rows: int, function: str) -> Span:
    """Give how long a scan of torch takes whose steps wait for one another."""
    is_best = function in ("cummax", "cummin")
    return Span(*(rows * one for one in (_BEST_STEP_NS if is_best else _STEP_NS)))


def carried(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a scan, and all turns at once of what it gives."""
    sure, chip = carried_loop(evidence.code), evidence.chip
    of_code = [*filter(None, (sure, *running(evidence.code)))]
    if chip is None or not of_code:
        return
    operators = evidence.operators
    table, carries = operators.table, operators.named(*_CARRIES)
    # a function may be called again and again, with a loop each time
    by_turn = defaultdict[tuple[int, ...], list[Repeat]](list)
    for one in repeats(operators, _LEAST_ROWS):
        if carries[one.one].any():
            by_turn[tuple(table.name[one.one].tolist())].append(one)
    loops = [
        (launched, alike, one)
        for alike in by_turn.values()
        for launched in [sum(len(_launched(operators, it.operators)) for it in alike)]
        if launched >= _LEAST_SHARE * len(operators.direct)
        for one in of_code
        if _may_be(operators, alike[0], one.loop)
    ]
    if not loops:
        return
    _, alike, found = max(loops, key=lambda one: one[0])
    ways = Ways(evidence)
    are_known = [_widen(evidence, chip, ways, one, found.function) for one in alike]
    is_known, (repeat, *_) = all(are_known), alike
    first, turns = _launched(operators, repeat.one), sum(one.turns for one in alike)
    begun_ns = table.start_ns[[one.operators[0] for one in alike]]
    ended_ns = table.end_ns[[one.operators[-1] for one in alike]]
    took_ns = int((ended_ns - begun_ns).sum())
    names = " and ".join(found.names)
    yield Proposal(
        name="scan",
        title=(
            f"Compute {names} for all rows with torch.{found.function}, then the rest "
            "at once."
        ),
        evidence=(
            f"A loop carries {names} through {turns:,} rows, each with "
            f"{len(first)} kernels: {duration_ns(took_ns)} of the profiled run."
        ),
        ways=ways,
        is_bound=not is_known,
        reason=""
        if is_known
        else "The trace does not show how long the host takes for all rows at once.",
        operator=operators.name(int(repeat.one[0])),
        line=found.loop.lineno,
        code=found.code
        if found is sure and operators.takes_rows and _is_real(operators, repeat)
        else "",
    )


def _launched(operators: Operators, calls: Int64s) -> Int64s:
    return operators.launched_from(int(calls[0]), int(calls[-1]))


def _widen(
    evidence: Evidence, chip: Chip, ways: Ways, repeat: Repeat, function: str
) -> bool:
    """Have the first turn do the work of all; tell whether it only passes over rows."""
    operators, table = evidence.operators, evidence.operators.table
    first = _launched(operators, repeat.one)
    ways.drop(np.setdiff1d(_launched(operators, repeat.operators), first))
    callers = operators.direct[first]
    scanned = first[operators.named(*_CARRIES)[callers]][:1]
    for event in first.tolist():
        caller = operators.operands(int(operators.direct[event]))
        size_bytes = sum(tensor_sizes(caller) or [0]) * repeat.turns
        span = chip.pass_over(float(size_bytes))
        if event in scanned:
            span = Span(*map(max, span, steps_of(repeat.turns, function)))
        ways.resize(np.array([event]), span)
    ways.add_host(
        evidence.calls.launch[scanned], evidence.takes("operator").each(*OTHERS)
    )
    is_known = all(only_passes(operators.name(at)) for at in callers.tolist())
    begun, ended = int(repeat.one[-1]), int(repeat.operators[-1])
    start_ns, end_ns = table.end_ns[[begun]], table.end_ns[[ended]]
    ways.drop_host(repeat.thread, start_ns, end_ns, in_worst=is_known)
    apart = rows_from(operators, repeat, taking_apart(operators))
    if apart is not None:
        start_ns, end_ns = table.start_ns[[apart]], table.end_ns[[apart]]
        ways.drop_host(repeat.thread, start_ns, end_ns, in_worst=is_known)
    return is_known


def _may_be(operators: Operators, repeat: Repeat, loop: ast.For | ast.While) -> bool:
    """Tell whether what a group calls is what turns of a loop call."""
    launched = operators.launched_from(*(int(repeat.one[at]) for at in (0, -1)))
    called = [
        {_base(operators.name(int(at))) for at in (outer, direct)}
        for outer, direct in zip(
            operators.outer[launched], operators.direct[launched], strict=True
        )
    ]
    every, known, is_known = set[str]().union(*called), set(_STORES), True
    for part in (part for one in loop.body for part in walk(one)):
        if isinstance(part, ast.AugAssign):
            known.add(BINARY.get(type(part.op), ""))
    for step in (step for one in loop.body for step in steps(one)):
        names = set(step.names)
        match step.node:
            case ast.Call(func=ast.Attribute(attr=name, value=module)):
                names.add(name.rstrip("_"))
                is_sure = not (step.is_opaque or step.is_optional)
                is_sure &= ast.unparse(module) not in _NUMPY
                if is_sure and names.isdisjoint(every):
                    return False
        # what is not known may call anything
        is_known &= not step.is_opaque or not names.isdisjoint(every)
        known |= names
    known |= {"rsub"} if "sub" in known else set()
    return not is_known or not any(map(known.isdisjoint, called))


def _base(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")


def _is_real(operators: Operators, repeat: Repeat) -> bool:
    """Tell whether tensors are of one floating dtype: scans widen integers."""
    taken = [operators.operands(at) for at in repeat.one.tolist()]
    kinds = {
        kind
        for one in taken
        for dims, kind in zip(one.dims, one.dtypes, strict=False)
        if dims
    }
    return len(kinds) == 1 and kinds <= _REAL
