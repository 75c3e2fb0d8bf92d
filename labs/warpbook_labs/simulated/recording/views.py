"""Other elements of the same memory: indexing, slicing, shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.recording.creating import sides
from warpbook_labs.simulated.recording.dtypes import DType
from warpbook_labs.simulated.recording.elementwise import broadcast
from warpbook_labs.simulated.recording.layout import CONTIGUOUS
from warpbook_labs.simulated.recording.moving import clone
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    of_array,
    stretched,
    view_of,
)


def dimension(dim: int, count: int) -> int:
    """A dimension that may be counted from the end.

    Raises:
        IndexError: there is none.
    """
    least = max(count, 1)
    if not -least <= dim < least:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-least}, "
            f"{least - 1}], but got {dim})"
        )
    return dim % least


def size(self: Tensor, dim: int | None = None) -> Any:
    """Its shape, or the length of one side."""
    return self.shape if dim is None else self.shape[dimension(dim, self.ndim)]


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Steps from an element to the next, by dimension."""
    steps = tuple(step // self.array.itemsize for step in self.array.strides)
    return steps if dim is None else steps[dimension(dim, self.ndim)]


def numel(self: Tensor) -> int:
    """The number of its elements."""
    return self.array.size


def storage_offset(self: Tensor) -> int:
    """The place of its first element in its memory."""
    return view_of(self).offset


def data_ptr(self: Tensor) -> int:
    """What stands for its address: the same for the same place."""
    return int(self.array.__array_interface__["data"][0])


# -- indexing --------------------------------------------------------------------------


def _index(index: Any) -> tuple[Any, ...]:
    """An index of numbers, slices, None and "..." only."""
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, slice):
            if part.step is not None and part.step <= 0:
                raise ValueError("step must be greater than zero")
        elif isinstance(part, (list, np.ndarray, bool, Tensor)):
            refuse("indexing by masks but x[mask] = number", "Use `torch.where`. ")
        elif (
            part is not None and part is not Ellipsis and not hasattr(part, "__index__")
        ):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                f"Variables are valid indices (got {type(part).__name__})"
            )
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def elements(self: Tensor, index: Any) -> Tensor:
    """The same memory by an index of numbers, slices, None and "..." only."""
    try:
        return of_array(self, self.array[_index(index)])
    except IndexError as problem:
        raise IndexError(str(problem).replace("axis", "dimension")) from None


def iterate(self: Tensor) -> Iterator[Tensor]:
    """Each element along the first side."""
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """So many along a side, from one on."""
    dim = dimension(dim, input.ndim)
    side = input.array.shape[dim]
    start = start + side if start < 0 else start
    if not 0 <= start <= side or length < 0 or start + length > side:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({side})."
        )
    return of_array(
        input, input.array[(slice(None),) * dim + (slice(start, start + length),)]
    )


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One along a side."""
    dim = dimension(dim, input.ndim)
    return elements(input, (slice(None),) * dim + (index,))


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Pieces of a length, or of the lengths given."""
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    side, step = tensor.array.shape[dimension(dim, tensor.ndim)], split_size_or_sections
    if step <= 0:
        raise RuntimeError("split expects split_size be positive")
    lengths = [min(step, side - at) for at in range(0, side, step)] or [0]
    return split_with_sizes(tensor, lengths, dim)


