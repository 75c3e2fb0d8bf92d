"""Products of matrices that would take other times, as a proposal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Chip, Convolved, Span
from warpbook_profiler.advice.code.product_code import ProductCode, product_code
from warpbook_profiler.advice.evidence import Evidence, Product
from warpbook_profiler.advice.operators import sizes
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE
from warpbook_profiler.facts.roofline import Called

#: products below this share of the bare run are left alone
_LEAST_SHARE = 0.03
#: elements that a tensor core's operands come in, of two bytes each
TILE = 8


def faster(
    evidence: Evidence,
    candidates: Sequence[Product],
    span_of: Callable[[Product], Span | None],
    *,
    name: str,
    title: str,
    what: str,
    edit: Callable[[ProductCode], str],
    reason: str = "",
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
        reason=reason,
        is_shown_without_gain=is_shown_without_gain,
        rounds=True,
        no_gain=no_gain,
    )


def _line(evidence: Evidence, product: Product) -> int | None:
    operators = evidence.operators
    called_by = int(operators.direct[product.events[0]])
    if called_by == NONE:
        return None
    return evidence.line_at(int(operators.table.start_ns[called_by]))


def multiplied(
    chip: Chip,
    one: Product,
    dtype: str,
    times_bytes: float = 1.0,
    times_flops: float | None = None,
) -> Span | None:
    """Give how long a product takes in a dtype; None where there is no unit for it.

    Args:
        chip: what computes it.
        one: as it is now.
        dtype: torch's name of it, or "tf32".
        times_bytes: as many times what it moves now.
        times_flops: of its sizes made multiples of `TILE`; None where they stay.
    """
    return chip.multiply(
        one.flops * (times_flops or 1.0) * _waves_ratio(chip, one),
        dtype,
        (one.need.size_bytes or 0) * times_bytes,
        _convolved(one),
        is_odd=times_flops is None and bool(odd_sizes(one.by)),
        calls=one.by.calls,
    )


def _waves_ratio(chip: Chip, one: Product) -> float:
    first = 1 if "add" in one.by.name else 0
    match one.by.operands.dims[first : first + 2]:
        case ((rows, _), (_, columns)) if "conv" not in one.by.name:
            return chip.waves_ratio(rows, columns)
    return 1.0


def _convolved(one: Product) -> Convolved | None:
    if "conv" not in one.by.name:
        return None
    is_backward = "backward" in one.by.name
    weight = one.by.operands.dims[1 + is_backward]
    channels = math.isqrt(math.prod(weight[:2]))
    return Convolved(len(weight) - 2, channels, is_backward)


def odd_sizes(by: Called) -> set[int]:
    """Give the sizes of matrices that are no multiples; batches don't matter.

    Of a convolution these are its channels: N×C×H×W of the input, K×C×R×S of weights.
    """
    matrices = [dims for dims in by.operands.dims if len(dims) >= 2]
    if "conv" in by.name:
        sizes = [size for dims in matrices[:1] for size in dims[1:2]]
        sizes += [size for dims in matrices[1:2] for size in dims[:1]]
    else:
        sizes = [size for dims in matrices for size in dims[-2:]]
    return {size for size in sizes if size % TILE and size > TILE}
