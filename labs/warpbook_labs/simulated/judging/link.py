"""What kernels themselves read and write in memory of the host, over the link."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.program import View

from . import rates
from .graphs import Kernel

#: of more numbers than these each counts alone, so that memory stays bounded
_MOST_NUMBERS = 1 << 22


class OverLink(NamedTuple):
    """Of one kernel; zeros where all that it uses is the GPU's own."""

    read_bytes: int
    written_bytes: int
    #: how long the link takes for it
    ns: float


def over_link_of(kernel: Kernel) -> OverLink:
    """Count what crosses the link, in whole sectors; what is read twice counts twice.

    Args:
        kernel: one that could be computed.
    """
    launch = kernel.launch
    read_bytes = sum(_sector_bytes(each) for each in launch.reads if each.is_mapped)
    written_bytes = sum(_sector_bytes(each) for each in launch.writes if each.is_mapped)
    rows = 0
    if launch.operation == "index_select" and launch.reads[0].is_mapped:
        # of what is chosen from, only that is read
        source, side = launch.reads[0], int(launch.numbers[0])
        read_bytes -= _sector_bytes(source)
        for length, count in _pieces(kernel.reads[1].array):
            read_bytes += count * _sector_bytes(_part(source, side, length))
            rows += count
    ns = max(
        read_bytes / rates.MAPPED_READ_BYTES_PER_S * 1e9,
        written_bytes / rates.MAPPED_WRITE_BYTES_PER_S * 1e9,
        rows * rates.MAPPED_ROW_NS,
    )
    return OverLink(read_bytes, written_bytes, ns)


def _pieces(numbers: NDArray[Any]) -> list[tuple[int, int]]:
    """Give how many numbers follow each other, and how often so many do.

    Neighbours are read together: an index of each element costs no more than of rows.
    """
    if numbers.size > _MOST_NUMBERS:
        return [(1, numbers.size)]
    whole = numbers.astype(np.int64)
    ends = np.flatnonzero(whole[1:] != whole[:-1] + 1)
    lengths = np.diff(ends, prepend=-1, append=whole.size - 1)
    kinds, counts = np.unique(lengths, return_counts=True)
    return list(zip(kinds.tolist(), counts.tolist(), strict=True))


def _part(view: View, side: int, length: int) -> View:
    """Give so many elements along a side."""
    shape = list(view.shape)
    shape[side] = length
    return View(view.storage, view.dtype, tuple(shape), view.strides, view.offset)


def _sector_bytes(view: View) -> int:
    """Count the sectors of a view, each once, if it begins where one does."""
    if 0 in view.shape:
        return 0
    run_bytes = np.dtype(view.dtype).itemsize
    item_bytes, runs = run_bytes, 1
    sides = zip(view.shape, view.strides, strict=True)
    for extent, stride in sorted(sides, key=lambda side: side[1]):
        if stride == 0 or extent == 1:
            continue
        step_bytes = stride * item_bytes
        if runs == 1 and step_bytes - run_bytes < rates.SECTOR_BYTES:
            # gaps that no sector fits in come along
            run_bytes += (extent - 1) * step_bytes
        else:
            runs *= extent
    return runs * -(-run_bytes // rates.SECTOR_BYTES) * rates.SECTOR_BYTES
