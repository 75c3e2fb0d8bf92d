"""Where the buffers of a case lie in the memory of each place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from warpbook_labs.cases.preparation import is_buffer, shape_of
from warpbook_labs.engines.host.messages import Slot
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.lab.spec import Parameter

PLACES: tuple[HostPlace, ...] = ("device", "pinned", "host")
#: pages, so that no two buffers share one
ALIGNMENT = 4096


class Layout(NamedTuple):
    """Some sets of buffers, and how much memory they take of each place."""

    slots: tuple[Slot, ...]
    size_bytes: dict[HostPlace, int]

    @property
    def read(self) -> tuple[Slot, ...]:
        """Give the buffers that hold something before a call."""
        return tuple(slot for slot in self.slots if slot.is_read)

    @property
    def written(self) -> tuple[Slot, ...]:
        """Give the buffers that are judged after it."""
        return tuple(slot for slot in self.slots if slot.is_written)


def laid_out(
    parameters: Sequence[Parameter], sizes: Mapping[str, int], sets: int = 1
) -> Layout:
    """Lay out as many sets of buffers: what is written of all sets, then the rest."""
    buffers = [parameter for parameter in parameters if is_buffer(parameter)]
    slots: list[Slot] = []
    size_bytes = dict.fromkeys(PLACES, 0)
    of_all_sets = [(number, buffer) for number in range(sets) for buffer in buffers]
    # the order of the sort is kept among equals
    for number, parameter in sorted(
        of_all_sets, key=lambda pair: pair[1].kind == "input"
    ):
        shape = shape_of(parameter, sizes)
        taken = math.prod(shape) * np.dtype(parameter.dtype).itemsize
        offset = size_bytes[parameter.place]
        slots.append(
            Slot(
                parameter.name,
                number,
                parameter.dtype,
                shape,
                parameter.place,
                offset,
                taken,
                is_read=parameter.kind != "output",
                is_written=parameter.kind != "input",
            )
        )
        end = offset + max(taken, 1)
        size_bytes[parameter.place] = -(-end // ALIGNMENT) * ALIGNMENT
    return Layout(tuple(slots), size_bytes)


def largest(*layouts: Layout) -> dict[HostPlace, int]:
    """Say how much memory of each place is enough for each of these."""
    return {
        place: max(layout.size_bytes[place] for layout in layouts) for place in PLACES
    }
