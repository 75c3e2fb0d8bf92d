"""What questions about products and convolutions have in common."""

from __future__ import annotations

from collections import defaultdict

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, percent
from warpbook_profiler.model.ceilings import IN_8_BITS

#: of the kernels' time, below which products decide nothing
_LEAST_PRODUCTS = 0.05
#: of the products' time, from which they are said to be of a kind
MOST = 0.5
HALVES = ("c10::Half", "c10::BFloat16")
EIGHT_BITS = IN_8_BITS
UNTRIED = "Its gain is known only after a trial."
_RECORD_SHAPES = (
    "Record with record_shapes=True, or profile the cell by %%gpuprof, which does."
)
_NOT_OF_TORCH = "Only PyTorch operators record their arguments."
_NO_PRODUCTS = "Neither matrix products nor convolutions are among the longest kernels."


def too_few_products(facts: Facts) -> Judgement | None:
    share = facts.product_share
    if share >= _LEAST_PRODUCTS:
        return None
    if facts.host_names and not facts.has_products:
        return Judgement(
            "not applicable", "No operator computes a product or convolution."
        )
    unknown_share = facts.metrics.tensor_core_unknown_ns / max(
        facts.metrics.kernel_time_ns, 1
    )
    if unknown_share >= MOST:
        return Judgement(
            "unknown",
            f"{percent(unknown_share)} of the kernels' time is in kernels whose names "
            "do not show what they compute.",
            "Profile these kernels with ncu, and pass its table to warpbook analyze.",
        )
    if not share:
        return Judgement("not applicable", _NO_PRODUCTS)
    return Judgement(
        "not applicable",
        f"Products and convolutions are only {percent(share)} of the kernels' time.",
    )


def times_by_dtype(facts: Facts) -> defaultdict[str, int]:
    times_ns: defaultdict[str, int] = defaultdict(int)
    for point in facts.products:
        times_ns[point.dtype or "not known"] += point.time_ns
    return times_ns


def how_to_record(facts: Facts) -> str:
    return _RECORD_SHAPES if facts.host_names else _NOT_OF_TORCH
