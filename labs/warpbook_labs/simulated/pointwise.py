"""Operations that go element by element, on NumPy's arrays.

What is read comes in the shape of the result. A number may take the place of an
operand: `numbers` are pairs of number and place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Sequence[Array]
Numbers = tuple[float, ...]
#: computes from the first into the second
Function = Callable[[Arrays, Arrays, Numbers], None]

_PIECE = 1 << 16
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2}


def promoted(left: np.dtype[Any], right: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which two meet, as in PyTorch: a float stays as narrow as it is."""
    ranks = _RANK[left.kind], _RANK[right.kind]
    if ranks[0] == ranks[1]:
        return np.promote_types(left, right)
    return left if ranks[0] > ranks[1] else right


def _operands(reads: Arrays, numbers: Numbers, count: int) -> list[Any]:
    """Arrays and numbers at their places."""
    operands: list[Any] = list(reads)
    for number, place in zip(numbers[::2], numbers[1::2], strict=True):
        operands.insert(int(place), number)
    if len(operands) != count:
        raise ValueError(f"{len(operands)} operands, where {count} belong")
    return operands


def _common(operands: Sequence[Any], write: np.dtype[Any] | None) -> np.dtype[Any]:
    """The type to compute in; half precision is computed in single, and rounded."""
    types = [operand.dtype for operand in operands if isinstance(operand, np.ndarray)]
    common = types[0] if types else np.dtype(np.float32)
    for other in types[1:]:
        common = promoted(common, other)
    if write is not None and _RANK[write.kind] > _RANK[common.kind]:
        common = write
    numbers = [operand for operand in operands if not isinstance(operand, np.ndarray)]
    if common.kind != "f" and not all(float(n).is_integer() for n in numbers):
        common = np.dtype(np.float32)
    elif common.kind == "b" and any(n not in (0, 1) for n in numbers):
        common = np.dtype(np.int64)
    return np.dtype(np.float32) if common == np.float16 else common


def same_shapes(reads: Arrays, write: Array) -> None:
    """Refuse what has not the shape of the result."""
    if any(array.shape != write.shape for array in reads):
        raise ValueError("shapes differ")


def _elementwise(
    function: Callable[..., Array],
    count: int,
    *,
    conditions: int = 0,
    compares: bool = False,
) -> Function:
    """An operation of so many operands, of which the first may be conditions."""

    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        (write,) = writes
        same_shapes(reads, write)
        operands = _operands(reads, numbers, count)
        rest = operands[conditions:]
        common = _common(rest, None if compares else write.dtype)
        # a number is first rounded to the type of the tensor that it meets
        narrow = [o.dtype for o in rest if isinstance(o, np.ndarray)]
        half = compares and bool(narrow) and set(narrow) == {np.dtype(np.float16)}
        with np.errstate(all="ignore"):
            cast = [
                operand.astype(common, copy=False)
                if isinstance(operand, np.ndarray)
                else np.asarray(np.float16(operand) if half else operand).astype(common)
                for operand in rest
            ]
            write[...] = function(*operands[:conditions], *cast)

    return compute


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype.kind == "f":
        return np.power(base, exponent)
    # of whole numbers: 1 and -1 have powers below 0 that are whole
    whole = np.power(base, np.abs(exponent))
    return np.where((exponent < 0) & (np.abs(base) != 1), 0, whole)


def _erf(x: Array) -> Array:
    # numbers of Python take far more memory than NumPy's: some at a time
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for begin in range(0, flat.size, _PIECE):
        piece = flat[begin : begin + _PIECE].tolist()
        result[begin : begin + _PIECE] = np.fromiter(map(math.erf, piece), np.float64)
    return result.reshape(x.shape)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_UNARY: dict[str, Callable[..., Array]] = {
    "abs": np.abs,
    "bitwise_not": np.invert,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": _erf,
    "exp": np.exp,
    "floor": np.floor,
    "gelu": lambda x: x * 0.5 * (1 + _erf(x * x.dtype.type(math.sqrt(0.5)))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "log": np.log,
    "log2": np.log2,
    "neg": np.negative,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _sigmoid,
    # of NaN, PyTorch says 0
    "sign": lambda x: np.nan_to_num(np.sign(x), nan=0.0),
    "silu": lambda x: x * _sigmoid(x),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}
_TESTS: dict[str, Callable[..., Array]] = {
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "logical_not": np.logical_not,
}
_BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "bitwise_and": np.bitwise_and,
    "bitwise_left_shift": np.left_shift,
    "bitwise_or": np.bitwise_or,
    "bitwise_right_shift": np.right_shift,
    "bitwise_xor": np.bitwise_xor,
    "clamp_max": np.minimum,
    "clamp_min": np.maximum,
    "div": np.divide,
    "floor_divide": np.floor_divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mul": np.multiply,
    "pow": _power,
    "remainder": np.remainder,
    "sub": np.subtract,
    "trunc_divide": lambda a, b: np.trunc(np.divide(a, b)),
}
_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "lt": np.less,
    "ne": np.not_equal,
}


def _finite(x: Array, nan: Array, positive: Array, negative: Array) -> Array:
    x = np.where(np.isnan(x), nan, x)
    return np.where(np.isinf(x), np.where(x > 0, positive, negative), x)


_TERNARY: dict[str, Callable[..., Array]] = {
    "add_scaled": lambda a, b, scale: a + b * scale,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "lerp": lambda a, b, weight: a + weight * (b - a),
}
_QUATERNARY: dict[str, Callable[..., Array]] = {
    "addcdiv": lambda a, b, c, value: a + value * (b / c),
    "addcmul": lambda a, b, c, value: a + value * b * c,
    "nan_to_num": _finite,
}

FUNCTIONS: dict[str, Function] = {
    "where": _elementwise(np.where, 3, conditions=1),
    **{name: _elementwise(run, 1) for name, run in _UNARY.items()},
    **{name: _elementwise(run, 1, compares=True) for name, run in _TESTS.items()},
    **{name: _elementwise(run, 2) for name, run in _BINARY.items()},
    **{name: _elementwise(run, 2, compares=True) for name, run in _COMPARISONS.items()},
    **{name: _elementwise(run, 3) for name, run in _TERNARY.items()},
    **{name: _elementwise(run, 4) for name, run in _QUATERNARY.items()},
}
