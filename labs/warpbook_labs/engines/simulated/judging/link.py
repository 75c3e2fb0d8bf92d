"""What kernels themselves read and write in memory of the host, over the link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.judging.calls.allowed import (
    CHOOSING,
    PUTTING,
    base_of,
)
from warpbook_labs.engines.simulated.judging.calls.aten import indices_of
from warpbook_labs.engines.simulated.judging.graphs import Kernel
from warpbook_labs.engines.simulated.program import ProgramRefused, View, item_bytes

#: numbers that are counted at once, so that memory stays bounded
_AT_ONCE = 1 << 22
#: of more than these each counts alone, so that time does
_MOST_NUMBERS = 1 << 24
#: each element by its own number along one side
_GATHERING = ("gather", "scatter", "scatter_add")


class OverLink(NamedTuple):
    """Of one kernel; zeros where all that it uses is the GPU's own."""

    read_bytes: int
    written_bytes: int
    #: how long the link takes for it
    ns: float


def over_link_of(kernel: Kernel) -> OverLink:
    """Count the sectors that cross the link; what is read twice counts twice."""
    launch = kernel.launch
    read, written = (
        [_sector_bytes(view) if view.is_mapped else 0 for view in views]
        for views in (launch.reads, launch.writes)
    )
    rows = 0
    # of what is chosen from, only that is read, and of what is written into, written
    base = base_of(launch.operation)
    try:
        if base in CHOOSING and launch.reads[0].is_mapped:
            read[0], rows = _chosen(kernel, launch.reads[0])
        elif base in PUTTING and launch.writes[0].is_mapped:
            written[0], _ = _chosen(kernel, launch.writes[0])
    except (LookupError, TypeError, ValueError) as problem:
        raise ProgramRefused("An index of a tensor is invalid.") from problem
    read_bytes, written_bytes = sum(read), sum(written)
    ns = max(
        read_bytes / rates.MAPPED_READ_BYTES_PER_S * 1e9,
        written_bytes / rates.MAPPED_WRITE_BYTES_PER_S * 1e9,
        rows * rates.MAPPED_ROW_NS,
    )
    return OverLink(read_bytes, written_bytes, ns)


def _chosen(kernel: Kernel, of: View) -> tuple[int, int]:
    """Count the bytes of what is chosen of a view, and in how many pieces it lies.

    Neighbours are chosen together: an index of each element costs no more than of rows.
    """
    sides, numbered_by = indices_of(kernel.launch)
    if base_of(kernel.launch.operation) == "take":
        # which numbers the elements one after the other
        of = View(of.storage, of.dtype, (math.prod(of.shape),), (1,), of.offset)
    indices = np.broadcast_arrays(*(kernel.reads[at].array for at in numbered_by))
    extents, steps = (
        [values[side] for side in sides] for values in (of.shape, of.strides)
    )
    if base_of(kernel.launch.operation) in _GATHERING:
        part = _with_side(of, range(len(of.shape)), 1)
        where = _gathered(of, indices[0], sides[0])
    elif len(sides) == 1:
        part = _with_side(of, sides, steps[0])
        where = _each(indices, extents, [1])
    else:
        part = _with_side(of, sides, 1)
        where = _each(indices, extents, steps)
    count = indices[0].size
    if count > _MOST_NUMBERS:
        return count * _sector_bytes(part), count
    total = rows = 0
    for places in where:
        for length, count in _pieces(places):
            total += count * _sector_bytes(_part(part, length))
            rows += count
    return total, rows


def _each(
    indices: Sequence[NDArray[Any]], extents: Sequence[int], steps: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Give the places that indices name together, some at a time."""
    for begin in range(0, indices[0].size, _AT_ONCE):
        places = np.zeros((), np.int64)
        for index, extent, step in zip(indices, extents, steps, strict=True):
            some = index.flat[begin : begin + _AT_ONCE].astype(np.int64)
            places = places + some % extent * step
        yield places


def _gathered(of: View, index: NDArray[Any], side: int) -> Iterator[NDArray[np.int64]]:
    """Give the places of elements of which one side is numbered, some at a time."""
    for begin in range(0, index.size, _AT_ONCE):
        some = index.flat[begin : begin + _AT_ONCE].astype(np.int64)
        at = [*np.unravel_index(np.arange(begin, begin + some.size), index.shape)]
        at[side] = some % of.shape[side]
        yield sum(
            (place * step for place, step in zip(at, of.strides, strict=True)),
            start=np.zeros(some.size, np.int64),
        )


def _pieces(places: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Give how many places follow each other, and how often so many do."""
    ends = np.flatnonzero(places[1:] != places[:-1] + 1)
    lengths = np.diff(ends, prepend=-1, append=places.size - 1)
    kinds, counts = np.unique(lengths, return_counts=True)
    return list(zip(kinds.tolist(), counts.tolist(), strict=True))


def _with_side(view: View, without: Sequence[int], step: int) -> View:
    """Give a view with one side in place of others, at the end."""
    kept = [side for side in range(len(view.shape)) if side not in without]
    shape, strides = (
        [values[side] for side in kept] for values in (view.shape, view.strides)
    )
    return View(view.storage, view.dtype, (*shape, 1), (*strides, step), view.offset)


def _part(view: View, length: int) -> View:
    """Give so many elements along the last side."""
    shape = (*view.shape[:-1], length)
    return View(view.storage, view.dtype, shape, view.strides, view.offset)


def _sector_bytes(view: View) -> int:
    """Count the sectors of a view, each once, if it begins where one does."""
    if 0 in view.shape:
        return 0
    run_bytes = element_bytes = item_bytes(view.dtype)
    runs = 1
    sides = zip(view.shape, view.strides, strict=True)
    for extent, stride in sorted(sides, key=lambda side: side[1]):
        if stride == 0 or extent == 1:
            continue
        step_bytes = stride * element_bytes
        if runs == 1 and step_bytes - run_bytes < rates.SECTOR_BYTES:
            # gaps that no sector fits in come along
            run_bytes += (extent - 1) * step_bytes
        else:
            runs *= extent
    return runs * -(-run_bytes // rates.SECTOR_BYTES) * rates.SECTOR_BYTES
