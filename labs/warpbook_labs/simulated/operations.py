"""What kernels of the simulated GPU compute: each by name, on NumPy's arrays.

The recorder runs them in the jail with numbers that do not count, the judge in the
parent with those that do, on views that a hostile program names: a function here uses
memory in proportion to its reads and writes, or says as `scratch` how much, and raises
what NumPy raises where they do not fit (ValueError, IndexError, OverflowError,
TypeError).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import default_rng

from warpbook_labs.simulated import convolution, indexing, pointwise
from warpbook_labs.simulated.pointwise import (
    Array,
    Arrays,
    Function,
    Numbers,
    same_shapes,
)
from warpbook_labs.simulated.program import View

Views = Sequence[View]
#: of `torch.cuda._sleep`: the H200's highest clock, from its datasheet
_CYCLES_PER_NS = 1.98


#: how much of something a launch needs
Amount = Callable[[Views, Views, Numbers], float]


def _none(reads: Views, writes: Views, numbers: Numbers) -> float:
    return 0.0


@dataclass(frozen=True)
class Operation:
    """One kind of kernel."""

    #: computes from the reads into the writes
    function: Function
    flops: Amount = _none
    #: what goes to and from memory; None: all that is read and written, once
    bytes: Amount | None = None
    #: how long it takes, where that is no matter of bytes and operations
    ns: Callable[[Views, Views, Numbers], float | None] | None = None
    #: which unit's rate holds for its operations
    unit: Literal["simt", "tensor"] = "simt"
    #: bytes of memory that the function takes, where reads and writes don't bound them
    scratch: Amount = _none


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


# -- memory that is filled or copied ---------------------------------------------------


def _copy(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    for read, write in zip(reads, writes, strict=True):
        same_shapes([read], write)
        with np.errstate(all="ignore"):
            write[...] = read


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
        same_shapes([source], piece)
        piece[...] = source
        at += len(source)
    if at != len(target):
        raise ValueError("shapes differ")


def _selected_bytes(reads: Views, writes: Views, numbers: Numbers) -> float:
    # of what is chosen from, only that is read
    return 2.0 * moved_bytes(writes) + moved_bytes(reads[1:])


def _put_bytes(reads: Views, writes: Views, numbers: Numbers) -> float:
    # of what is written into, only that is written
    values = reads[0]
    written = math.prod(values.shape) * np.dtype(values.dtype).itemsize
    return float(written + moved_bytes(reads))


def _flip(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    same_shapes(reads, writes[0])
    writes[0][...] = np.flip(reads[0], tuple(int(number) for number in numbers))


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


def _one_each(reads: Views, writes: Views, numbers: Numbers) -> float:
    return float(math.prod(writes[0].shape))


def _one_of_each_read(reads: Views, writes: Views, numbers: Numbers) -> float:
    return float(math.prod(reads[0].shape))


def _mean(array: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    # NumPy warns of nothing to take the mean of; PyTorch answers NaN
    count = math.prod(array.shape[at] for at in axis)
    total = np.sum(array, axis=axis, keepdims=keepdims)
    return np.asarray(total / array.dtype.type(count))


def _variance(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    correction, is_root, *axes = numbers
    array, along = _over(reads, writes[0], tuple(axes))
    count = math.prod(array.shape[at] for at in along)
    with np.errstate(all="ignore"):
        apart = array - _mean(array, along, keepdims=True)
        total = np.sum(apart * apart, axis=along, keepdims=True)
        variance = total / array.dtype.type(max(count - correction, 0))
        writes[0][...] = np.sqrt(variance) if is_root else variance


def _norm(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    power, *axes = numbers
    array, along = _over(reads, writes[0], tuple(axes))
    kind = array.dtype.type
    with np.errstate(all="ignore"):
        total = np.sum(np.abs(array) ** kind(power), axis=along, keepdims=True)
        writes[0][...] = total ** kind(1 / power)


def _topk(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    (read,), (values, places) = reads, writes
    axis, is_largest = (int(number) for number in numbers)
    same_shapes([places], values)
    # equal ones stay in their order, from whichever end they come
    order = np.argsort(
        np.flip(read, axis) if is_largest else read, axis=axis, kind="stable"
    )
    order = read.shape[axis] - 1 - np.flip(order, axis) if is_largest else order
    count = values.shape[axis]
    chosen = np.moveaxis(np.moveaxis(order, axis, 0)[:count], 0, axis)
    if chosen.shape != values.shape:
        raise ValueError("shapes differ")
    places[...] = chosen
    values[...] = np.take_along_axis(read, chosen, axis)


def _argument(function: Callable[..., Array]) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        array, (axis,) = _over(reads, writes[0], numbers)
        writes[0][...] = function(array, axis=axis, keepdims=True)

    return compute


def _extreme(values: Callable[..., Array], places: Callable[..., Array]) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        array, (axis,) = _over(reads, writes[0], numbers)
        same_shapes([writes[1]], writes[0])
        writes[0][...] = values(array, axis=axis, keepdims=True)
        writes[1][...] = places(array, axis=axis, keepdims=True)

    return compute


def _softmax(is_logarithm: bool) -> Function:
    def compute(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
        (read,), (write,), (axis,) = reads, writes, map(int, numbers)
        same_shapes(reads, write)
        with np.errstate(all="ignore"):
            shifted = _wide(read) - _wide(read).max(axis=axis, keepdims=True)
            powers = np.exp(shifted)
            total = powers.sum(axis=axis, keepdims=True)
            write[...] = shifted - np.log(total) if is_logarithm else powers / total

    return compute


def _cumsum(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    same_shapes(reads, writes[0])
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
    same_shapes([bias], write)
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
    "flip": Operation(_flip),
    "gather": Operation(indexing.gather, bytes=_selected_bytes),
    "index": Operation(indexing.index, bytes=_selected_bytes),
    "index_copy": Operation(indexing.index_copy, bytes=_put_bytes),
    "index_put": Operation(indexing.index_put, bytes=_put_bytes),
    "index_select": Operation(indexing.index_select, bytes=_selected_bytes),
    "take_along_dim": Operation(indexing.take_along_dim, bytes=_selected_bytes),
    **{
        name: Operation(function, flops=_one_each)
        for name, function in pointwise.FUNCTIONS.items()
    },
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
    "norm": Operation(_norm, flops=_one_of_each_read),
    "topk": Operation(_topk, flops=_one_of_each_read),
    "var": Operation(_variance, flops=_one_of_each_read),
    "cumsum": Operation(_cumsum, flops=_one_of_each_read),
    "softmax": Operation(_softmax(False), flops=_five_each),
    "log_softmax": Operation(_softmax(True), flops=_five_each),
    "matmul": Operation(_matmul, flops=_product_flops, unit="tensor"),
    "addmm": Operation(_addmm, flops=_product_flops, unit="tensor"),
    "conv2d": Operation(
        convolution.conv2d,
        flops=convolution.conv2d_flops,
        ns=convolution.conv2d_ns,
        scratch=convolution.conv2d_scratch,
    ),
    "conv2d_weight": Operation(
        convolution.conv2d_weight,
        flops=convolution.conv2d_weight_flops,
        ns=convolution.conv2d_weight_ns,
        scratch=convolution.conv2d_weight_scratch,
    ),
    # cycles of one SM, on its stream alone
    "sleep": Operation(
        _nothing, ns=lambda reads, writes, numbers: numbers[0] / _CYCLES_PER_NS
    ),
}
