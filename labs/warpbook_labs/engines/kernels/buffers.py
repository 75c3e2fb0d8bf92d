"""Memory for one case: buffers with red zones around them, and poison in all of it."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from warpbook_labs.cases import execution
from warpbook_labs.gpu.tools import Tools

_ALIGNMENT = 256
#: between two buffers, and a random length more, so that none can guess another's place
_ZONE_BYTES = 64 << 10
_MORE_ZONES = 256
#: what the driver gives at once: no byte of it is left unwatched
_GRAIN_BYTES = 2 << 20


class Place(NamedTuple):
    """Where a buffer lies, in bytes from the arena's begin."""

    begin: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.begin + self.size_bytes


class Arena:
    """All memory that the kernels of one case are given."""

    def __init__(
        self,
        tools: Tools,
        memory: Sequence[execution.Memory],
        off_by: dict[str, int] | None = None,
    ) -> None:
        """Take it from the GPU.

        Args:
            off_by: bytes by which a buffer misses its alignment, by name.
        """
        self._tools = tools
        rng = random.Random(secrets.randbits(64))
        self.places, at = {}, 0
        for buffer in rng.sample(list(memory), len(memory)):
            at += _ZONE_BYTES + rng.randrange(_MORE_ZONES) * _ALIGNMENT
            at = -(-at // _ALIGNMENT) * _ALIGNMENT
            begin = at + (off_by or {}).get(buffer.name, 0)
            self.places[buffer.name] = Place(begin, buffer.size_bytes)
            at = begin + buffer.size_bytes
        self.size_bytes = -(-(at + _ZONE_BYTES) // _GRAIN_BYTES) * _GRAIN_BYTES
        self.base = tools.device.allocate(self.size_bytes)
        self.key = 0

    @property
    def addresses(self) -> dict[str, int]:
        return {name: self.base + place.begin for name, place in self.places.items()}

    def renew(self) -> None:
        """Poison all of it, with other values than before."""
        self.key = secrets.randbits(32)
        self._tools.poison(self.base, self.size_bytes, self.key)

    def stray(self) -> str:
        """Tell in words what was written beside the buffers; empty if nothing was."""
        in_order = sorted(self.places.items(), key=lambda pair: pair[1].begin)
        self._tools.clear()
        begin = 0
        for _, place in in_order:
            self._tools.untouched(self.base, begin, place.begin, self.key)
            begin = place.end
        self._tools.untouched(self.base, begin, self.size_bytes, self.key)
        outside = self._tools.outcome()
        if not outside.how_many:
            return ""
        before = [
            (name, place) for name, place in in_order if place.end <= outside.first
        ]
        behind = [
            (name, place) for name, place in in_order if place.begin > outside.first
        ]
        near = []
        if before:
            name, place = before[-1]
            near.append((outside.first - place.end, f"behind `{name}`"))
        if behind:
            name, place = behind[0]
            near.append((place.begin - outside.first, f"before `{name}`"))
        far, where = min(near)
        return (
            f"It writes beside its buffers: {outside.how_many:,} bytes, of which the "
            f"first is {far + ('behind' in where):,} bytes {where}."
        )

    def free(self) -> None:
        self._tools.device.free(self.base)
