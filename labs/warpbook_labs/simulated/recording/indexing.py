"""`x[...]`: slices are views, and what tensors of numbers choose is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpbook_labs.simulated.indexing import chosen_shape
from warpbook_labs.simulated.recording.creating import tensor
from warpbook_labs.simulated.recording.devices import CPU
from warpbook_labs.simulated.recording.dtypes import BOOL, LONG
from warpbook_labs.simulated.recording.elementwise import (
    broadcast,
    expanded,
    fill_,
    masked_fill_,
)
from warpbook_labs.simulated.recording.moving import contiguous, copy_, to
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
    one_device,
    place_of,
    refuse_overlap,
)
from warpbook_labs.simulated.recording.views import elements

#: a view, the sides of it that tensors number, and those tensors
_Chosen = tuple[Tensor, list[int], list[Tensor]]


def getitem(self: Tensor, index: Any) -> Tensor:
    """`x[...]`: the same memory, but for an index that is a tensor."""
    part, sides, indices = _chosen(self, index)
    if not indices:
        return part
    shape = chosen_shape(part.array.shape, indices[0].array.shape, tuple(sides))
    result = new(
        shape, part.dtype, place_of(part.device), _strides(shape, part, sides, indices)
    )
    launch("index", [part, *indices], [result], sides)
    return result


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """`x[...] = value`."""
    if isinstance(index, Tensor) and index.dtype is BOOL:
        masked_fill_(self, index, value)
        return
    part, sides, indices = _chosen(self, index)
    if indices:
        _put(part, sides, indices, value)
        return
    if not isinstance(value, Tensor):
        fill_(part, value)
        return
    copy_(part, _without_ones(value, part.ndim))


def index_put_(
    self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`x[i, j] = values`."""
    if accumulate:
        refuse("index_put_ with accumulate=True")
    for number, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(
                f"expected Tensor as element {number} in argument 0, but got "
                f"{type(index).__name__}"
            )
    setitem(self, tuple(indices), values)
    return self


def _chosen(self: Tensor, index: Any) -> _Chosen:
    """Do what slices and numbers say, and tell what is left for tensors to say."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(_part(self, part) for part in parts)
    sides, indices, side = [], [], 0
    counted = sum(part is not None and part is not Ellipsis for part in parts)
    for part in parts:
        if isinstance(part, Tensor):
            sides.append(side)
            indices.append(part)
        if part is Ellipsis:
            side += self.ndim - counted
        elif part is None or isinstance(part, (slice, Tensor)):
            side += 1
    plain = (slice(None) if isinstance(part, Tensor) else part for part in parts)
    return elements(self, tuple(plain)), sides, _together(self, indices)


def _part(self: Tensor, part: Any) -> Any:
    """One part of an index: a tensor of numbers, or what makes a view."""
    if isinstance(part, (list, range, np.ndarray)):
        return to(_of_sequence(part), self.device)
    if not isinstance(part, Tensor):
        return part
    if part.dtype.name in ("bool", "uint8"):
        refuse("indexing by masks but x[mask] = number", "Use `torch.where`. ")
    if part.dtype.name not in ("int32", "int64"):
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors"
        )
    return part if part.ndim else int(part)


def _of_sequence(given: Any) -> Tensor:
    numbers = np.asarray(given) if len(given) else np.empty(0, np.int64)
    if isinstance(given, list) and any(not np.isscalar(one) for one in given):
        refuse("indexing by lists of anything but numbers", "Use `torch.tensor`. ")
    if numbers.dtype.kind == "b":
        refuse("indexing by masks but x[mask] = number", "Use `torch.where`. ")
    if numbers.dtype.kind not in "iu":
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors"
        )
    return tensor(numbers, dtype=LONG, device=CPU)


def _together(self: Tensor, indices: list[Tensor]) -> list[Tensor]:
    """Tensors of one shape, on the device of what they choose from."""
    if not indices:
        return []
    if not self.is_cuda and any(index.is_cuda for index in indices):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed "
            "tensor (cpu)"
        )
    try:
        shape = broadcast([index.array.shape for index in indices])
    except RuntimeError:
        shapes = ", ".join(str(list(index.shape)) for index in indices)
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with "
            f"shapes {shapes}"
        ) from None
    # PyTorch broadcasts them first, and then has the host wait for each that it copies
    near = [to(expanded(index, shape), self.device) for index in indices]
    near = [to(index, self.device, LONG) for index in near]
    if self.is_cuda and len({index.array.strides for index in near}) > 1:
        # its kernel steps through all of them alike
        near = [contiguous(index) for index in near]
    return near


def _strides(
    shape: tuple[int, ...], part: Tensor, sides: list[int], indices: list[Tensor]
) -> list[int]:
    """The order of a result: PyTorch keeps that of what it is made of."""
    first = sides[0] if sides[-1] - sides[0] == len(sides) - 1 else 0
    rest = [s for at, s in enumerate(_steps(part)) if at not in sides]
    count = indices[0].ndim
    steps = [(*rest[:first], *[0] * count, *rest[first:])]
    around = [0] * first, [0] * (len(rest) - first)
    steps += [(*around[0], *_steps(index), *around[1]) for index in indices]

    def is_slower(left: int, right: int) -> bool | None:
        for each in steps:
            if each[left] and each[right]:
                if each[left] != each[right]:
                    return each[left] > each[right]
                if shape[left] > shape[right]:
                    return True
        return None

    # from the fastest side to the slowest, sorted as PyTorch's iterator does
    order = list(reversed(range(len(shape))))
    for at in range(1, len(order)):
        place = at
        for before in reversed(range(at)):
            slower = is_slower(order[before], order[place])
            if slower is False:
                break
            if slower:
                order[before], order[place] = order[place], order[before]
                place = before
    strides, step = [1] * len(shape), 1
    for side in order:
        strides[side] = step
        step *= max(shape[side], 1)
    return strides


def _steps(tensor: Tensor) -> list[int]:
    """Its strides; of a side of 1 there is none."""
    pairs = zip(tensor.array.shape, tensor.array.strides, strict=True)
    return [step if side > 1 else 0 for side, step in pairs]


def _without_ones(value: Tensor, count: int) -> Tensor:
    """It without sides of 1 that are too many at first."""
    while value.ndim > count and value.array.shape[0] == 1:
        value = of_array(value, value.array[0])
    return value


def _put(part: Tensor, sides: list[int], indices: list[Tensor], value: Any) -> None:
    if not isinstance(value, Tensor):
        value = tensor(value, dtype=part.dtype, device=CPU)
    if not value.ndim:
        # PyTorch copies a number of the host, and waits
        value = to(value, part.device)
    one_device([part, value])
    if value.dtype is not part.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{part.dtype.letter_name} for the destination and "
            f"{value.dtype.letter_name} for the source."
        )
    shape = chosen_shape(part.array.shape, indices[0].array.shape, tuple(sides))
    value = _without_ones(value, len(shape))
    missing = len(shape) - value.ndim
    fits = zip(value.array.shape, shape[max(missing, 0) :], strict=False)
    if missing < 0 or any(side not in (1, wanted) for side, wanted in fits):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.shape)} cannot be "
            f"broadcast to indexing result of shape {list(shape)}"
        )
    for read in (value, *indices):
        refuse_overlap(part, read, may_be_same=False)
    launch("index_put", [expanded(value, shape), *indices], [part], sides)
