"""Products in 8 bits; a trace tells no gain of them, and results differ."""

from __future__ import annotations

import re

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.checklist.products import (
    EIGHT_BITS,
    HALVES,
    MOST,
    UNTRIED,
    times_by_dtype,
    too_few_products,
)
from warpbook_profiler.techniques.gpu.padding import PAD
from warpbook_profiler.techniques.technique import Technique

_TOPICS = ("fp8", "int8")
#: products that have operators in 8 bits
_OF_MATRICES = re.compile(r"aten::(addmm|b?mm|baddbmm|linear|matmul)$")


def _judge(facts: Facts) -> Judgement:
    few = too_few_products(facts)
    if few is not None:
        return few
    times_ns = times_by_dtype(facts)
    small_ns = sum(times_ns[dtype] for dtype in EIGHT_BITS)
    work = {row.bound: row.time_ns for row in facts.metrics.kernel_work}
    by_name_ns = work.get("tensor cores in 8 bits", 0)
    if small_ns or by_name_ns:
        share = max(small_ns, by_name_ns) / max(facts.metrics.kernel_time_ns, 1)
        return Judgement(
            "yes", f"{percent(share)} of the kernels' time is in 8-bit products."
        )
    of_matrices = sum(
        point.share_ratio
        for point in facts.products
        if point.dtype in HALVES and _OF_MATRICES.match(point.name)
    )
    findings = [one for one in facts.profile.findings if one.topic in _TOPICS]
    if of_matrices < MOST:
        return Judgement(
            "not applicable",
            f"Matrix products in half precision are {percent(of_matrices)} of the "
            "kernels' time, and only those have 8-bit operators.",
        )
    if not findings or facts.changes(PAD):
        return Judgement(
            "not applicable",
            "The tensor cores are not yet what limits the products.",
        )
    return Judgement(
        "no",
        findings[0].evidence,
        f"Multiply in FP8 or INT8, and compare the results. {UNTRIED}",
    )


LOW_PRECISION = Question(
    name="low-precision",
    text="Do products run in 8 bits (FP8, INT8)?",
    judge=_judge,
    no_where=(
        "in inference, the GPU is limited by matrix products in half precision that "
        "could run in 8 bits"
    ),
    lab="fp8-linear",
    part="inference",
)


TECHNIQUE = Technique(questions=(LOW_PRECISION,))
