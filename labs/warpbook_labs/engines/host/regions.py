"""Memory of one place as the referee has it: what is shared, and what only it sees.

Of the host here, of the GPU in `device_region.py`. Each side shares memory of its own,
so that neither sees when it is the other's turn. Each region has the inputs once more,
where no child can write them, and keeps what each side left in the outputs.

Elements of inputs in the host's memory that a child gets only when its clock runs.

A stream can wait for memory to change, and so begin when inputs are copied there,
before the child is told to. What it reads then is wrong at places that nobody knows,
others in each unit; to find them takes reading everything again.

Gigabytes of the host's memory copied and compared, by several threads.

One thread moved 6 GB/s where a unit's inputs are 1.3 GB, which was most of a grading.
"""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases.comparison import first_wrong
from warpbook_labs.engines.host.memory import Mapped
from warpbook_labs.engines.host.messages import Memory, Slot
from warpbook_labs.gpu.kernels import chunk_of, filled, poison
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.lab.host_spec import HostPlace

T = TypeVar("T")
Bytes = NDArray[np.uint8]

#: of a thread at once: shorter ones wait for each other's Python
PART_BYTES = 4 << 20
#: more are not faster than memory is
_MOST_THREADS = 8

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t


def in_parts(
    size_bytes: int, do: Callable[[slice], T], part_bytes: int = PART_BYTES
) -> list[T]:
    """Do something with each part of so many bytes, several at once."""
    begins = range(0, size_bytes, part_bytes)
    parts = [slice(begin, min(begin + part_bytes, size_bytes)) for begin in begins]
    if len(parts) < 2:
        return [do(part) for part in parts]
    return list(_threads().map(do, parts))


def copy(to: Bytes, held: Bytes) -> None:
    """Copy bytes to where as many lie."""

    def copy_part(part: slice) -> None:
        to[part] = held[part]

    in_parts(len(held), copy_part)


def is_same(one: Bytes, other: Bytes) -> bool:

    def is_other(part: slice) -> Any:
        left, right = one[part], other[part]
        # four times as fast as NumPy
        return _memcmp(left.ctypes.data, right.ctypes.data, len(left))

    return not any(in_parts(len(one), is_other))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(_MOST_THREADS, len(os.sched_getaffinity(0))))


#: of all inputs in one place by about, and of each buffer of them
_ALL, _LEAST = 256, 8


class Late(NamedTuple):
    """Bytes that come late, by their offsets in the memory of a place."""

    #: (bytes,): where, each once
    places: NDArray[np.int64]
    #: (bytes,): whose values lie there until then, those of other elements
    others: NDArray[np.int64]

    @classmethod
    def drawn(cls, inputs: Sequence[Slot]) -> Late:
        rng = np.random.default_rng(secrets.randbits(64))
        pieces = [np.empty((2, 0), np.int64)]
        for slot in inputs:
            item = np.dtype(slot.dtype).itemsize
            of = slot.size_bytes // item
            count = min(of, max(_LEAST, _ALL // len(inputs)))
            late = rng.choice(of, count, replace=False, shuffle=False)
            drawn = np.stack([late, rng.integers(0, max(of, 1), count)])
            whole = slot.offset + item * drawn[:, :, np.newaxis] + np.arange(item)
            pieces.append(whole.reshape(2, -1))
        places, others = np.concatenate(pieces, axis=1)
        return cls(places, others)


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
        held = self._shared[side]
        return Memory(self._place, held.size_bytes, held.descriptor)

    def poison(self, slot: Slot, side: Side) -> None:
        part = _part(slot)
        copy(self._shared[side].bytes[part], self._poison[part])

    def write(self, slot: Slot, values: Values, side: Side) -> None:
        exact = np.ascontiguousarray(values, slot.dtype)
        self._shared[side].bytes[_part(slot)] = exact.reshape(-1).view(np.uint8)

    def read(self, slot: Slot, side: Side) -> Values:
        return _shaped(slot, self._shared[side].bytes[_part(slot)].copy())

    def first_unwritten(self, slot: Slot, held: Values) -> int | None:
        return first_poisoned(slot, held, self._poison[_part(slot)])

    def own(self) -> None:
        self._inputs = np.empty(self._size_bytes, np.uint8)
        self._own = {
            side: np.empty(self._size_bytes, np.uint8) for side in self._shared
        }

    def close(self) -> None:
        for held in self._shared.values():
            os.close(held.descriptor)
        self._shared.clear()

    def fill(self, slot: Slot, pool: str, key: int) -> None:
        values, to = self._pools[pool], self._inputs[_part(slot)]
        chunk_bytes = chunk_of(len(values))[0] * values.itemsize

        def fill_part(part: slice) -> None:
            count = (part.stop - part.start) // values.itemsize
            first = part.start // chunk_bytes
            to[part] = filled(values, count, key, first).view(np.uint8)

        whole_chunks = -(-PART_BYTES // chunk_bytes) * chunk_bytes
        in_parts(slot.size_bytes, fill_part, whole_chunks)

    def load(self, slots: Sequence[Slot], side: Side) -> None:
        """Copy inputs to what is shared, but for what comes late."""
        late = self._late[side] = Late.drawn(slots)
        inputs, shared = self._inputs, self._shared[side].bytes
        right = inputs[late.places]
        # before it is copied, or a stream could be faster
        inputs[late.places] = inputs[late.others]
        for slot in slots:
            copy(shared[_part(slot)], inputs[_part(slot)])
        inputs[late.places] = right

    def complete(self, side: Side) -> None:
        places = self._late[side].places
        self._shared[side].bytes[places] = self._inputs[places]

    def is_changed(self, slot: Slot, side: Side) -> bool:
        part = _part(slot)
        return not is_same(self._shared[side].bytes[part], self._inputs[part])

    def keep(self, slots: Sequence[Slot], side: Side) -> None:
        for slot in slots:
            part = _part(slot)
            copy(self._own[side][part], self._shared[side].bytes[part])

    def kept(self, slot: Slot, side: Side) -> Values:
        return _shaped(slot, self._own[side][_part(slot)])

    def wrong(self, slot: Slot, bound: float) -> str:
        part = _part(slot)
        held, was = self._own["learner"][part], self._own["baseline"][part]
        unwritten = self.first_unwritten(slot, held)
        if unwritten is None and is_same(held, was):
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

    poisoned = in_parts(len(now), first)
    return next((place for place in poisoned if place is not None), None)


def _part(slot: Slot) -> slice:
    return slice(slot.offset, slot.offset + slot.size_bytes)


def _shaped(slot: Slot, held: NDArray[np.uint8]) -> Values:
    shaped: Values = held.view(slot.dtype).reshape(slot.shape)
    return shaped
