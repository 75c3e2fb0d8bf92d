"""The GPU's memory as the referee has it; see `regions.py`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from warpbook_labs.engines.host.memory import ALIGNMENT, handle_of
from warpbook_labs.engines.host.messages import Memory, Slot
from warpbook_labs.engines.host.regions import Values, first_poisoned, wrong_words
from warpbook_labs.gpu.kernels import poison
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.gpu.tools import Found, Tools

#: what the driver gives at once: a handle is of a whole allocation
_GRAIN_BYTES = 2 << 20


class DeviceRegion:
    """Memory of the GPU, which a child opens by a handle."""

    def __init__(
        self,
        tools: Tools,
        size_bytes: int,
        pools: dict[str, Values],
        sides: Sequence[Side],
    ) -> None:
        """Take it.

        Raises:
            OSError: this system shares none.
            DriverError: there is not enough.
        """
        self._tools = tools
        device = tools.device
        self._size_bytes = -(-max(size_bytes, 1) // _GRAIN_BYTES) * _GRAIN_BYTES
        self._taken: list[int] = []
        self._shared = {side: self._take(self._size_bytes) for side in sides}
        try:
            self._handles = {
                side: handle_of(device.driver, address)
                for side, address in self._shared.items()
            }
        except OSError:
            self.close()
            raise
        self._key = secrets.randbits(32)
        #: a poisoned copy of everything, since a buffer is poisoned by copying it
        self._poison = self._take(self._size_bytes)
        tools.poison(self._poison, self._size_bytes, self._key)
        self._own: dict[Side, int] = {}
        self._inputs = 0
        self._loaded: dict[Side, list[tuple[int, int]]] = {}
        self._pools: dict[str, tuple[int, int, int]] = {}
        for name, values in pools.items():
            address = self._take(values.nbytes)
            device.upload(address, values)
            self._pools[name] = address, len(values), values.itemsize

    def memory(self, side: Side) -> Memory:
        return Memory("device", self._size_bytes, handle=self._handles[side])

    def poison(self, slot: Slot, side: Side) -> None:
        self._copy(self._shared[side], self._poison, slot)

    def write(self, slot: Slot, values: Values, side: Side) -> None:
        exact = np.ascontiguousarray(values, slot.dtype)
        self._tools.device.upload(self._shared[side] + slot.offset, exact)

    def read(self, slot: Slot, side: Side) -> Values:
        return self._download(self._shared[side], slot)

    def first_unwritten(self, slot: Slot, held: Values) -> int | None:
        was = poison(slot.size_bytes, self._key, slot.offset)
        return first_poisoned(slot, held, was)

    def own(self) -> None:
        self._inputs = self._take(self._size_bytes)
        self._own = {side: self._take(self._size_bytes) for side in self._shared}

    def fill(self, slot: Slot, pool: str, key: int) -> None:
        address, length, item = self._pools[pool]
        to, count = self._inputs + slot.offset, slot.size_bytes // item
        self._tools.fill(to, address, length, item, count, key)

    def load(self, slots: Sequence[Slot], side: Side) -> None:
        """Have inputs be what `complete` copies; nothing of them is shared before."""
        self._loaded[side] = _runs(slots)

    def complete(self, side: Side) -> None:
        """Begin to copy inputs to what is shared; `Device.wait` ends it."""
        for begin, size_bytes in self._loaded[side]:
            to, held = self._shared[side] + begin, self._inputs + begin
            self._tools.device.copy(to, held, size_bytes)

    def is_changed(self, slot: Slot, side: Side) -> bool:
        # bit by bit, of numbers too short, or else too long, to be taken for poison
        bits = "uint8" if slot.size_bytes % 8 else "uint64"
        difference = self._compared(self._shared[side], self._inputs, slot, bits, 0.0)
        return bool(difference.how_many)

    def keep(self, slots: Sequence[Slot], side: Side) -> None:
        """Begin to copy outputs, as one side left them; `Device.wait` ends it.

        They lie side by side, so it is one copy, since the clock runs meanwhile.
        """
        begin = min(slot.offset for slot in slots)
        end = max(slot.offset + slot.size_bytes for slot in slots)
        to, held = self._own[side] + begin, self._shared[side] + begin
        self._tools.device.copy(to, held, end - begin)

    def kept(self, slot: Slot, side: Side) -> Values:
        return self._download(self._own[side], slot)

    def wrong(self, slot: Slot, bound: float) -> str:
        own = self._own
        difference = self._compared(
            own["learner"], own["baseline"], slot, slot.dtype, bound
        )
        if not difference.how_many:
            return ""
        index = tuple(
            int(place) for place in np.unravel_index(difference.first, slot.shape)
        )
        return wrong_words(slot, index, difference.how_many)

    def close(self) -> None:
        while self._taken:
            self._tools.device.free(self._taken.pop())

    def _take(self, size_bytes: int) -> int:
        self._taken.append(self._tools.device.allocate(size_bytes))
        return self._taken[-1]

    def _compared(
        self, got: int, right: int, slot: Slot, dtype: str, bound: float
    ) -> Found:
        count = slot.size_bytes // np.dtype(dtype).itemsize
        at = slot.offset
        self._tools.clear()
        self._tools.compare(got, at, right + at, count, dtype, bound, self._key)
        return self._tools.outcome()

    def _copy(self, to: int, held: int, slot: Slot) -> None:
        at = slot.offset
        self._tools.device.copy(to + at, held + at, slot.size_bytes)

    def _download(self, held: int, slot: Slot) -> Values:
        device = self._tools.device
        values = device.download(held + slot.offset, slot.size_bytes)
        shaped: Values = values.view(slot.dtype).reshape(slot.shape)
        return shaped


def _runs(slots: Sequence[Slot]) -> list[tuple[int, int]]:
    """Give offset and bytes of what lies side by side, to be copied at once."""
    runs: list[tuple[int, int]] = []
    for slot in slots:
        begin, end = slot.offset, slot.offset + slot.size_bytes
        if runs and begin - sum(runs[-1]) < ALIGNMENT:
            begin = runs.pop()[0]
        runs.append((begin, end - begin))
    return runs
