"""Products in a dtype that the chip multiplies slowly, or of odd sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.cell_code import written
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import sizes
from warpbook_profiler.advice.product_code import ProductCode, product_code
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Category, Int64s
from warpbook_profiler.facts.roofline import Called, Need, called

#: products below this share of the bare run are left alone
_LEAST_SHARE = 0.03
#: of the ceiling, below which odd sizes are what is wrong
_POOR_SHARE = 0.4
_HALVES = ("c10::Half", "c10::BFloat16")
#: elements that a tensor core's operands come in, of two bytes each
_TILE = 8
_AUTOCAST = 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    ...'
_PAD = (
    f"extra = -x.shape[-1] % {_TILE}\n"
    "x = torch.nn.functional.pad(x, (0, extra))  # and the weight, once"
)
_AS_FAST = (
    "This GPU multiplies float64 as fast as float32; bfloat16, and float32 as TF32, "
    "are faster."
)


class _Product(NamedTuple):
    """Calls of one operator with the same operands that multiply."""

    by: Called
    need: Need
    flops: int
    #: positions among the events on the GPU
    events: Int64s


def products(evidence: Evidence) -> Iterator[Proposal]:
    """Propose faster dtypes, and sizes that tensor cores take."""
    chip = evidence.chip
    if chip is None:
        return
    candidates = list(_products(evidence))
    single = [one for one in candidates if one.need.dtype == "float"]
    yield from _in_tf32(evidence, chip, single)
    as_float = [one for one in candidates if one.need.dtype in ("float", "tf32")]
    yield from _in_bf16(evidence, chip, as_float)
    yield from _in_single(
        evidence, chip, [o for o in candidates if o.need.dtype == "double"]
    )
    yield from _padded(evidence, chip, candidates)


def _products(evidence: Evidence) -> Iterator[_Product]:
    kernels = evidence.events.only(Category.KERNEL)
    at = np.flatnonzero(evidence.is_kernel)
    groups, place = called(evidence.events, kernels)
    for number, by in enumerate(groups):
        need = by.need
        if need is not None and need.flops:
            yield _Product(by, need, need.flops, at[np.flatnonzero(place == number)])


def _in_tf32(
    evidence: Evidence, chip: Chip, candidates: list[_Product]
) -> Iterator[Proposal]:
    if chip.has("tf32"):
        yield from _faster(
            evidence,
            candidates,
            lambda one: chip.multiply(
                one.flops, "tf32", one.need.size_bytes or 0, "conv" in one.by.name
            ),
            name="tf32",
            title="Let float32 products use the tensor cores as TF32.",
            what="float32 products run on the FP32 cores",
            sketch=lambda code: _allow_tf32(candidates, code),
        )


def _in_bf16(
    evidence: Evidence, chip: Chip, candidates: list[_Product]
) -> Iterator[Proposal]:
    if not chip.has("c10::BFloat16"):
        return

    def span(one: _Product) -> Span | None:
        moved = one.need.size_bytes or 0
        if "attention" in one.by.name:
            # in half precision another backend takes it
            return chip.attend(one.flops, "c10::BFloat16")
        product = chip.multiply(one.flops, "c10::BFloat16", moved / 2)
        if product is None:
            return None
        # autocast reads the operands once more, and writes them in half the size
        calls = max(one.by.calls, 1)
        casts = chip.pass_over(moved * 0.75 / calls).times(calls)
        # results of one product are mostly the next one's operands, in bfloat16 already
        return product.plus(0.0, casts.low_ns / 2, casts.high_ns)

    yield from _faster(
        evidence,
        candidates,
        span,
        name="bf16",
        title="Multiply in bfloat16: autocast, or model and data in bfloat16.",
        what="products are float32",
        sketch=lambda code: ("" if code is None else code.in_bfloat16()) or _AUTOCAST,
    )


def _in_single(
    evidence: Evidence, chip: Chip, candidates: list[_Product]
) -> Iterator[Proposal]:
    single, double = (chip.peak_flops(name) or 0.0 for name in ("float", "double"))
    is_as_fast = single < 1.1 * double
    yield from _faster(
        evidence,
        candidates,
        lambda one: chip.multiply(one.flops, "float", (one.need.size_bytes or 0) / 2),
        name="float32",
        title="Use float32 unless the result needs float64.",
        what="products are float64",
        sketch=lambda code: (
            f"{('' if code is None else code.in_float32()) or 'x = x.float()'}"
            "  # NumPy's arrays are float64 unless told otherwise"
        ),
        is_shown_without_gain=True,
        no_gain=_AS_FAST if is_as_fast else "",
    )


def _padded(
    evidence: Evidence, chip: Chip, candidates: list[_Product]
) -> Iterator[Proposal]:
    odd = []
    for one in candidates:
        peak = chip.peak_flops(one.need.dtype or "")
        if one.by.operands.dtypes[0] not in _HALVES or peak is None:
            continue
        is_poor = one.flops / peak * 1e9 < _POOR_SHARE * one.by.time_ns
        if is_poor and _odd_sizes(one.by):
            odd.append(one)
    if not odd:
        return
    longest = max(odd, key=lambda one: one.by.time_ns)
    wrong = sorted(_odd_sizes(longest.by))
    is_of_matrices = _is_of_matrices(longest.by)
    named = " and ".join(str(size) for size in wrong[:3])
    padded = " and ".join(str(_up(size)) for size in wrong[:3])
    yield from _faster(
        evidence,
        odd,
        lambda one: chip.multiply(
            one.flops * _growth(one.by), one.need.dtype or "", one.need.size_bytes or 0
        ),
        name="pad",
        title=f"Make sizes multiples of {_TILE}: pad {named} to {padded}.",
        what=f"products have sizes that are no multiples of {_TILE}",
        sketch=lambda code: (
            ("" if code is None or not is_of_matrices else code.padded(_TILE)) or _PAD
        ),
    )


def _faster(
    evidence: Evidence,
    candidates: list[_Product],
    span_of: Callable[[_Product], Span | None],
    *,
    name: str,
    title: str,
    what: str,
    sketch: Callable[[ProductCode | None], str],
    is_shown_without_gain: bool = False,
    no_gain: str = "",
) -> Iterator[Proposal]:
    """Propose that these products take other times."""
    time_ns = sum(evidence.time_ns(one.events) for one in candidates)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    ways = Ways(evidence)
    for one in candidates:
        span = span_of(one)
        if span is None:
            continue
        ways.resize(one.events, span.at_most(evidence.time_ns(one.events)))
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
        sketch=sketch(code),
        topic="tensor-cores" if name != "pad" else None,
        is_shown_without_gain=is_shown_without_gain,
        no_gain=no_gain,
    )


def _line(evidence: Evidence, product: _Product) -> int | None:
    operators = evidence.operators
    called_by = int(operators.direct[product.events[0]])
    if called_by == NONE:
        return None
    return evidence.line_at(int(operators.table.start_ns[called_by]))


def _is_of_matrices(by: Called) -> bool:
    """Tell whether both operands have two axes or more as the cell has them."""
    dims = by.operands.dims[:2]
    # a vector comes to these products with an axis of one
    has_vector = any(1 in sizes[-2:] for sizes in dims)
    return by.name in ("aten::mm", "aten::bmm") and not has_vector


def _allow_tf32(candidates: list[_Product], code: ProductCode | None) -> str:
    """Write what lets products use TF32; convolutions have a setting of their own."""
    convolves = {"conv" in one.by.name for one in candidates}
    lines = []
    if False in convolves:
        lines.append('torch.set_float32_matmul_precision("high")')
    if True in convolves:
        lines.append("torch.backends.cudnn.allow_tf32 = True")
    if code is not None:
        lines[-1] += f"  # once, before {written(code.statements[0])}"
    return "\n".join(lines)


def _odd_sizes(by: Called) -> set[int]:
    """Give the sizes of matrices that are no multiples; batches don't matter.

    Of a convolution these are its channels: N×C×H×W of the input, K×C×R×S of weights.
    """
    matrices = [dims for dims in by.operands.dims if len(dims) >= 2]
    if "conv" in by.name:
        sizes = [size for dims in matrices[:1] for size in dims[1:2]]
        sizes += [size for dims in matrices[1:2] for size in dims[:1]]
    else:
        sizes = [size for dims in matrices for size in dims[-2:]]
    return {size for size in sizes if size % _TILE and size > _TILE}


def _up(size: int) -> int:
    return -(-size // _TILE) * _TILE


def _growth(by: Called) -> float:
    return math.prod(_up(size) / size for size in _odd_sizes(by)) or 1.0
