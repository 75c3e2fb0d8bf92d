"""Products of matrices that would take other times, as a proposal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence, Product
from warpbook_profiler.advice.operators import sizes
from warpbook_profiler.advice.product_code import ProductCode, product_code
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE

#: products below this share of the bare run are left alone
_LEAST_SHARE = 0.03


def faster(
    evidence: Evidence,
    candidates: Sequence[Product],
    span_of: Callable[[Product], Span | None],
    *,
    name: str,
    title: str,
    what: str,
    edit: Callable[[ProductCode], str],
    casts: Span | None = None,
    is_shown_without_gain: bool = False,
    no_gain: str = "",
) -> Iterator[Proposal]:
    """Propose that these products take other times; `casts` is the host's, for each."""
    time_ns = sum(evidence.time_ns(one.events) for one in candidates)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    ways = Ways(evidence)
    for one in candidates:
        span = span_of(one)
        if span is None:
            continue
        ways.resize(one.events, span.at_most(evidence.time_ns(one.events)))
        if casts is not None:
            ways.add_host(evidence.calls.launch[one.events], casts)
    longest = max(candidates, key=lambda one: one.by.time_ns)
    line = _line(evidence, longest)
    code = product_code(evidence.code, line)
    yield Proposal(
        name=name,
        title=title,
        evidence=(
            f"{what[0].upper()}{what[1:]}, the longest {longest.by.name} of "
            f"{sizes(longest.by.operands.dims)}: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        operator=longest.by.name,
        line=line if code is None else code.line,
        code="" if code is None else edit(code),
        is_shown_without_gain=is_shown_without_gain,
        no_gain=no_gain,
    )


def _line(evidence: Evidence, product: Product) -> int | None:
    operators = evidence.operators
    called_by = int(operators.direct[product.events[0]])
    if called_by == NONE:
        return None
    return evidence.line_at(int(operators.table.start_ns[called_by]))
