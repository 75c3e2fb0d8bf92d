"""Elements that are chosen by tensors of numbers, on NumPy's arrays.

What is read beside the numbers comes first; the sides that they count come as numbers.
"""

from __future__ import annotations

import numpy as np

from warpbook_labs.simulated.pointwise import Array, Arrays, Numbers


def chosen_shape(
    shape: tuple[int, ...], index_shape: tuple[int, ...], sides: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of what is chosen: the index stands where the first of its sides was.

    Sides that are not neighbours put it first, as NumPy and PyTorch have it.
    """
    rest = [extent for side, extent in enumerate(shape) if side not in sides]
    at = sides[0] if sides[-1] - sides[0] == len(sides) - 1 else 0
    return (*rest[:at], *index_shape, *rest[at:])


def _places(
    of: Array, indices: Arrays, sides: tuple[int, ...], chosen: Array
) -> tuple[slice | Array, ...]:
    """What NumPy takes as an index, where it chooses as many as there are."""
    is_sorted = list(sides) == sorted(set(sides)) and len(sides) == len(indices) > 0
    if not is_sorted or not 0 <= sides[0] <= sides[-1] < of.ndim:
        raise ValueError("no such sides")
    shape = indices[0].shape
    if any(index.dtype.kind != "i" or index.shape != shape for index in indices):
        raise ValueError("no such index")
    if chosen.shape != chosen_shape(of.shape, shape, sides):
        raise ValueError("shapes differ")
    places: list[slice | Array] = [slice(None)] * of.ndim
    for side, index in zip(sides, indices, strict=True):
        places[side] = index
    return tuple(places)


def index(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """`x[..., i, j]`, by indices of one shape; they may count from the end."""
    (source, *indices), (write,) = reads, writes
    write[...] = source[_places(source, indices, tuple(map(int, numbers)), write)]


def index_put(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """`x[..., i, j] = values`; of what is written to one place, the last stays."""
    (values, *indices), (write,) = reads, writes
    places = _places(write, indices, tuple(map(int, numbers)), values)
    with np.errstate(all="ignore"):
        write[places] = values


def _count_from_start(numbers: Array) -> None:
    if numbers.size and numbers.min() < 0:
        raise IndexError("index out of range in self")


def index_select(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """Rows by their numbers, which count from the start."""
    _count_from_start(reads[1])
    index(reads, writes, numbers)


def index_copy(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """Rows to their numbers, which count from the start."""
    _count_from_start(reads[1])
    index_put(reads, writes, numbers)


def gather(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """Along one side each element by its own number, which counts from the start."""
    _count_from_start(reads[1])
    take_along_dim(reads, writes, numbers)


def take_along_dim(reads: Arrays, writes: Arrays, numbers: Numbers) -> None:
    """The same by numbers that may count from the end."""
    (source, numbered), (write,), (side,) = reads, writes, map(int, numbers)
    if write.shape != numbered.shape or source.ndim != write.ndim or side < 0:
        raise ValueError("shapes differ")
    corner = [slice(extent) for extent in write.shape]
    corner[side] = slice(None)
    part = source[tuple(corner)]
    longer = [at for at in range(write.ndim) if part.shape[at] != write.shape[at]]
    if numbered.dtype.kind != "i" or longer not in ([], [side]):
        raise ValueError("shapes differ")
    write[...] = np.take_along_axis(part, numbered, side)
