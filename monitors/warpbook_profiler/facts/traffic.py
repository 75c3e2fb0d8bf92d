"""What an operator must move at least: its operands, and what comes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from warpbook_profiler.events.columns import Operands

#: two numbers in a byte
FP4 = "c10::Float4_e2m1fn_x2"
#: bytes of an element, by the names that torch writes into traces
ITEM_BYTES = {
    "double": 8,
    "float": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::Float8_e8m0fnu": 1,
    FP4: 1,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
    "short": 2,
    "short int": 2,
    "int": 4,
    "long": 8,
    "long int": 8,
}
#: without "aten::" and, where they work in place, the underscore at the end
_WRITES = frozenset("copy fill zero normal uniform bernoulli exponential".split())
_REDUCES = frozenset(
    "sum mean prod amax amin max min argmax argmin any all norm linalg_vector_norm std "
    "var std_mean var_mean logsumexp".split()
)
_PASSES = frozenset(
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos "
    "tan tanh sigmoid erf floor ceil round trunc sign clamp clamp_min clamp_max add "
    "sub rsub mul div true_divide pow fmod remainder maximum minimum addcmul addcdiv "
    "lerp where masked_fill eq ne lt le gt ge logical_and logical_or logical_not "
    "bitwise_and bitwise_or bitwise_not isnan isfinite isinf isneginf isposinf "
    "asin acos atan atan2 sinh cosh asinh acosh atanh hypot rad2deg deg2rad erfc "
    "lgamma frac copysign nan_to_num logaddexp xlogy heaviside logical_xor "
    "bitwise_xor floor_divide relu leaky_relu elu gelu silu "
    "mish hardtanh hardswish hardsigmoid softplus threshold threshold_backward "
    "gelu_backward silu_backward tanh_backward sigmoid_backward leaky_relu_backward "
    "elu_backward native_dropout native_dropout_backward _softmax _log_softmax "
    "_softmax_backward_data _log_softmax_backward_data native_layer_norm "
    "native_layer_norm_backward _fused_rms_norm native_batch_norm "
    "cudnn_batch_norm cumsum cumprod flip roll tril triu".split()
)

#: how many arguments, scalars too, those have that may be told where to put the result
_ARGUMENTS = {
    name: count
    for count, names in {
        1: "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square "
        "sin cos tan tanh sigmoid erf floor ceil round trunc sign logical_not relu "
        "silu",
        2: "mul div true_divide pow fmod remainder maximum minimum clamp_min clamp_max "
        "eq ne lt le gt ge logical_and logical_or bitwise_and bitwise_or gelu "
        "leaky_relu tril triu",
        3: "add sub clamp where lerp cumsum cumprod _softmax _log_softmax hardtanh "
        "softplus",
        4: "addcmul addcdiv elu",
    }.items()
    for name in names.split()
}


class Counted(NamedTuple):
    """What a formula gives: arithmetic, and how large the results are together."""

    flops: int
    elements: int
    #: of an element of the result, where it is not the operands' dtype
    item_bytes: int | None = None
    #: where not all of the operands is read
    read_bytes: int | None = None
    #: of the unit that multiplies, where it is not the first operand's
    dtype: str | None = None


Formula = Callable[[Operands], Counted]


def only_passes(name: str) -> bool:
    """Tell whether an operator only passes over its operands."""
    return _base(name) in _WRITES | _REDUCES | _PASSES


def reduces(name: str) -> bool:
    """Tell whether an operator gives fewer numbers than it reads."""
    return _base(name) in _REDUCES


def _base(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")


def tensor_sizes(operands: Operands) -> list[int] | None:
    """Give the bytes of each tensor; None where a type is not known."""
    sizes = []
    for dims, kind in zip(operands.dims, operands.dtypes, strict=False):
        if dims:
            if kind not in ITEM_BYTES:
                return None
            sizes.append(math.prod(dims) * ITEM_BYTES[kind])
    return sizes


def least_bytes(name: str, operands: Operands) -> int | None:
    """Give what an operator that only passes over its operands must move.

    None for any other (a lookup reads a part of its table), and where a type is not
    known. A large operand that is a small one repeated is taken as it looks.
    """
    sizes = tensor_sizes(operands)
    if not sizes:
        return None
    name = _base(name)
    if name in _WRITES or name in _REDUCES:
        return sum(sizes)
    if name not in _PASSES:
        return None
    if len(operands.dims) > _ARGUMENTS.get(name, len(operands.dims)):
        if operands.dims[-1]:
            return sum(sizes)  # `out=`: the result is among them
    # it is as large as the largest operand
    return sum(sizes) + max(sizes)
