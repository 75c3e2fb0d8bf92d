"""What kernels themselves read and write in memory of the host, over the link."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from warpbook_labs.simulated.program import Launch, View

from . import rates


class OverLink(NamedTuple):
    """Of one kernel; zeros where all that it uses is the GPU's own."""

    read_bytes: int
    written_bytes: int
    #: how long the link takes for it
    ns: float


def over_link_of(launch: Launch) -> OverLink:
    """Count what crosses the link, in whole sectors; what is read twice counts twice.

    Args:
        launch: of which the views are known to make sense.
    """
    read_bytes = sum(_sector_bytes(each) for each in launch.reads if each.is_mapped)
    written_bytes = sum(_sector_bytes(each) for each in launch.writes if each.is_mapped)
    rows = 0
    if launch.operation == "index_select" and launch.reads[0].is_mapped:
        # of what is chosen from, only that is read
        source, index = launch.reads
        row = _without(source, int(launch.numbers[0]))
        rows = math.prod(index.shape)
        read_bytes += rows * _sector_bytes(row) - _sector_bytes(source)
    ns = max(
        read_bytes / rates.MAPPED_READ_BYTES_PER_S * 1e9,
        written_bytes / rates.MAPPED_WRITE_BYTES_PER_S * 1e9,
        rows * rates.MAPPED_ROW_NS,
    )
    return OverLink(read_bytes, written_bytes, ns)


def _without(view: View, side: int) -> View:
    """Give one element along a side."""
    shape, strides = list(view.shape), list(view.strides)
    del shape[side], strides[side]
    return View(view.storage, view.dtype, tuple(shape), tuple(strides), view.offset)


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
