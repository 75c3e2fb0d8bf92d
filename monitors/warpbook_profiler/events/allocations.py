"""What torch's allocator took and gave back, as its profiler saw it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpbook_profiler.events.columns import Int64s


@dataclass(frozen=True)
class Allocations:
    """Each change of one GPU's memory in order; times are Unix time in ns."""

    device: int
    at_ns: Int64s
    #: negative where it was freed
    change_bytes: Int64s
    #: after the change
    allocated_bytes: Int64s
    reserved_bytes: Int64s
    #: around the change that led to the most, the outermost operator first
    peak_path: tuple[str, ...] = ()

    @property
    def peak(self) -> int:
        """Give the row with the most allocated."""
        return int(self.allocated_bytes.argmax())

    @property
    def most_bytes(self) -> int:
        """Give what was allocated at the peak."""
        return int(self.allocated_bytes[self.peak])


def read_allocations(tree: Iterable[Any], without: str = "") -> tuple[Allocations, ...]:
    """Find the GPUs' allocations in the profiler's tree of events.

    Only there torch tells how much was allocated and reserved in all. Of a GPU it has
    only those with an event around them.

    Args:
        tree: its roots.
        without: an event that no path names.
    """
    by_device: dict[int, list[Any]] = {}
    left = list(tree)
    while left:
        event = left.pop()
        left += event.children
        if event.tag.name == "Allocation":
            device = event.typed[1].device
            if device.type == "cuda":
                by_device.setdefault(device.index, []).append(event)
    return tuple(
        _of_one(device, by_device[device], without) for device in sorted(by_device)
    )


def _of_one(device: int, events: list[Any], without: str) -> Allocations:
    events.sort(key=lambda event: event.start_time_ns)
    allocations = [event.typed[1] for event in events]

    def column(values: Iterable[int]) -> Int64s:
        return np.fromiter(values, np.int64, len(events))

    allocated = column(allocation.total_allocated for allocation in allocations)
    return Allocations(
        device,
        column(event.start_time_ns for event in events),
        column(allocation.alloc_size for allocation in allocations),
        allocated,
        column(allocation.total_reserved for allocation in allocations),
        tuple(
            name for name in _path(events[int(allocated.argmax())]) if name != without
        ),
    )


def _path(event: Any) -> tuple[str, ...]:
    names: list[str] = []
    while (event := event.parent) is not None:
        names.append(event.name)
    return tuple(reversed(names))
