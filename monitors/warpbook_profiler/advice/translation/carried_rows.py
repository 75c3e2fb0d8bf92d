"""What a loop carries through rows and computes with in each: a scan gives it first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import Repeat, repeats
from warpbook_profiler.advice.rewriting.scans import running
from warpbook_profiler.advice.translation.carried_loop import carried_loop
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.facts.traffic import tensor_sizes

#: fewer rows are no loop worth a word
_LEAST_ROWS = 8
#: of all that is launched, what the loop launches at least
_LEAST_SHARE = 0.5
_REAL = frozenset(("float", "double"))
_CARRIES = (
    *("aten::mul", "aten::add", "aten::mul_", "aten::add_"),
    *("aten::maximum", "aten::minimum", "aten::logaddexp"),
)


def carried(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a scan, and all turns at once of what it gives."""
    sure, chip = carried_loop(evidence.code), evidence.chip
    found = sure or next(running(evidence.code), None)
    if found is None or chip is None:
        return
    operators = evidence.operators
    table = operators.table
    loops = {
        len(launched): (repeat, launched)
        for repeat in repeats(operators, _LEAST_ROWS)
        if operators.named(*_CARRIES)[repeat.one].any()
        for launched in [
            operators.launched_from(*(int(repeat.operators[at]) for at in (0, -1)))
        ]
    }
    if not loops or max(loops) < _LEAST_SHARE * len(operators.direct):
        return
    repeat, launched = loops[max(loops)]
    ways = Ways(evidence)
    first = operators.launched_from(int(repeat.one[0]), int(repeat.one[-1]))
    ways.drop(np.setdiff1d(launched, first))
    for event in first.tolist():
        caller = operators.operands(int(operators.direct[event]))
        size_bytes = sum(tensor_sizes(caller) or [0]) * repeat.turns
        ways.resize(np.array([event]), chip.pass_over(float(size_bytes)))
    begun, ended = int(repeat.one[-1]), int(repeat.operators[-1])
    start_ns, end_ns = table.end_ns[[begun]], table.end_ns[[ended]]
    ways.drop_host(repeat.thread, start_ns, end_ns)
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
        is_bound=True,
        reason="The trace does not show how long the host takes for all rows at once.",
        operator=operators.name(int(repeat.one[0])),
        line=found.line,
        code=sure.code
        if sure and operators.takes_rows and _is_real(operators, repeat)
        else "",
    )


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
