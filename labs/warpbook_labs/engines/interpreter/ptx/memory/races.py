"""Finds data races: accesses to the same memory without a happens-before order.

Each cell remembers who wrote it last and who has read it. Two threads of a block are
in order where a barrier of the block, or of their warp, lies between them; else only
where a fence and a flag say so (`causality.py`). Atomic operations don't disturb each
other, if the scope of each has the other thread in it ("morally strong" in the PTX
ISA's "Memory Consistency Model"). `volatile` is weaker here than there: two volatile
accesses do disturb each other, unless one of them waits for the other (`loops.py`),
since a kernel that leaves it at that takes the first value that comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.memory.causality import Causality

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
_NOBODY = -1
#: how strong an access is; those that are atomic for the block alone come third
WEAK, VOLATILE, ATOMIC_IN_BLOCK, ATOMIC = range(4)


@dataclass(frozen=True)
class Who:
    """The threads of one access, each with the barriers that it has passed."""

    #: which of those that run now
    lanes: NDArray[np.int64]
    thread: Ints
    #: barriers of its block, and of its warp
    block_epoch: Ints
    warp_epoch: Ints
    #: releases of its own
    time: Ints
    #: where the program is
    pc: int
    strength: int = WEAK

    def at(self, chosen: NDArray[np.int64]) -> Who:
        return Who(
            self.lanes[chosen],
            self.thread[chosen],
            self.block_epoch[chosen],
            self.warp_epoch[chosen],
            self.time[chosen],
            self.pc,
            self.strength,
        )


@dataclass(frozen=True)
class Race:
    """Two accesses without an order."""

    cell: int
    first_thread: int
    first_pc: int
    first_wrote: bool
    second_thread: int
    second_pc: int
    second_wrote: bool
    #: both are volatile, or the second has seen a flag and done no fence
    why: Literal["", "volatile", "no fence", "scope"] = ""


class _Accesses:
    """For each cell one access."""

    def __init__(self, cells: int) -> None:
        self.thread = np.full(cells, _NOBODY, np.int32)
        self.block_epoch = np.zeros(cells, np.int32)
        self.warp_epoch = np.zeros(cells, np.int32)
        self.time = np.zeros(cells, np.int32)
        self.pc = np.zeros(cells, np.int32)
        self.strength = np.zeros(cells, np.uint8)

    def forget(self) -> None:
        self.thread[:] = _NOBODY

    def note(self, cells: NDArray[np.int64], who: Who) -> None:
        self.thread[cells] = who.thread
        self.block_epoch[cells] = who.block_epoch
        self.warp_epoch[cells] = who.warp_epoch
        self.time[cells] = who.time
        self.pc[cells] = who.pc
        self.strength[cells] = who.strength


class Tracker:
    """Watches one space."""

    def __init__(self, cells: int, per_block: int, causality: Causality) -> None:
        self._per_block, self._causality = per_block, causality
        self._writes = _Accesses(cells)
        #: of each cell one reader, and one more that is another thread
        self._reads = (_Accesses(cells), _Accesses(cells))

    def forget(self) -> None:
        """Forget all: other blocks have this memory now."""
        for accesses in (self._writes, *self._reads):
            accesses.forget()

    def read(self, cells: NDArray[np.int64], who: Who) -> list[Race]:
        races = self._conflicts(self._writes, cells, who, True, False)
        first, other = self._reads
        old = first.thread[cells]
        # nobody has read it, or only in an order with this
        free = (old == _NOBODY) | (old == who.thread) | self._ordered(first, cells, who)
        if free.all():
            first.note(cells, who)
        else:
            chosen = np.flatnonzero(free)
            first.note(cells[chosen], who.at(chosen))
        more = np.flatnonzero(first.thread[cells] != who.thread)
        if len(more):
            other.note(cells[more], who.at(more))
        return races

    def write(self, cells: NDArray[np.int64], who: Who, changes: Bools) -> list[Race]:
        """Note a write; give the accesses that it races with.

        Args:
            changes: what is written differs from what was there; two threads that
                write the same do no harm.
        """
        races = self._conflicts(self._writes, cells, who, True, True, changes)
        for reads in self._reads:
            races += self._conflicts(reads, cells, who, False, True)
        self._writes.note(cells, who)
        return races

    def writers(self) -> tuple[NDArray[np.int64], Ints]:
        """Give the cells that were written, and where in the program each was last."""
        cells = np.flatnonzero(self._writes.thread != _NOBODY)
        return cells, self._writes.pc[cells]

    def note_write(self, cells: NDArray[np.int64], who: Who) -> None:
        """Take what was watched before as written now."""
        self._writes.note(cells, who)

    def _ordered(self, before: _Accesses, cells: NDArray[np.int64], who: Who) -> Bools:
        thread = before.thread[cells]
        same_block = thread // self._per_block == who.thread // self._per_block
        same_warp = thread >> 5 == who.thread >> 5
        is_ordered: Bools = same_block & (
            (before.block_epoch[cells] < who.block_epoch)
            | (same_warp & (before.warp_epoch[cells] < who.warp_epoch))
        )
        return is_ordered

    def _conflicts(
        self,
        before: _Accesses,
        cells: NDArray[np.int64],
        who: Who,
        wrote: bool,
        writes: bool,
        changes: Bools | None = None,
    ) -> list[Race]:
        thread = before.thread[cells]
        apart = (thread != _NOBODY) & (thread != who.thread)
        if changes is not None:
            apart &= changes
        if not apart.any():
            return []
        left = np.flatnonzero(apart & ~self._ordered(before, cells, who))
        if not len(left):
            return []
        mine, cells = who.at(left), cells[left]
        elsewhere = thread[left] // self._per_block != mine.thread // self._per_block
        clash = ~_both_strong(before.strength[cells], who.strength, elsewhere)
        left = np.flatnonzero(clash)
        if len(left):
            covered = self._covered(before, cells[left], mine.at(left))
            left = left[~covered]
        return [
            Race(
                int(cells[at]),
                int(before.thread[cells[at]]),
                int(before.pc[cells[at]]),
                wrote,
                int(mine.thread[at]),
                who.pc,
                writes,
                self._why(int(before.strength[cells[at]]), mine, int(at)),
            )
            for at in left[:1]
        ]

    def _covered(self, before: _Accesses, cells: NDArray[np.int64], who: Who) -> Bools:
        """Tell which accesses come before by fences, or by barriers of some."""
        keys = (before.thread, before.time, before.block_epoch, before.warp_epoch)
        of_cells = tuple(key[cells] for key in keys)
        return self._causality.covers(who.lanes, of_cells, who.strength > WEAK)

    def _why(
        self, strength: int, who: Who, at: int
    ) -> Literal["", "volatile", "no fence", "scope"]:
        if strength == who.strength == VOLATILE:
            return "volatile"
        if min(strength, who.strength) > VOLATILE:
            return "scope"
        seen = who.strength == WEAK and self._causality.is_seen(int(who.lanes[at]))
        return "no fence" if seen else ""


def _both_strong(before: NDArray[np.uint8], strength: int, elsewhere: Bools) -> Bools:
    """Tell which accesses are so strong that two of them don't disturb each other."""
    in_block = (before == ATOMIC_IN_BLOCK) | (strength == ATOMIC_IN_BLOCK)
    is_strong: Bools = (
        (before > WEAK)
        & (strength > WEAK)
        & ((before > VOLATILE) | (strength > VOLATILE))
        & ~(in_block & elsewhere)
    )
    return is_strong


def clashes_within(
    cells: NDArray[np.int64],
    values: NDArray[np.generic],
    who: Who,
    why: Literal["", "volatile", "scope"] = "",
) -> Race | None:
    """Find two threads that write different values to one cell at the same time."""
    order = np.argsort(cells, kind="stable")
    sorted_cells, sorted_values = cells[order], values[order]
    same = sorted_cells[1:] == sorted_cells[:-1]
    if not same.any():
        return None
    bits = sorted_values.view(f"u{values.itemsize}")
    differ = np.flatnonzero(same & (bits[1:] != bits[:-1]))
    if not len(differ):
        return None
    at = int(differ[0])
    return Race(
        int(sorted_cells[at]),
        int(who.thread[order[at]]),
        who.pc,
        True,
        int(who.thread[order[at + 1]]),
        who.pc,
        True,
        why,
    )
