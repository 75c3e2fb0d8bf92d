"""What a loop carries through rows and computes with in each: a scan gives it first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.chip import Span
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
    if chip is None:
        return
    operators = evidence.operators
    table = operators.table
    repeated = [
        (launched, repeat)
        for repeat in repeats(operators, _LEAST_ROWS)
        if operators.named(*_CARRIES)[repeat.one].any()
        for launched in [
            operators.launched_from(*(int(repeat.operators[at]) for at in (0, -1)))
        ]
        if len(launched) >= _LEAST_SHARE * len(operators.direct)
    ]
    loops = [
        (launched, repeat, one)
        for launched, repeat in repeated
        for one in filter(None, (sure, *running(evidence.code)))
        if _may_be(operators, repeat, one.loop)
    ]
    if not loops:
        return
    launched, repeat, found = max(loops, key=lambda one: len(one[0]))
    ways = Ways(evidence)
    first = operators.launched_from(int(repeat.one[0]), int(repeat.one[-1]))
    ways.drop(np.setdiff1d(launched, first))
    callers = operators.direct[first]
    scanned = first[operators.named(*_CARRIES)[callers]][:1]
    for event in first.tolist():
        caller = operators.operands(int(operators.direct[event]))
        size_bytes = sum(tensor_sizes(caller) or [0]) * repeat.turns
        span = chip.pass_over(float(size_bytes))
        if event in scanned:
            span = Span(*map(max, span, steps_of(repeat.turns, found.function)))
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
    took_ns = int(table.end_ns[ended] - table.start_ns[repeat.one[0]])
    names = " and ".join(found.names)
    yield Proposal(
        name="scan",
        title=(
            f"Compute {names} for all rows with torch.{found.function}, then the rest "
            "at once."
        ),
        evidence=(
            f"A loop carries {names} through {repeat.turns:,} rows, each with "
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
