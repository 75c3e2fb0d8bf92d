"""What a thread knows to have happened, beyond what barriers of whole blocks tell.

A clock names accesses that come before all that its holder does from now on: of a
thread those before its n-th fence, of a block or a warp those before its n-th barrier.
It is the vector clock of Lamport's happened-before, kept sparse, and joined only when
somebody asks: a counter that thousands of blocks add to would else cost their square.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: kinds of keys; the number of a thread, a block or a warp is in the lower bits
THREAD, BLOCK, WARP_OF = 0, 1 << 40, 2 << 40
_NO_KEYS: Keys = np.zeros(0, np.int64)


@dataclass(eq=False)
class Clock:
    """Accesses that come before, as own entries and those of other clocks."""

    keys: Keys = field(default_factory=lambda: _NO_KEYS)
    counts: Counts = field(default_factory=lambda: _NO_KEYS)
    parents: tuple[Clock, ...] = ()

    def knows(self, keys: Keys, counts: Counts) -> Bools:
        """Tell which accesses come before, each of a key, at a count of it."""
        self._resolve()
        if not len(self.keys):
            return np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_known: Bools = (self.keys[at] == keys) & (self.counts[at] > counts)
        return is_known

    def _resolve(self) -> None:
        """Join the parents' entries into own ones; a chain may be very long."""
        if not self.parents:
            return
        pending, seen, keys, counts = [self], {id(self)}, [], []
        while pending:
            clock = pending.pop()
            keys.append(clock.keys)
            counts.append(clock.counts)
            for parent in clock.parents:
                if id(parent) not in seen:
                    seen.add(id(parent))
                    pending.append(parent)
        every, number = np.concatenate(keys), np.concatenate(counts)
        order = np.lexsort((number, every))
        every, number = every[order], number[order]
        last = np.ones(len(every), np.bool_)
        last[:-1] = every[1:] != every[:-1]
        # the largest count of each key
        self.keys, self.counts, self.parents = every[last], number[last], ()


def joined(clocks: Iterable[Clock | None]) -> Clock | None:
    """Give what any of these clocks knows; None if they know nothing."""
    distinct = {id(clock): clock for clock in clocks if clock is not None}
    if len(distinct) < 2:
        return next(iter(distinct.values()), None)
    return Clock(parents=tuple(distinct.values()))
