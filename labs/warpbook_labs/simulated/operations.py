"""What kernels of the simulated GPU compute: each by name, on NumPy's arrays.

The recorder runs them in the jail with numbers that do not count, the judge in the
parent with those that do, on views that a hostile program names: a function here uses
memory in proportion to its reads and writes, and raises what NumPy raises where they do
not fit (ValueError, IndexError, OverflowError, TypeError).

Where an operation goes element by element, what it reads comes in the shape of the
result. A number may take the place of an operand: `numbers` are pairs of number and
place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from warpbook_labs.simulated import convolution
from warpbook_labs.simulated.program import View

Array = NDArray[Any]
Arrays = Sequence[Array]
Numbers = tuple[float, ...]
Views = Sequence[View]
Function = Callable[[Arrays, Arrays, Numbers], None]

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2}


def _no_flops(reads: Views, writes: Views, numbers: Numbers) -> float:
    return 0.0


@dataclass(frozen=True)
class Operation:
    """One kind of kernel."""

    #: computes from the reads into the writes
    function: Function
    flops: Callable[[Views, Views, Numbers], float] = _no_flops
    #: what goes to and from memory; None: all that is read and written, once
    bytes: Callable[[Views, Views, Numbers], float] | None = None
    #: how long it takes, where that is no matter of bytes and operations
    ns: Callable[[Views, Views, Numbers], float | None] | None = None
    #: which unit's rate holds for its operations
    unit: Literal["simt", "tensor"] = "simt"


def promoted(left: np.dtype[Any], right: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which two meet, as in PyTorch: a float stays as narrow as it is."""
    ranks = _RANK[left.kind], _RANK[right.kind]
    if ranks[0] == ranks[1]:
        return np.promote_types(left, right)
    return left if ranks[0] > ranks[1] else right


def moved_bytes(views: Views) -> int:
    """Bytes of these views; what is broadcast counts once."""
    return sum(
        np.dtype(view.dtype).itemsize
        * math.prod(
            side
            for side, stride in zip(view.shape, view.strides, strict=True)
            if stride or not side
        )
        for view in views
    )


# -- element by element ----------------------------------------------------------------


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


def _same_shapes(reads: Arrays, write: Array) -> None:
    if any(array.shape != write.shape for array in reads):
        raise ValueError("shapes differ")


def _elementwise(
    function: Callable[..., Array],
    count: int,
    *,
    conditions: int = 0,
    compares: bool = False,
) -> Operation:
    """An operation of so many operands, of which the first may be conditions."""

    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        (write,) = writes
        _same_shapes(reads, write)
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

    return Operation(compute, flops=_one_each)


def _one_each(reads: Views, writes: Views, numbers: Numbers) -> float:
    return float(math.prod(writes[0].shape))


