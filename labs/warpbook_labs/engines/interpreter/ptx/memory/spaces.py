"""Memory: where it is, what is in it, and whether anybody has written it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.text.errors import BadLaunch, TooLarge

#: addresses are far from each other's space, and beyond 32 bits, so that an address
#: that was cut off or made up is nobody's
GLOBAL_BASE = 0x7_0000_0000
SHARED_WINDOW = 0x1_0000_0000
LOCAL_WINDOW = 0x2_0000_0000
WINDOW_BYTES = 0x1_0000_0000
#: between buffers; who goes beyond the end of one meets nobody's memory
_RED_ZONE_BYTES = 1024
_ALIGNMENT_BYTES = 256
#: more than an exercise needs, and less than a machine has
MAX_GLOBAL_BYTES = 1 << 30

RED, EMPTY, WRITTEN = np.uint8(0), np.uint8(1), np.uint8(2)
Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Buffer:
    """Global memory with a name."""

    name: str
    address: int
    size_bytes: int


def whole(size_bytes: int) -> int:
    """Round up to pieces of 16 bytes."""
    return -(-size_bytes // 16) * 16


class Space:
    """Bytes, each of which is nobody's, empty or written."""

    def __init__(self, size_bytes: int, state: np.uint8) -> None:
        room = whole(max(size_bytes, 1))
        self.data: Bytes = np.zeros(room, np.uint8)
        self.state: Bytes = np.full(room, RED, np.uint8)
        self.state[:size_bytes] = state

    def copy(self) -> Space:
        """Give the same bytes apart."""
        copied = Space(0, RED)
        copied.data, copied.state = self.data.copy(), self.state.copy()
        return copied

    def put_back(self, other: Space) -> None:
        self.data[:], self.state[:] = other.data, other.state

    def equals(self, other: Space) -> bool:
        return np.array_equal(self.data, other.data) and np.array_equal(
            self.state, other.state
        )

    def read(self, at: Offsets, dtype: np.dtype[Any]) -> NDArray[Any]:
        values: NDArray[Any] = self.data.view(dtype)[at // dtype.itemsize]
        return values

    def write(self, at: Offsets, values: NDArray[Any]) -> None:
        """Write; of several values for one place the last stays."""
        self.data.view(values.dtype)[at // values.itemsize] = values
        width = values.itemsize
        self.state.view(f"u{width}")[at // width] = int.from_bytes(
            bytes([int(WRITTEN)] * width), "little"
        )

    def is_anyones(self, at: Offsets, width: int) -> NDArray[np.bool_]:
        inside = (at >= 0) & (at <= len(self.state) - width)
        safe = np.where(inside, at, 0)
        is_inside: NDArray[np.bool_] = (
            inside & (self.state[safe] != RED) & (self.state[safe + width - 1] != RED)
        )
        return is_inside

    def is_written(self, at: Offsets, width: int) -> NDArray[np.bool_]:
        """Tell which offsets somebody has written, all of their bytes."""
        whole = int.from_bytes(bytes([int(WRITTEN)] * width), "little")
        is_whole: NDArray[np.bool_] = self.state.view(f"u{width}")[at // width] == whole
        return is_whole


def _slice(buffer: Buffer) -> slice:
    begin = buffer.address - GLOBAL_BASE
    return slice(begin, begin + buffer.size_bytes)


class Memory:
    """The global memory of a launch: buffers with nobody's memory between them."""

    def __init__(self) -> None:
        """Start with none."""
        self._buffers: list[Buffer] = []
        self._contents: list[NDArray[Any] | None] = []
        self._end = GLOBAL_BASE
        self._space: Space | None = None

    def put(self, name: str, values: NDArray[Any], off_bytes: int = 0) -> Buffer:
        return self._add(name, values.nbytes, values.copy(), off_bytes)

    def empty(self, name: str, size_bytes: int, off_bytes: int = 0) -> Buffer:
        return self._add(name, size_bytes, None, off_bytes)

    def _add(
        self, name: str, size_bytes: int, values: NDArray[Any] | None, off_bytes: int
    ) -> Buffer:
        if self._space is not None:
            raise BadLaunch("The memory is in use: add buffers before the first run.")
        address = self._end + _RED_ZONE_BYTES + off_bytes
        buffer = Buffer(name, address, size_bytes)
        self._end = -(-(address + size_bytes) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        if self._end - GLOBAL_BASE > MAX_GLOBAL_BYTES:
            raise TooLarge(
                f"The buffers take more than {MAX_GLOBAL_BYTES >> 20:,} MiB: too much "
                "to run without a GPU."
            )
        self._buffers.append(buffer)
        self._contents.append(values)
        return buffer

    @property
    def end(self) -> int:
        return self._end

    @property
    def buffers(self) -> list[Buffer]:
        return list(self._buffers)

    @property
    def space(self) -> Space:
        """Give the bytes, which begin at `GLOBAL_BASE`."""
        if self._space is None:
            space = Space(self._end - GLOBAL_BASE + _RED_ZONE_BYTES, RED)
            self._space = space
            self.put_back(self._buffers)
        return self._space

    def put_back(self, buffers: Iterable[Buffer]) -> None:
        space, wanted = self.space, {buffer.address for buffer in buffers}
        for buffer, values in zip(self._buffers, self._contents, strict=True):
            if buffer.address not in wanted:
                continue
            here = _slice(buffer)
            space.state[here] = EMPTY if values is None else WRITTEN
            if values is not None:
                space.data[here] = np.frombuffer(values.tobytes(), np.uint8)

    def is_as_at_first(self, buffers: Iterable[Buffer]) -> bool:
        """Tell whether these buffers, which held values at first, still do."""
        wanted = {buffer.address for buffer in buffers}
        return all(
            np.array_equal(
                self.space.data[_slice(buffer)], np.frombuffer(values.tobytes(), "u1")
            )
            for buffer, values in zip(self._buffers, self._contents, strict=True)
            if buffer.address in wanted and values is not None
        )

    def read(self, buffer: Buffer, dtype: Any) -> NDArray[Any]:
        """Give what a buffer holds now."""
        begin = buffer.address - GLOBAL_BASE
        return self.space.data[begin : begin + buffer.size_bytes].view(dtype).copy()

    def first_unwritten(self, buffer: Buffer) -> int | None:
        begin = buffer.address - GLOBAL_BASE
        empty = self.space.state[begin : begin + buffer.size_bytes] != WRITTEN
        return int(np.argmax(empty)) if empty.any() else None

    def place(self, address: int) -> str:
        """Say in words where an address is."""
        nearest: tuple[int, str] | None = None
        for buffer in self._buffers:
            end = buffer.address + buffer.size_bytes
            if buffer.address <= address < end:
                return f"byte {address - buffer.address:,} of `{buffer.name}`"
            if address >= end:
                distance = (address - end, f"{address - end:,} bytes past the end of")
            else:
                before = buffer.address - address
                distance = (before, f"{before:,} bytes before the start of")
            if nearest is None or distance[0] < nearest[0]:
                words = f"{distance[1]} `{buffer.name}` ({buffer.size_bytes:,} bytes)"
                nearest = (distance[0], words)
        if nearest is None or nearest[0] > MAX_GLOBAL_BYTES:
            return f"at address {address:#x}, where there is nothing"
        return nearest[1]
