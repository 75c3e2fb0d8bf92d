"""Memory of one place as the referee has it: what is shared, and what only it sees.

Of the host here, of the GPU in `device_region.py`. Each side shares memory of its own,
so that neither sees when it is the other's turn. Each region has the inputs once more,
where no child can write them, and keeps what each side left in the outputs.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases.comparison import first_wrong
from warpbook_labs.engines.host import bulk
from warpbook_labs.engines.host.late_inputs import Late
from warpbook_labs.engines.host.memory import Mapped
from warpbook_labs.engines.host.messages import Memory, Slot
from warpbook_labs.gpu.kernels import chunk_of, filled, poison
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.lab.host_spec import HostPlace

Values = NDArray[Any]

#: made anew, and then repeated
_POISON_BYTES = 8 << 20

#: of one side's memory at once, before the other's
_TOUCHED_BYTES = 2 << 20


class Region(Protocol):
    """What the referee does with memory of a place."""

    def memory(self, side: Side) -> Memory:
        """Tell how a child opens what it shares."""

    def poison(self, slot: Slot, side: Side) -> None:
        """Have a buffer hold what is no result."""

    def write(self, slot: Slot, values: Values, side: Side) -> None:
        """Put values into what is shared."""

    def read(self, slot: Slot, side: Side) -> Values:
        """Give what is in what is shared."""

    def first_unwritten(self, slot: Slot, held: Values) -> int | None:
        """Give the first byte of `held` that is still as it was poisoned."""

    def own(self) -> None:
        """Take memory that no child sees, for what follows."""

    def close(self) -> None:
        """Give all memory back; no child may have it open."""

    def fill(self, slot: Slot, pool: str, key: int) -> None:
        """Put an input together from a pool, where no child sees it."""

    def load(self, slots: Sequence[Slot], side: Side) -> None:
        """Make inputs ready, so that `complete` has little to do."""

    def complete(self, side: Side) -> None:
        """Have all inputs in what is shared, when the clock runs."""

    def is_changed(self, slot: Slot, side: Side) -> bool:
        """Tell whether what is shared is no longer as it was loaded."""

    def keep(self, slots: Sequence[Slot], side: Side) -> None:
        """Copy outputs from what is shared, as one side left them."""

    def kept(self, slot: Slot, side: Side) -> Values:
        """Give such a copy."""

    def wrong(self, slot: Slot, bound: float) -> str:
        """Compare what both sides left; say in words what is wrong."""


class HostRegion:
    """Memory of the host."""

    def __init__(
        self,
        place: HostPlace,
        size_bytes: int,
        pools: dict[str, Values],
        sides: Sequence[Side],
    ) -> None:
        """Take it."""
        self._place, self._pools = place, pools
        self._shared = {side: Mapped.new(size_bytes) for side in sides}
        for begin in range(0, size_bytes, _TOUCHED_BYTES):
            # who touches a page first decides near which CPU it lies, and so
            # each side has as many there as the other
            for held in self._shared.values():
                held.bytes[begin : begin + _TOUCHED_BYTES] = 0
        self._late: dict[Side, Late] = {}
        self._size_bytes = size_bytes
        # one for all: whoever knows it has still computed nothing
        some = poison(min(size_bytes, _POISON_BYTES), secrets.randbits(32))
        self._poison = np.resize(some, size_bytes)
        self._own: dict[Side, NDArray[np.uint8]] = {}
        self._inputs: NDArray[np.uint8] = np.empty(0, np.uint8)

    def memory(self, side: Side) -> Memory:
        """Tell how a child opens what it shares."""
        held = self._shared[side]
        return Memory(self._place, held.size_bytes, held.descriptor)

    def poison(self, slot: Slot, side: Side) -> None:
        """Have a buffer hold what is no result."""
        part = _part(slot)
        bulk.copy(self._shared[side].bytes[part], self._poison[part])

    def write(self, slot: Slot, values: Values, side: Side) -> None:
        """Put values into what is shared."""
        exact = np.ascontiguousarray(values, slot.dtype)
        self._shared[side].bytes[_part(slot)] = exact.reshape(-1).view(np.uint8)

    def read(self, slot: Slot, side: Side) -> Values:
        """Give what is in what is shared."""
        return _shaped(slot, self._shared[side].bytes[_part(slot)].copy())

    def first_unwritten(self, slot: Slot, held: Values) -> int | None:
        """Give the first byte of `held` that is still as it was poisoned."""
        return first_poisoned(slot, held, self._poison[_part(slot)])

    def own(self) -> None:
        """Take memory that no child sees, for what follows."""
        self._inputs = np.empty(self._size_bytes, np.uint8)
        self._own = {
            side: np.empty(self._size_bytes, np.uint8) for side in self._shared
        }

    def close(self) -> None:
        """Give all memory back; no child may have it open."""
        for held in self._shared.values():
            os.close(held.descriptor)
        self._shared.clear()

    def fill(self, slot: Slot, pool: str, key: int) -> None:
        """Put an input together from a pool, where no child sees it."""
        values, to = self._pools[pool], self._inputs[_part(slot)]
        chunk_bytes = chunk_of(len(values))[0] * values.itemsize

        def fill_part(part: slice) -> None:
            count = (part.stop - part.start) // values.itemsize
            first = part.start // chunk_bytes
            to[part] = filled(values, count, key, first).view(np.uint8)

        whole_chunks = -(-bulk.PART_BYTES // chunk_bytes) * chunk_bytes
        bulk.in_parts(slot.size_bytes, fill_part, whole_chunks)

    def load(self, slots: Sequence[Slot], side: Side) -> None:
        """Copy inputs to what is shared, but for what comes late."""
        late = self._late[side] = Late.drawn(slots)
        inputs, shared = self._inputs, self._shared[side].bytes
        right = inputs[late.places]
        # before it is copied, or a stream could be faster
        inputs[late.places] = inputs[late.others]
        for slot in slots:
            bulk.copy(shared[_part(slot)], inputs[_part(slot)])
        inputs[late.places] = right

    def complete(self, side: Side) -> None:
        """Put there what comes late."""
        places = self._late[side].places
        self._shared[side].bytes[places] = self._inputs[places]

    def is_changed(self, slot: Slot, side: Side) -> bool:
        """Tell whether what is shared is no longer as it was loaded."""
        part = _part(slot)
        return not bulk.is_same(self._shared[side].bytes[part], self._inputs[part])

    def keep(self, slots: Sequence[Slot], side: Side) -> None:
        """Copy outputs from what is shared, as one side left them."""
        for slot in slots:
            part = _part(slot)
            bulk.copy(self._own[side][part], self._shared[side].bytes[part])

    def kept(self, slot: Slot, side: Side) -> Values:
        """Give such a copy."""
        return _shaped(slot, self._own[side][_part(slot)])

    def wrong(self, slot: Slot, bound: float) -> str:
        """Compare what both sides left; say in words what is wrong."""
        part = _part(slot)
        held, was = self._own["learner"][part], self._own["baseline"][part]
        unwritten = self.first_unwritten(slot, held)
        if unwritten is None and bulk.is_same(held, was):
            return ""
        got, right = _shaped(slot, held), _shaped(slot, was)
        first = first_wrong(slot.name, got, right, bound, unwritten)
        if first is None:
            return ""
        # it is left out only where a hidden case is told
        assert first.wrong is not None
        return wrong_words(slot, first.index, first.wrong)

    def drawn(self, places: NDArray[np.int64], side: Side) -> NDArray[np.uint8]:
        """Give the bytes at some places of what is shared, as they are now."""
        return self._shared[side].bytes[places]

    def kept_at(self, places: NDArray[np.int64], side: Side) -> NDArray[np.uint8]:
        """Give the bytes at some places, as they were kept."""
        return self._own[side][places]


def wrong_words(slot: Slot, index: tuple[int, ...], wrong: int) -> str:
    """Say what is wrong in a timed call."""
    place = ", ".join(map(str, index))
    count = slot.size_bytes // np.dtype(slot.dtype).itemsize
    return (
        f"{slot.name}[{place}] is wrong in a timed call, and {wrong:,} of {count:,} "
        "elements are."
    )


def first_poisoned(slot: Slot, held: Values, was: NDArray[np.uint8]) -> int | None:
    """Find the first element that is still poison, as the byte where it begins."""
    dtype = np.dtype(slot.dtype)
    if dtype.itemsize < 4 and dtype.kind != "f":
        # so small a number may be right by chance
        return None
    bits = f"u{dtype.itemsize}"
    now = held.reshape(-1).view(np.uint8)

    def first(part: slice) -> int | None:
        same = now[part].view(bits) == was[part].view(bits)
        # most often there is none, which is told faster than where the first is
        if not same.any():
            return None
        place: int = part.start + int(same.argmax()) * dtype.itemsize
        return place

    poisoned = bulk.in_parts(len(now), first)
    return next((place for place in poisoned if place is not None), None)


def _part(slot: Slot) -> slice:
    return slice(slot.offset, slot.offset + slot.size_bytes)


def _shaped(slot: Slot, held: NDArray[np.uint8]) -> Values:
    shaped: Values = held.view(slot.dtype).reshape(slot.shape)
    return shaped