def _copy(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (read,), (write,) = reads, writes
    _same_shapes(reads, write)
    with np.errstate(all="ignore"):
        write[...] = read


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype.kind == "f":
        return np.power(base, exponent)
    # of whole numbers: 1 and -1 have powers below 0 that are whole
    whole = np.power(base, np.abs(exponent))
    return np.where((exponent < 0) & (np.abs(base) != 1), 0, whole)


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(x.dtype)


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
    "bitwise_or": np.bitwise_or,
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
_TERNARY: dict[str, Callable[..., Array]] = {
    "add_scaled": lambda a, b, scale: a + b * scale,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "lerp": lambda a, b, weight: a + weight * (b - a),
}


# -- memory that is filled -------------------------------------------------------------


def _fill(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (number,), (write,) = numbers, writes
    with np.errstate(all="ignore"):
        write[...] = number if write.dtype.kind == "f" else int(number)


def _constant(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (write,) = writes
    with np.errstate(all="ignore"):
        write[...] = np.array(numbers, np.float64).reshape(write.shape)


def _arange(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (start, step), (write,) = numbers, writes
    is_whole = float(start).is_integer() and float(step).is_integer()
    kind = np.int64 if is_whole else np.float64
    with np.errstate(all="ignore"):
        write[...] = np.arange(write.size, dtype=kind) * kind(step) + kind(start)


def _random(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (seed, is_normal), (write,) = numbers, writes
    chance = default_rng(int(seed))
    draw = chance.standard_normal if is_normal else chance.random
    write[...] = draw(write.shape)


def _cat(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (dim,), (write,) = numbers, writes
    target = np.moveaxis(write, int(dim), 0)
    at = 0
    for read in reads:
        source = np.moveaxis(read, int(dim), 0)
        piece = target[at : at + len(source)]
        _same_shapes([source], piece)
        piece[...] = source
        at += len(source)
    if at != len(target):
        raise ValueError("shapes differ")


def _index_select(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (source, index), (write,), (dim,) = reads, writes, numbers
    target = np.moveaxis(write, int(dim), 0)
    rows = np.moveaxis(source, int(dim), 0)
    if index.ndim != 1 or target.shape != (len(index), *rows.shape[1:]):
        raise ValueError("shapes differ")
    if index.size and index.min() < 0:
        raise IndexError("index out of range in self")
    target[...] = rows[index]


# -- sums and what is like them --------------------------------------------------------


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _over(
    reads: Arrays, write: Array, numbers: Numbers
) -> tuple[Array, tuple[int, ...]]:
    """What is gone over, and the dimensions that the result has a side of 1 in."""
    (read,) = reads
    axes = tuple(int(number) for number in numbers)
    kept = [1 if axis in axes else side for axis, side in enumerate(read.shape)]
    if write.shape != tuple(kept) or not all(0 <= axis < read.ndim for axis in axes):
        raise ValueError("shapes differ")
    return _wide(read), axes


def _reduction(function: Callable[..., Array]) -> Operation:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        (write,) = writes
        array, axes = _over(reads, write, numbers)
        with np.errstate(all="ignore"):
            write[...] = function(array, axis=axes, keepdims=True)

    return Operation(compute, flops=_one_of_each_read)


def _one_of_each_read(reads: Views, writes: Views, numbers: Numbers) -> float:
    return float(math.prod(reads[0].shape))


def _mean(array: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    # NumPy warns of nothing to take the mean of; PyTorch answers NaN
    count = math.prod(array.shape[at] for at in axis)
    total = np.sum(array, axis=axis, keepdims=keepdims)
    return np.asarray(total / array.dtype.type(count))


def _argument(function: Callable[..., Array]) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        array, (axis,) = _over(reads, writes[0], numbers)
        writes[0][...] = function(array, axis=axis, keepdims=True)

    return compute


def _extreme(values: Callable[..., Array], places: Callable[..., Array]) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        array, (axis,) = _over(reads, writes[0], numbers)
        _same_shapes([writes[1]], writes[0])
        writes[0][...] = values(array, axis=axis, keepdims=True)
        writes[1][...] = places(array, axis=axis, keepdims=True)

    return compute


def _softmax(is_logarithm: bool) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        (read,), (write,), (axis,) = reads, writes, map(int, numbers)
        _same_shapes(reads, write)
        with np.errstate(all="ignore"):
            shifted = _wide(read) - _wide(read).max(axis=axis, keepdims=True)
            powers = np.exp(shifted)
            total = powers.sum(axis=axis, keepdims=True)
            write[...] = shifted - np.log(total) if is_logarithm else powers / total

    return compute


def _cumsum(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    _same_shapes(reads, writes[0])
    with np.errstate(all="ignore"):
        writes[0][...] = np.cumsum(_wide(reads[0]), axis=int(numbers[0]))


def _five_each(reads: Views, writes: Views, numbers: Numbers) -> float:
    return 5.0 * math.prod(writes[0].shape)


# -- matrices --------------------------------------------------------------------------


def _product(left: Array, right: Array, write: Array) -> Array:
    shape = (*left.shape[:-1], right.shape[-1])
    if left.ndim < 2 or write.shape != shape or left.shape[:-2] != right.shape[:-2]:
        raise ValueError("shapes differ")
    return np.asarray(np.matmul(_wide(left), _wide(right)))


def _matmul(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    left, right = reads
    with np.errstate(all="ignore"):
        writes[0][...] = _product(left, right, writes[0])


def _addmm(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (bias, left, right), (write,), (beta, alpha) = reads, writes, numbers
    _same_shapes([bias], write)
    with np.errstate(all="ignore"):
        product = _product(left, right, write)
        # a beta of 0 ignores what the bias holds, NaN too
        added = _wide(bias) * product.dtype.type(beta) if beta else 0
        write[...] = added + product.dtype.type(alpha) * product


def _product_flops(reads: Views, writes: Views, numbers: Numbers) -> float:
    return 2.0 * math.prod(writes[0].shape) * reads[-1].shape[-2]


def _nothing(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (cycles,) = numbers
    if reads or writes or not 0 <= cycles < 1e12:
        raise ValueError("no such sleep")


OPERATIONS: dict[str, Operation] = {
    "copy": Operation(_copy),
    "fill": Operation(_fill),
    "constant": Operation(_constant),
    "arange": Operation(_arange),
    "random": Operation(_random),
    "cat": Operation(_cat),
    "index_select": Operation(_index_select),
    "where": _elementwise(np.where, 3, conditions=1),
    **{name: _elementwise(run, 1) for name, run in _UNARY.items()},
    **{name: _elementwise(run, 1, compares=True) for name, run in _TESTS.items()},
    **{name: _elementwise(run, 2) for name, run in _BINARY.items()},
    **{name: _elementwise(run, 2, compares=True) for name, run in _COMPARISONS.items()},
    **{name: _elementwise(run, 3) for name, run in _TERNARY.items()},
    "sum": _reduction(np.sum),
    "prod": _reduction(np.prod),
    "mean": _reduction(_mean),
    "amax": _reduction(np.max),
    "amin": _reduction(np.min),
    "all": _reduction(np.all),
    "any": _reduction(np.any),
    "argmax": Operation(_argument(np.argmax), flops=_one_of_each_read),
    "argmin": Operation(_argument(np.argmin), flops=_one_of_each_read),
    "max": Operation(_extreme(np.max, np.argmax), flops=_one_of_each_read),
    "min": Operation(_extreme(np.min, np.argmin), flops=_one_of_each_read),
    "cumsum": Operation(_cumsum, flops=_one_of_each_read),
    "softmax": Operation(_softmax(False), flops=_five_each),
    "log_softmax": Operation(_softmax(True), flops=_five_each),
    "matmul": Operation(_matmul, flops=_product_flops, unit="tensor"),
    "addmm": Operation(_addmm, flops=_product_flops, unit="tensor"),
    "conv2d": Operation(
        convolution.conv2d, flops=convolution.conv2d_flops, ns=convolution.conv2d_ns
    ),
    "conv2d_weight": Operation(
        convolution.conv2d_weight,
        flops=convolution.conv2d_weight_flops,
        ns=convolution.conv2d_weight_ns,
    ),
    # cycles of one SM, on its stream alone
    "sleep": Operation(_nothing, ns=lambda reads, writes, numbers: numbers[0] / 1.98),
}
