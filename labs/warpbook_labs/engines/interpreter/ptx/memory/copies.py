"""Copies that their threads have not waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass
class Batch:
    """Copies of one instruction that have begun."""

    lanes: Ints
    #: of each: which group of its thread's
    groups: Ints
    #: of each: the bytes of shared memory where it begins
    at: Ints
    size_bytes: int
    pc: int


class Early(NamedTuple):
    """Of an access: which of its places meets what copy too early."""

    number: int
    copier: int
    pc: int


class Copies:
    """The copies of the threads that run now."""

    def __init__(self, lanes: int) -> None:
        #: of each lane: groups that it has closed
        self._closed: Ints = np.zeros(lanes, np.int64)
        self._pending: list[Batch] = []

    def begin(self, lanes: Ints, at: Ints, size_bytes: int, pc: int) -> None:
        groups = self._closed[lanes].copy()
        self._pending.append(Batch(lanes, groups, at, size_bytes, pc))

    def close(self, lanes: Ints) -> None:
        """Make a group of what these threads have begun."""
        self._closed[lanes] += 1

    def wait(self, lanes: Ints, left: int) -> list[Batch]:
        """Have threads wait for all but their last groups; give what arrived."""
        waits = np.zeros(len(self._closed), np.bool_)
        waits[lanes] = True
        kept: list[Batch] = []
        arrived: list[Batch] = []
        for batch in self._pending:
            done = waits[batch.lanes]
            done &= batch.groups < self._closed[batch.lanes] - left
            for chosen, to in ((done, arrived), (~done, kept)):
                if chosen.any():
                    to.append(
                        Batch(
                            batch.lanes[chosen],
                            batch.groups[chosen],
                            batch.at[chosen],
                            batch.size_bytes,
                            batch.pc,
                        )
                    )
        self._pending = kept
        return arrived

    def forget(self) -> None:
        self._closed[:] = 0
        self._pending = []

    def meets(self, at: Ints, width: int) -> Early | None:
        """Find an access to where something is being copied.

        Args:
            at: bytes of shared memory where accesses begin.
            width: bytes of each.
        """
        for batch in self._pending:
            order = np.argsort(batch.at)
            nearest = np.searchsorted(batch.at[order], at + width) - 1
            near = order[np.maximum(nearest, 0)]
            early = (nearest >= 0) & (batch.at[near] + batch.size_bytes > at)
            early &= batch.at[near] < at + width
            if early.any():
                number = int(np.flatnonzero(early)[0])
                return Early(number, int(batch.lanes[near[number]]), batch.pc)
        return None
