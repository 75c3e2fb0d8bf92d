"""Finds accesses to the same memory that nothing puts in an order.

Each cell remembers who wrote it last and who has read it. Two threads of a block are
in order where a barrier of the block, or of their warp, lies between them; threads of
different blocks never are, unless the first has since told all (`__threadfence`).
Two atomic operations don't disturb each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
_NOBODY = -1


@dataclass(frozen=True)
class Who:
    """The threads of one access, each with the barriers that it has passed."""

    thread: Ints
    #: barriers of its block, and of its warp
    block_epoch: Ints
    warp_epoch: Ints
    #: where the program is
    pc: int
    is_atomic: bool = False

    def at(self, chosen: NDArray[np.int64]) -> Who:
        """Give some of them."""
        return Who(
            self.thread[chosen],
            self.block_epoch[chosen],
            self.warp_epoch[chosen],
            self.pc,
            self.is_atomic,
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


class _Accesses:
    """For each cell one access."""

    def __init__(self, cells: int) -> None:
        self.thread = np.full(cells, _NOBODY, np.int32)
        self.block_epoch = np.zeros(cells, np.int32)
        self.warp_epoch = np.zeros(cells, np.int32)
        self.fences = np.zeros(cells, np.int32)
        self.pc = np.zeros(cells, np.int32)
        self.is_atomic = np.zeros(cells, np.bool_)

    def forget(self) -> None:
        self.thread[:] = _NOBODY

    def note(self, cells: NDArray[np.int64], who: Who, fences: Ints) -> None:
        self.thread[cells] = who.thread
        self.block_epoch[cells] = who.block_epoch
        self.warp_epoch[cells] = who.warp_epoch
        self.fences[cells] = fences
        self.pc[cells] = who.pc
        self.is_atomic[cells] = who.is_atomic


class Tracker:
    """Watches one space."""

    def __init__(self, cells: int, per_block: int, blocks: int) -> None:
        """Take the number of cells, of lanes in a block, and of blocks in the grid."""
        self._per_block = per_block
        self._writes = _Accesses(cells)
        #: of each cell one reader, and one more that is another thread
        self._reads = (_Accesses(cells), _Accesses(cells))
        #: by block of the grid: how often it has told all what it wrote
        self.fences = np.zeros(blocks, np.int32)

    def forget(self) -> None:
        """Forget all: other blocks have this memory now."""
        for each in (self._writes, *self._reads):
            each.forget()

    def read(self, cells: NDArray[np.int64], who: Who) -> list[Race]:
        """Note a read; give the writes that it races with."""
        races = self._conflicts(self._writes, cells, who, True, False)
        fences = self._fences_of(who)
        first, other = self._reads
        old = first.thread[cells]
        # nobody has read it, or only in an order with this
        free = (old == _NOBODY) | (old == who.thread) | self._ordered(first, cells, who)
        if free.all():
            first.note(cells, who, fences)
        else:
            chosen = np.flatnonzero(free)
            first.note(cells[chosen], who.at(chosen), fences[chosen])
        more = np.flatnonzero(first.thread[cells] != who.thread)
        if len(more):
            other.note(cells[more], who.at(more), fences[more])
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
        self._writes.note(cells, who, self._fences_of(who))
        return races

    def _fences_of(self, who: Who) -> Ints:
        found: Ints = self.fences[who.thread // self._per_block]
        return found

    def _ordered(self, before: _Accesses, cells: NDArray[np.int64], who: Who) -> Bools:
        thread = before.thread[cells]
        same_block = thread // self._per_block == who.thread // self._per_block
        same_warp = thread >> 5 == who.thread >> 5
        found: Bools = same_block & (
            (before.block_epoch[cells] < who.block_epoch)
            | (same_warp & (before.warp_epoch[cells] < who.warp_epoch))
        )
        return found

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
        chosen = np.flatnonzero(apart)
        if not len(chosen):
            return []
        mine, cells = who.at(chosen), cells[chosen]
        clash = ~self._ordered(before, cells, mine)
        if who.is_atomic:
            clash &= ~before.is_atomic[cells]
        other_block = before.thread[cells] // self._per_block
        elsewhere = other_block != mine.thread // self._per_block
        clash &= ~(elsewhere & (self.fences[other_block] > before.fences[cells]))
        return [
            Race(
                int(cells[at]),
                int(before.thread[cells[at]]),
                int(before.pc[cells[at]]),
                wrote,
                int(mine.thread[at]),
                who.pc,
                writes,
            )
            for at in np.flatnonzero(clash)[:1]
        ]


def clashes_within(
    cells: NDArray[np.int64], values: NDArray[np.generic], who: Who
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
    )
