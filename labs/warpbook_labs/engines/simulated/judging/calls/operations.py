"""What kernels of the simulated GPU compute and cost: a few by names of our own.

All else are ATen calls. A function gets PyTorch's tensors on views that a hostile
program names: it uses memory in proportion to its reads and writes, or says as
`scratch` how much, and raises what PyTorch raises where they do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch

from warpbook_labs.engines.simulated.judging.calls import allowed, aten, convolution
from warpbook_labs.engines.simulated.program import Launch, View, item_bytes

Views = Sequence[View]
Numbers = tuple[float, ...]
Tensors = Sequence[Any]
#: computes from the first into the second
Function = Callable[[Tensors, Tensors, Numbers], None]
#: how much of something a launch needs
Amount = Callable[[Views, Views, Numbers], float]
#: of `torch.cuda._sleep`: the H200's highest clock, from its datasheet
_CYCLES_PER_NS = 1.98


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
    #: each element of the one result is made of those at the same place
    is_pointwise: bool = False


def moved_bytes(views: Views) -> int:
    """Bytes of these views; what is broadcast counts once."""
    return sum(
        item_bytes(view.dtype)
        * math.prod(
            side
            for side, stride in zip(view.shape, view.strides, strict=True)
            if stride or not side
        )
        for view in views
    )


def _copy(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    for read, write in zip(reads, writes, strict=True):
        if read.shape != write.shape:
            raise ValueError("shapes differ")
        write.copy_(read)


def _fill(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    (number,), (write,) = numbers, writes
    write.fill_(number if write.dtype.is_floating_point else int(number))


def _constant(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    (write,) = writes
    write.copy_(torch.tensor(numbers, dtype=torch.float64).view(write.shape))


def _nothing(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    (cycles,) = numbers
    if reads or writes or not 0 <= cycles < 1e12:
        raise ValueError("no such sleep")


OPERATIONS: dict[str, Operation] = {
    "copy": Operation(_copy),
    "fill": Operation(_fill),
    "constant": Operation(_constant),
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


def operation_of(launch: Launch) -> Operation | None:
    own = OPERATIONS.get(launch.operation)
    if own is not None:
        return own
    base = allowed.base_of(launch.operation)
    return None if base is None else _of_aten(launch, base)


@lru_cache(256)
def _of_aten(launch: Launch, base: str) -> Operation:
    def compute(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
        aten.run(launch, reads, writes)

    bound = aten.bound_of(launch)
    count: Amount | None = None
    if base in allowed.CHOOSING:
        count = _selected_bytes
    elif base in allowed.PUTTING:
        count = _put_bytes
    is_product = base in allowed.PRODUCTS
    return Operation(
        compute,
        flops=lambda reads, writes, numbers: bound.flops,
        bytes=count,
        unit="tensor" if is_product else "simt",
        is_pointwise=bound.is_pointwise,
    )


def _selected_bytes(reads: Views, writes: Views, numbers: Numbers) -> float:
    # of what is chosen from, only that is read
    return 2.0 * moved_bytes(writes) + moved_bytes(reads[1:])


def _put_bytes(reads: Views, writes: Views, numbers: Numbers) -> float:
    # of what is written into, only that is written
    values = reads[-1]
    written = math.prod(values.shape) * item_bytes(values.dtype)
    return float(written + moved_bytes(reads))
