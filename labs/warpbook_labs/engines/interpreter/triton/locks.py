"""Locks and counters of Triton's programs: what they put in order is no race.

Triton's interpreter runs one program after another, so which comes first there says
nothing. A lock does not either, but only one program is behind it at a time: whichever
takes it first. It is taken where `tl.atomic_cas` finds it free, and given back where
`tl.atomic_xchg` makes it so, for which all threads of the program must be done: behind
`tl.debug_barrier()`. Of a counter a program learns by `tl.atomic_add` who came before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: of a byte, under which lock it was touched: 1 and the lock's place; 0 is under none
Under = NDArray[np.int64]
Cells = NDArray[np.int64]


class Counters:
    """Where programs add one, and see what those did who came before them.

    What a program does between two barriers has a number, and later numbers are larger.
    """

    def __init__(self) -> None:
        #: by place, where each program's numbers begin, and end at its last barrier
        self._came: dict[int, tuple[list[int], list[int]]] = {}
        #: places to which the program that runs now has come
        self._seen: set[int] = set()

    def runs(self) -> None:
        """Say that another program runs."""
        self._seen.clear()

    def come(self, place: int, first: int, number: int) -> None:
        """Say that the program has come: it has done what is from first to number."""
        begins, ends = self._came.setdefault(place, ([], []))
        begins.append(first)
        ends.append(number)
        self._seen.add(place)

    def ordered(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell what was done before the program that runs now came to a counter."""
        known = np.zeros(len(numbers), np.bool_)
        for place in self._seen:
            begins, ends = (np.asarray(side) for side in self._came[place])
            at = np.searchsorted(begins, numbers, "right") - 1
            known |= (at >= 0) & (numbers < ends[at])
        return known


class Locks:
    """The locks of one launch, and which of them the program that runs now holds."""

    def __init__(self, size: int) -> None:
        self.written = np.zeros(size, np.int64)
        self.read = np.zeros(size, np.int64)
        self._program = -1
        #: by place, what stands there when it is free
        self._held: dict[int, object] = {}
        #: every place that was a lock
        self.known: set[int] = set()
        #: what was touched under a lock since the last barrier
        self._open: list[tuple[Under, Cells]] = []

    def runs(self, program: int) -> None:
        """Say which program runs: the one before has ended, whatever it holds."""
        if program != self._program:
            self._program = program
            self._held.clear()
            self._open.clear()

    def take(self, place: int, free: object) -> None:
        """Say that the program has made a free lock its own."""
        self._held[place] = free
        self.known.add(place)
        self._open.clear()

    def change(self, place: int, value: object, does_release: bool) -> bool:
        """Say that the program changes what may be a lock; tell whether it may.

        Args:
            does_release: whether others see what was written before.
        """
        if place not in self.known:
            return True
        if place not in self._held:
            return False
        free = self._held.pop(place)
        if does_release and value == free:
            # the threads that are not done yet may go on behind the lock
            for under, cells in self._open:
                under[cells] = 0
        else:
            for under in (self.written, self.read):
                under[under == place + 1] = 0
        self._open.clear()
        return True

    def meet_barrier(self) -> None:
        """Say that all threads of the program have done what comes before."""
        self._open.clear()

    def excused(self, under: Under, cells: Cells) -> NDArray[np.bool_]:
        """Tell what others touched under a lock that the program now holds."""
        if not self._held:
            return np.zeros(len(cells), np.bool_)
        return np.isin(under[cells], [place + 1 for place in self._held])

    def note(self, under: Under, cells: Cells, is_new: NDArray[np.bool_]) -> None:
        """Note what is touched now.

        Args:
            cells: the bytes.
            is_new: of these, that nobody has touched so before.
        """
        lock = 1 + next(reversed(self._held)) if self._held else 0
        # one access under no lock is enough to race with others
        under[cells] = np.where(is_new | (under[cells] == lock), lock, 0)
        if lock:
            self._open.append((under, cells))