def split_of(
    self: Tensor, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """The same as a method, which has another name for the lengths."""
    return split(self, split_size, dim)


def split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Pieces of the lengths given."""
    dim = dimension(dim, input.ndim)
    side, lengths = input.array.shape[dim], list(split_sizes)
    if sum(lengths) != side:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {side} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={lengths}"
        )
    ends = list(accumulate(lengths, initial=0))
    return tuple(
        narrow(input, dim, at, length)
        for at, length in zip(ends, lengths, strict=False)
    )


def tensor_split(
    input: Tensor,
    sections: Any = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """So many pieces as equal as can be, or those between places."""
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
            "with 0 dims"
        )
    dim = dimension(dim, input.ndim)
    side, wanted = input.array.shape[dim], sections if indices is None else indices
    if isinstance(wanted, Tensor):
        refuse("tensor_split by a tensor", "Give numbers of Python. ")
    if isinstance(wanted, int):
        if wanted < 1:
            raise RuntimeError(
                f"number of sections must be larger than 0, got {wanted}"
            )
        each, longer = divmod(side, wanted)
        lengths = [each + (at < longer) for at in range(wanted)]
        return split_with_sizes(input, lengths, dim)
    before = (slice(None),) * dim
    begins, ends = [None, *wanted], [*wanted, None]
    return tuple(
        elements(input, (*before, slice(begin, end)))
        for begin, end in zip(begins, ends, strict=True)
    )


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many pieces, equally long but for the last."""
    if chunks <= 0:
        raise RuntimeError(
            f"chunk expects `chunks` to be greater than 0, got: {chunks}"
        )
    side = input.array.shape[dimension(dim, input.ndim)]
    return split(input, max(-(-side // chunks), 1), dim)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Each along a side."""
    side = input.array.shape[dimension(dim, input.ndim)]
    return tuple(select(input, dim, at) for at in range(side))


# -- shapes ----------------------------------------------------------------------------


def _reshaped(input: Tensor, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return input.array.reshape(shape)
    except ValueError:
        raise RuntimeError(
            f"shape '{list(shape)}' is invalid for input of size {input.array.size}"
        ) from None


def view(self: Tensor, *size: Any, dtype: DType | None = None) -> Tensor:
    """The same elements in another shape, or the same bytes as another type."""
    if len(size) == 1 and isinstance(size[0], DType):
        (dtype,) = size
    if dtype is not None:
        return of_array(self, self.array.view(dtype.numpy))
    array = _reshaped(self, sides(size))
    if array.size and not np.may_share_memory(array, self.array):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least "
            "one dimension spans across two contiguous subspaces). Use .reshape(...) "
            "instead."
        )
    return of_array(self, array)


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape; a copy where it must be one."""
    wanted = sides(shape)
    if np.may_share_memory(_reshaped(input, wanted), input.array):
        return view(input, wanted)
    return view(clone(input, memory_format=CONTIGUOUS), wanted)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Some sides become one."""
    if not input.ndim:
        return reshape(input, 1)
    first = dimension(start_dim, input.ndim)
    last = dimension(end_dim, input.ndim)
    shape = input.array.shape
    if first > last:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    middle = math.prod(shape[first : last + 1])
    return reshape(input, (*shape[:first], middle, *shape[last + 1 :]))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A side becomes several."""
    dim = dimension(dim, input.ndim)
    shape, parts = input.array.shape, list(sides([sizes]))
    known = math.prod(part for part in parts if part != -1)
    parts = [shape[dim] // max(known, 1) if part == -1 else part for part in parts]
    if math.prod(parts) != shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of "
            f"dim {dim} ({shape[dim]}) in the input tensor"
        )
    return view(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All in one side."""
    return reshape(input, -1)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements in another's shape."""
    return view(self, other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements in another's shape; a copy where it must be one."""
    return reshape(self, other.shape)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two sides change places."""
    dim0, dim1 = dimension(dim0, input.ndim), dimension(dim1, input.ndim)
    return of_array(input, input.array.swapaxes(dim0, dim1))


def t(input: Tensor) -> Tensor:
    """A matrix turned over."""
    if input.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
        )
    return of_array(input, input.array.T)


def turned(self: Tensor) -> Tensor:
    """The last two sides change places."""
    return transpose(self, -2, -1)


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Sides in another order."""
    order = [dimension(dim, input.ndim) for dim in sides(dims)]
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError("permute(dims): duplicate or missing dims are not allowed")
    return of_array(input, input.array.transpose(order))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A side of 1 more."""
    return of_array(input, np.expand_dims(input.array, dimension(dim, input.ndim + 1)))


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without sides of 1."""
    if dim is None:
        return of_array(input, input.array.squeeze())
    dims = [dimension(one, input.ndim) for one in sides([dim])]
    for one in dims:
        if dims.count(one) > 1:
            raise RuntimeError(f"dim {one} appears multiple times in the list of dims")
    short = [one for one in dims if input.ndim and input.array.shape[one] == 1]
    return of_array(input, input.array.squeeze(tuple(short)))


def expand(self: Tensor, *size: Any) -> Tensor:
    """Sides of 1 longer, without memory."""
    wanted = list(sides(size))
    extra = len(wanted) - self.ndim
    for at, side in enumerate(wanted):
        if side == -1 and at >= extra:
            wanted[at] = self.array.shape[at - extra]
    if broadcast([self.array.shape, tuple(wanted)]) != tuple(wanted):
        raise RuntimeError(
            f"The expanded size of the tensor ({wanted}) must match the existing size "
            f"({list(self.shape)})"
        )
    return of_array(self, stretched(self.array, tuple(wanted)))


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """As long as another, without memory."""
    return expand(self, other.shape)
