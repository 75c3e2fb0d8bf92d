"""Arithmetic and least traffic of an operator, modelled from what it was called with.

Multiplications and additions count as one each, of the operators that carry nearly all
of a network's arithmetic, as `torch.utils.flop_counter` counts them; in two
things that differs, because no chip can do more than its peak: of a causal attention
only the pairs that are looked at count, and of a convolution in groups each group's
own. Bytes are the least that must move: each operand and each result once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.library_flops import library_formula
from warpbook_profiler.facts.solver_flops import SOLVERS
from warpbook_profiler.facts.traffic import (
    FP4,
    ITEM_BYTES,
    Counted,
    Formula,
    tensor_sizes,
)

#: torch's numbers of the dtypes that a product may be asked to give
_ASKED_BYTES = {"5": 2, "6": 4, "7": 8, "15": 2, "23": 1, "24": 1}
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
    formula = _FORMULAS.get(name) or library_formula(name)
    if formula is None:
        return None
    try:
        counted = formula(operands)
    except (ArithmeticError, LookupError, ValueError, StopIteration):
        return None
    dtype = counted.dtype or (operands.dtypes[0] if operands.dtypes else "")
    if dtype not in ITEM_BYTES:
        return None  # complex numbers need another count
    read_bytes = counted.read_bytes
    if read_bytes is None:
        sizes = tensor_sizes(operands)
        read_bytes = None if sizes is None else sum(sizes)
    written_bytes = counted.elements * (counted.item_bytes or ITEM_BYTES[dtype])
    size_bytes = None if read_bytes is None else read_bytes + written_bytes
    return Work(counted.flops, size_bytes, dtype)


def is_modelled(name: str) -> bool:
    """Tell whether an operator has a formula, which may want its scalars."""
    return name in _FORMULAS


def _matmul(first: int, item_bytes: int | None = None) -> Formula:
    """A product of the operands at `first` and after it, maybe in batches."""

    def formula(called: Operands) -> Counted:
        a, b = called.dims[first], called.dims[first + 1]
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2]:
            raise ValueError("not a matrix product")
        elements = math.prod(a[:-1]) * b[-1]
        if called.dims[first + 2 :] and called.dims[-1] == (*a[:-1], b[-1]):
            elements = 0  # it was told where to put the result: one more operand
        flops = 2 * math.prod(a) * b[-1] * (2 if called.dtypes[first] == FP4 else 1)
        return Counted(flops, elements, item_bytes)

    return formula


def _matvec(first: int) -> Formula:
    """A matrix by a vector."""

    def formula(called: Operands) -> Counted:
        rows, columns = called.dims[first]
        if called.dims[first + 1] != (columns,):
            raise ValueError("not a matrix and a vector")
        return Counted(2 * rows * columns, rows)

    return formula


def _scaled(dtype_at: int, product: Callable[[int | None], Formula]) -> Formula:
    """FP8 by FP8, which gives the dtype that is asked for, by torch's number of it."""

    def formula(called: Operands) -> Counted:
        kind = called.scalars[dtype_at] if len(called.scalars) > dtype_at else ""
        return product(_ASKED_BYTES[kind] if kind else None)(called)

    return formula


def _grouped(item_bytes: int | None = None) -> Formula:
    """Products of groups of rows: each by a matrix of its own, or one for each."""

    def formula(called: Operands) -> Counted:
        a, b = called.dims[:2]
        if len(a) == len(b) == 3:
            return _matmul(0, item_bytes)(called)
        if a[-1] != b[-2]:
            raise ValueError("not a matrix product")
        flops = 2 * a[-2] * a[-1] * b[-1]
        if len(a) == len(b) == 2:
            # the inner rows are in groups: as many matrices as there are ends of groups
            groups = next(dims[0] for dims in called.dims[2:] if len(dims) == 1)
            return Counted(flops, groups * a[0] * b[1], item_bytes)
        return Counted(flops, a[-2] * b[-1], item_bytes)

    return formula


class _Mask(NamedTuple):
    """Where an attention says that it is causal, and which texts say so."""

    at: int
    #: rows look at columns as many as their own number, from the first
    causal: str = "True"
    none: str = "False"


def _attention(heads_at: int, mask: _Mask, is_backward: bool = False) -> Formula:
    """Scaled dot products: two matrix products forward, five backward.

    Args:
        heads_at: where the operands' dimensions have the heads, 1 or 2.
        mask: among the scalars.
        is_backward: called with the gradient first.
    """

    def formula(called: Operands) -> Counted:
        query, key, value = called.dims[is_backward : is_backward + 3]
        if not len(query) == len(key) == len(value) == 4:
            raise ValueError("not the attention of a batch")
        rows, columns = query[3 - heads_at], key[3 - heads_at]
        said = called.scalars[mask.at]
        if said not in (mask.causal, mask.none):
            raise ValueError("a mask of another kind")
        pairs = _looked_at(rows, columns) if said == mask.causal else rows * columns
        pairs *= query[0] * query[heads_at]
        if is_backward:
            # the scores again, and the gradients of query and key; value's two
            return Counted(
                2 * pairs * (3 * query[3] + 2 * value[3]),
                sum(map(math.prod, (query, key, value))),
            )
        return Counted(
            2 * pairs * (query[3] + value[3]), math.prod(query[:3]) * value[3]
        )

    return formula


def _looked_at(rows: int, columns: int) -> int:
    """Count the pairs below a causal mask that begins in the first corner."""
    whole = max(rows - columns, 0)
    return whole * columns + (rows - whole) * (rows - whole + 1) // 2


