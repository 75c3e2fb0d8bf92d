"""Products of sizes that tensor cores take only in part."""

from __future__ import annotations

import math
from collections.abc import Iterator

from warpbook_monitors.units import counted
from warpbook_profiler.advice.code.product_code import ProductCode
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.faster_products import (
    TILE,
    faster,
    multiplied,
    odd_sizes,
)
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question
from warpbook_profiler.checklist.products import (
    HALVES,
    how_to_record,
    too_few_products,
)
from warpbook_profiler.facts.roofline import Called
from warpbook_profiler.model.pictures import RooflinePoint
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: of the ceiling, below which odd sizes are what is wrong
_POOR_SHARE = 0.4
PAD = "pad"


def padding(evidence: Evidence) -> Iterator[Proposal]:
    """Propose sizes that tensor cores take."""
    chip, odd = evidence.chip, []
    if chip is None:
        return
    for one in evidence.products:
        peak = chip.peak_flops(one.need.dtype or "")
        if one.by.operands.dtypes[0] not in HALVES or peak is None:
            continue
        is_poor = one.flops / peak * 1e9 < _POOR_SHARE * one.by.time_ns
        if is_poor and odd_sizes(one.by):
            odd.append(one)
    if not odd:
        return
    longest = max(odd, key=lambda one: one.by.time_ns)
    wrong = sorted(odd_sizes(longest.by))
    named = " and ".join(str(size) for size in wrong[:3])
    padded = " and ".join(str(_up(size)) for size in wrong[:3])
    yield from faster(
        evidence,
        odd,
        lambda one: multiplied(
            chip, one, one.need.dtype or "", times_flops=_growth(one.by)
        ),
        name=PAD,
        title=f"Make sizes multiples of {TILE}: pad {named} to {padded}.",
        what=f"products have sizes that are not multiples of {TILE}",
        edit=lambda code: _padded(code, longest.by),
    )


def _padded(code: ProductCode, by: Called) -> str:
    """Write the cell with padded matrices; a vector has one axis."""
    dims = by.operands.dims[:2]
    # a vector comes to these products with an axis of one
    has_vector = any(1 in sizes[-2:] for sizes in dims)
    is_of_matrices = by.name in ("aten::mm", "aten::bmm") and not has_vector
    return code.padded(TILE) if is_of_matrices else ""


def _up(size: int) -> int:
    return -(-size // TILE) * TILE


def _growth(by: Called) -> float:
    return math.prod(_up(size) / size for size in odd_sizes(by)) or 1.0


def _judge(facts: Facts) -> Judgement:
    few = too_few_products(facts)
    if few is not None:
        return few
    advised = facts.advised(ALIGNMENT)
    if advised is not None:
        return advised
    if not facts.has_shapes:
        return Judgement(
            "unknown", "The sizes of the operands are not known.", how_to_record(facts)
        )
    halves = [point for point in facts.products if point.dtype in HALVES]
    if not halves:
        return Judgement(
            "not applicable",
            f"No product is in half precision; only there does a multiple of {TILE} "
            "matter to tensor cores.",
        )
    odd = [point for point in halves if _odd_sizes_of(point)]
    checked = f"{counted(len(halves), 'kind')} of product in half precision"
    if not odd:
        return Judgement("yes", f"{checked}: all sizes are multiples of {TILE}.")
    longest = odd[0]
    return facts.without_gain(
        f"Of {checked}, {len(odd):,} have sizes that are not multiples of {TILE}; the "
        f"longest is {longest.name} of {longest.operands}."
    )


def _odd_sizes_of(point: RooflinePoint) -> set[int]:
    """Give the sizes that a tensor core's operands should have as multiples of eight.

    Of a matrix both sizes count; of a convolution its channels do.
    """
    operands = [
        [int(size) for size in operand.split("×") if size.isdigit()]
        for operand in point.operands.split(", ")
    ]
    if "conv" in point.name:
        # N×C×H×W of the input, K×C×R×S of the weight
        sizes = {dims[1] for dims in operands[:1] if len(dims) > 1}
        sizes |= {dims[0] for dims in operands[1:2] if dims}
    else:
        sizes = {size for dims in operands if len(dims) > 1 for size in dims[-2:]}
    return {size for size in sizes if size % TILE and size > TILE}


ALIGNMENT = Question(
    name="alignment",
    text="Are sizes multiples of eight?",
    judge=_judge,
    no_where=(
        "products in half precision have sizes that are not multiples of eight, and "
        "are slow"
    ),
    lab="tensor-cores",
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=(PAD,),
            what="products in half precision whose sizes are not multiples of 8",
            time="predicted",
            answers=ALIGNMENT,
        ),
    ),
    rule=padding,
    questions=(ALIGNMENT,),
    untried="Only you know which tensors can have other sizes.",
)
