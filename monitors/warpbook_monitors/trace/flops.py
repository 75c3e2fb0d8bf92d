"""Arithmetic and least traffic of an operator, modelled from what it was called with.

Counted are multiplications and additions, each as one, of the operators that carry
nearly all of a network's arithmetic; the formulas are those of
`torch.utils.flop_counter`. Bytes are the least that must move: each operand and the
result once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from warpbook_monitors.trace.columns import Operands

#: bytes of an element, by the names that torch writes into traces
_ITEM_BYTES = {
    "double": 8,
    "float": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
    "int": 4,
    "long": 8,
    "long int": 8,
}
Dims = tuple[int, ...]


class Work(NamedTuple):
    """What one call of an operator has to do."""

    flops: int
    #: at least; None where an operand's type is not known
    size_bytes: int | None
    #: dtype of the first operand, as torch writes it
    dtype: str


def model(name: str, operands: Operands) -> Work | None:
    """Model one call; None for an operator that is not modelled or lacks shapes."""
    formula = _FORMULAS.get(name)
    if formula is None:
        return None
    try:
        flops, out = formula(operands)
    except (IndexError, ValueError):
        return None
    dtype = next((each for each in operands.dtypes if each in _ITEM_BYTES), "")
    return Work(flops, _bytes(operands, out, dtype), dtype)


def least_bytes(operands: Operands) -> int | None:
    """Give what an unmodelled operator must move: its operands and one result.

    The result is taken to be as large as the largest operand, which holds for what
    works on each element; None where a type is not known.
    """
    sizes = []
    for dims, kind in zip(operands.dims, operands.dtypes, strict=False):
        if dims:
            if kind not in _ITEM_BYTES:
                return None
            sizes.append(math.prod(dims) * _ITEM_BYTES[kind])
    return sum(sizes) + max(sizes) if sizes else None


def _bytes(operands: Operands, out: Dims, dtype: str) -> int | None:
    total = math.prod(out) * _ITEM_BYTES.get(dtype, 0)
    for dims, kind in zip(operands.dims, operands.dtypes, strict=False):
        if not dims:
            continue
        if kind not in _ITEM_BYTES:
            return None
        total += math.prod(dims) * _ITEM_BYTES[kind]
    return total if dtype else None


Formula = Callable[[Operands], tuple[int, Dims]]


def _matmul(first: int) -> Formula:
    """A product of the operands at `first` and after it, maybe in batches."""

    def formula(called: Operands) -> tuple[int, Dims]:
        a, b = called.dims[first], called.dims[first + 1]
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2]:
            raise ValueError("not a matrix product")
        return 2 * math.prod(a) * b[-1], (*a[:-1], b[-1])

    return formula


def _attention(heads_at: int, times: float) -> Formula:
    """Scaled dot products: two matrix products forward, five backward.

    Args:
        heads_at: where the operands' dimensions have the heads, 1 or 2.
        times: of the forward pass.
    """

    def formula(called: Operands) -> tuple[int, Dims]:
        # backward is called with the gradient first
        query, key, value = called.dims[:3] if times == 1 else called.dims[1:4]
        if not len(query) == len(key) == len(value) == 4:
            raise ValueError("not the attention of a batch")
        rows_at = 3 - heads_at
        batch, heads, rows = query[0], query[heads_at], query[rows_at]
        columns = key[rows_at]
        products = batch * heads * rows * columns * (query[3] + value[3])
        # a causal mask leaves half of it undone where rows and columns are as many
        return round(2 * products * times), query

    return formula


def _convolution(called: Operands) -> tuple[int, Dims]:
    """cuDNN's convolution: padding, stride, dilation and groups are scalars."""
    data, weight = called.dims[:2]
    lists = [_ints(text) for text in called.scalars if text.startswith("[")]
    padding, stride, dilation = lists[:3]
    space = tuple(
        (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
        for size, pad, gap, kernel, step in zip(
            data[2:], padding, dilation, weight[2:], stride, strict=True
        )
    )
    out = (data[0], weight[0], *space)
    # the weight's second dimension is already divided by the groups
    return 2 * math.prod(out) * math.prod(weight[1:]), out


def _ints(text: str) -> Dims:
    return tuple(int(each) for each in text.strip("[]").split(",") if each.strip())


_FORMULAS: dict[str, Formula] = {
    "aten::mm": _matmul(0),
    "aten::addmm": _matmul(1),
    "aten::bmm": _matmul(0),
    "aten::baddbmm": _matmul(1),
    "aten::_int_mm": _matmul(0),
    "aten::_scaled_mm": _matmul(0),
    "aten::cudnn_convolution": _convolution,
    "aten::_flash_attention_forward": _attention(2, 1),
    "aten::_efficient_attention_forward": _attention(2, 1),
    "aten::_scaled_dot_product_flash_attention": _attention(1, 1),
    "aten::_scaled_dot_product_efficient_attention": _attention(1, 1),
    "aten::_scaled_dot_product_cudnn_attention": _attention(1, 1),
    "aten::_flash_attention_backward": _attention(2, 2.5),
    "aten::_efficient_attention_backward": _attention(2, 2.5),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(1, 2.5),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention(1, 2.5),
}