class _Arguments(NamedTuple):
    """Where a convolution has its arguments."""

    stride: int
    padding: int
    #: None is a dilation of one
    dilation: int | None = None
    #: None is one that is never transposed
    output_padding: int | None = None
    #: None is one group
    groups: int | None = None
    #: says whether it is transposed; None is one that always is
    transposed: int | None = None


def _convolution(at: _Arguments) -> Formula:
    def formula(called: Operands) -> Counted:
        data, weight = called.dims[:2]
        stride, padding = _ints(called, at.stride), _ints(called, at.padding)
        dilation = (1,) * len(stride)
        if at.dilation is not None:
            dilation = _ints(called, at.dilation)
        axes = zip(data[2:], weight[2:], stride, padding, dilation, strict=True)
        # the weight's second dimension is already divided by the groups
        per_element = 2 * data[0] * math.prod(weight)
        if at.output_padding is None or (
            at.transposed is not None and called.scalars[at.transposed] == "False"
        ):
            space = math.prod(
                (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
                for size, kernel, step, pad, gap in axes
            )
            return Counted(per_element * space, data[0] * weight[0] * space)
        # here each element of the data meets its part of the weight
        extra = _ints(called, at.output_padding)
        space = math.prod(
            (size - 1) * step - 2 * pad + gap * (kernel - 1) + more + 1
            for (size, kernel, step, pad, gap), more in zip(axes, extra, strict=True)
        )
        groups = 1 if at.groups is None else int(called.scalars[at.groups])
        return Counted(
            per_element * math.prod(data[2:]), data[0] * weight[1] * groups * space
        )

    return formula


def _convolution_backward(called: Operands) -> Counted:
    """Each gradient that is wanted is as much work as the convolution."""
    gradient, data, weight = called.dims[:3]
    small = data if called.scalars[7] == "True" else gradient
    of_data, of_weight, _ = (
        said.strip() == "True" for said in called.scalars[10].strip("[]").split(",")
    )
    per_element = 2 * data[0] * math.prod(small[2:]) * math.prod(weight)
    return Counted(
        per_element * (of_data + of_weight),
        math.prod(data) * of_data + math.prod(weight) * of_weight,
    )


def _ints(called: Operands, at: int) -> Dims:
    text = called.scalars[at].strip("[]()")
    return tuple(int(number) for number in text.split(",") if number.strip())


_ANY_CONVOLUTION = _convolution(_Arguments(3, 4, 5, 7, 8, 6))
_DEPTHWISE = _convolution(_Arguments(4, 5, 6))
_MEM_EFFICIENT = ("1", "0")
_FORMULAS: dict[str, Formula] = {
    **SOLVERS,
    "aten::mm": _matmul(0),
    "aten::bmm": _matmul(0),
    "aten::addmm": _matmul(1),
    "aten::addmm_": _matmul(1),
    "aten::_addmm_activation": _matmul(1),
    "aten::baddbmm": _matmul(1),
    "aten::baddbmm_": _matmul(1),
    "aten::mv": _matvec(0),
    "aten::addmv": _matvec(1),
    "aten::addmv_": _matvec(1),
    "aten::_int_mm": _matmul(0, 4),
    "aten::_scaled_mm": _scaled(6, partial(_matmul, 0)),
    "aten::_scaled_mm_v2": _scaled(9, partial(_matmul, 0)),
    "aten::_grouped_mm": _grouped(),
    "aten::_scaled_grouped_mm": _scaled(7, _grouped),
    "aten::convolution": _ANY_CONVOLUTION,
    "aten::_convolution": _ANY_CONVOLUTION,
    "aten::cudnn_convolution": _convolution(_Arguments(3, 2, 4)),
    "aten::cudnn_convolution_relu": _convolution(_Arguments(3, 4, 5)),
    "aten::cudnn_convolution_add_relu": _convolution(_Arguments(5, 6, 7)),
    "aten::cudnn_convolution_transpose": _convolution(_Arguments(4, 2, 5, 3, 6)),
    "aten::slow_conv_transpose2d": _convolution(_Arguments(4, 5, 7, 6)),
    "aten::_slow_conv2d_forward": _convolution(_Arguments(4, 5)),
    "aten::_conv_depthwise2d": _DEPTHWISE,
    "aten::conv_depthwise3d": _DEPTHWISE,
    "aten::convolution_backward": _convolution_backward,
    "aten::_flash_attention_forward": _attention(2, _Mask(8)),
    "flash_attn::_flash_attn_forward": _attention(2, _Mask(5)),
    "flash_attn::_flash_attn_backward": _attention(2, _Mask(11), True),
    "aiter::_flash_attn_forward": _attention(2, _Mask(5)),
    "aten::_efficient_attention_forward": _attention(2, _Mask(9, *_MEM_EFFICIENT)),
    "aten::_cudnn_attention_forward": _attention(1, _Mask(10)),
    "aten::_scaled_dot_product_flash_attention": _attention(1, _Mask(4)),
    "aten::_scaled_dot_product_efficient_attention": _attention(1, _Mask(6)),
    "aten::_scaled_dot_product_cudnn_attention": _attention(1, _Mask(6)),
    "aten::_flash_attention_backward": _attention(2, _Mask(11), True),
    "aten::_efficient_attention_backward": _attention(
        2, _Mask(14, *_MEM_EFFICIENT), True
    ),
    "aten::_cudnn_attention_backward": _attention(1, _Mask(14), True),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(
        1, _Mask(11), True
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention(
        1, _Mask(11), True
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention(
        1, _Mask(14), True
    ),
}
