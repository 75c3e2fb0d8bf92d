"""Which units multiply, in which dtype, and of which sizes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, at_line, counted, percent
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.model.pictures import RooflinePoint

#: of the kernels' time, below which products decide nothing
_LEAST_PRODUCTS = 0.05
#: of the products' time, from which they are said to be of a kind
_MOST = 0.5
_HALVES = ("c10::Half", "c10::BFloat16")
_8_BITS = ("signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2")
_HALF_NAMES = re.compile(r"bf16|bfloat16|half|(?<![a-z0-9])f?16f|f16f16", re.I)
_8_BIT_TOPICS = ("fp8", "int8")
#: products that have operators in 8 bits
_OF_MATRICES = re.compile(r"aten::(addmm|b?mm|baddbmm|linear|matmul)$")
#: elements of two bytes that a tensor core's operands come in
_TILE = 8
_UNTRIED = "What it gives is not known before it is tried."
_RECORD_SHAPES = (
    "Record with record_shapes=True, or profile the cell by %%gpuprof, which does."
)
_NOT_OF_TORCH = "Only operators of PyTorch tell what they are called with."
_NO_PRODUCTS = "Neither matrix products nor convolutions are among the longest kernels."


def tensor_cores(facts: Facts) -> Judgement:
    """Tell whether products run on the tensor cores."""
    few = _too_few_products(facts)
    if few is not None:
        return few
    of_products = min(facts.tensor_share / facts.product_share, 1.0)
    evidence = (
        f"{percent(of_products)} of the time of matrix products and convolutions is "
        f"on tensor cores; they are {percent(facts.product_share)} of the kernels' "
        "time."
    )
    if of_products >= _MOST:
        return Judgement("yes", evidence)
    advised = facts.by_change("tf32") or facts.by_change("bf16")
    return advised or facts.without_gain(evidence)


def mixed_precision(facts: Facts) -> Judgement:
    """Tell whether products take half the bytes: autocast, or half throughout."""
    few = _too_few_products(facts)
    if few is not None:
        return few
    times_ns = _times_by_dtype(facts)
    total_ns = sum(times_ns.values())
    if not total_ns:
        return _mixed_by_names(facts)
    half_ns = sum(times_ns[dtype] for dtype in (*_HALVES, *_8_BITS))
    shares = ", ".join(
        f"{DTYPE_LABELS.get(dtype, dtype)} {percent(time_ns / total_ns)}"
        for dtype, time_ns in sorted(times_ns.items(), key=lambda pair: -pair[1])
        if time_ns
    )
    evidence = f"Time of products and convolutions by dtype: {shares}."
    if half_ns >= _MOST * total_ns:
        line = facts.code.mention("autocast")
        by = f" autocast is in the code{at_line(line)}." if line is not None else ""
        return Judgement("yes", evidence + by)
    advised = facts.by_change("bf16")
    if advised is not None:
        return advised
    if times_ns["double"] >= _MOST * total_ns:
        return Judgement(
            "no",
            evidence,
            "Is double needed? In bfloat16, or in float32 as TF32, the tensor cores "
            f"take such products. {_UNTRIED}",
        )
    return facts.without_gain(evidence)


def alignment(facts: Facts) -> Judgement:
    """Tell whether the sizes of half-precision products are multiples of eight."""
    few = _too_few_products(facts)
    if few is not None:
        return few
    advised = facts.by_change("pad")
    if advised is not None:
        return advised
    if not facts.has_shapes:
        return Judgement(
            "unknown", "Sizes of operands are not known.", _how_to_record(facts)
        )
    halves = [point for point in facts.products if point.dtype in _HALVES]
    if not halves:
        return Judgement(
            "not applicable",
            "No product is in half precision, whose operands tensor cores take "
            f"{_TILE} at a time.",
        )
    odd = [point for point in halves if odd_sizes(point)]
    checked = f"{counted(len(halves), 'kind')} of product in half precision"
    if not odd:
        return Judgement("yes", f"{checked}: all sizes are multiples of {_TILE}.")
    longest = odd[0]
    return facts.without_gain(
        f"Of {checked}, {len(odd):,} have sizes that are no multiples of {_TILE}, the "
        f"longest {longest.name} of {longest.operands}."
    )


def low_precision(facts: Facts) -> Judgement:
    """Tell whether an inference multiplies in 8 bits."""
    few = _too_few_products(facts)
    if few is not None:
        return few
    times_ns = _times_by_dtype(facts)
    small_ns = sum(times_ns[dtype] for dtype in _8_BITS)
    work = {row.bound: row.time_ns for row in facts.metrics.kernel_work}
    by_name_ns = work.get("tensor cores in 8 bits", 0)
    if small_ns or by_name_ns:
        share = max(small_ns, by_name_ns) / max(facts.metrics.kernel_time_ns, 1)
        return Judgement(
            "yes", f"{percent(share)} of the kernels' time is in products of 8 bits."
        )
    of_matrices = sum(
        point.share_ratio
        for point in facts.products
        if point.dtype in _HALVES and _OF_MATRICES.match(point.name)
    )
    findings = [one for one in facts.profile.findings if one.topic in _8_BIT_TOPICS]
    if of_matrices < _MOST:
        return Judgement(
            "not applicable",
            f"Matrix products in half precision are {percent(of_matrices)} of the "
            "kernels' time, and only those have operators in 8 bits.",
        )
    if not findings or facts.changes("pad"):
        return Judgement(
            "not applicable",
            "The tensor cores are not what holds the products back yet.",
        )
    return Judgement(
        "no",
        findings[0].evidence,
        f"Multiply in FP8 or INT8, and compare the results. {_UNTRIED}",
    )


def odd_sizes(point: RooflinePoint) -> set[int]:
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
    return {size for size in sizes if size % _TILE and size > _TILE}


def _too_few_products(facts: Facts) -> Judgement | None:
    share = facts.product_share
    if share >= _LEAST_PRODUCTS:
        return None
    if facts.host_names and not facts.has_products:
        return Judgement("not applicable", "No operator multiplies or convolves.")
    unknown_share = facts.metrics.tensor_core_unknown_ns / max(
        facts.metrics.kernel_time_ns, 1
    )
    if unknown_share >= _MOST:
        return Judgement(
            "unknown",
            f"{percent(unknown_share)} of the kernels' time is in kernels whose names "
            "do not say what they compute.",
            "Look at these kernels with ncu, and give its table to warpbook analyze.",
        )
    if not share:
        return Judgement("not applicable", _NO_PRODUCTS)
    return Judgement(
        "not applicable",
        f"Products and convolutions are only {percent(share)} of the kernels' time.",
    )


def _times_by_dtype(facts: Facts) -> defaultdict[str, int]:
    times_ns: defaultdict[str, int] = defaultdict(int)
    for point in facts.products:
        times_ns[point.dtype or "not known"] += point.time_ns
    return times_ns


def _mixed_by_names(facts: Facts) -> Judgement:
    """Judge where operands were not recorded."""
    named = [row for row in facts.profile.kernels if _HALF_NAMES.search(row.name)]
    if named and facts.tensor_share >= _MOST * facts.product_share:
        line = facts.code.mention("autocast")
        by = f" autocast is in the code{at_line(line)}." if line is not None else ""
        return Judgement(
            "yes",
            f"{percent(facts.tensor_share)} of the kernels' time is on tensor cores, "
            f"and {_kernels(named)} half precision in their names.{by}",
        )
    return Judgement(
        "unknown", "The products' dtypes are not known.", _how_to_record(facts)
    )


def _how_to_record(facts: Facts) -> str:
    return _RECORD_SHAPES if facts.host_names else _NOT_OF_TORCH


def _kernels(rows: Sequence[object]) -> str:
    return "one kernel has" if len(rows) == 1 else f"{len(rows):,} kernels have"
