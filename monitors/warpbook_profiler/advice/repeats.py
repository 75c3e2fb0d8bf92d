"""Groups of operators that a thread calls again and again, as a loop of Python does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import Int64s, rows_by

#: a longer group is a model or a step of training, and no row
_MOST_LENGTH = 16


class Repeat(NamedTuple):
    """The same names in the same order, several times in a row."""

    #: positions of the outermost operators, all groups one after the other
    operators: Int64s
    #: how many of them are one group
    length: int
    thread: int

    @property
    def turns(self) -> int:
        """Count the groups."""
        return len(self.operators) // self.length

    @property
    def one(self) -> Int64s:
        """Give the operators of the first group."""
        return self.operators[: self.length]

    @property
    def rest(self) -> Int64s:
        """Give the operators of all groups but the first."""
        return self.operators[self.length :]


def repeats(operators: Operators, least_count: int) -> Iterator[Repeat]:
    """Find the repeated groups of each thread, of several lengths the shortest.

    Args:
        operators: those of the window.
        least_count: fewer groups are none.
    """
    outer = np.flatnonzero(operators.outermost)
    table = operators.table
    for rows in rows_by(table.track[outer]):
        mine = outer[rows]
        name = table.name[mine]
        is_taken = np.zeros(len(mine), np.bool_)
        for length in range(1, min(_MOST_LENGTH, len(mine) // least_count) + 1):
            same = np.zeros(len(mine) - length + 2, np.int8)
            same[1:-1] = name[length:] == name[:-length]
            edges = np.diff(same)
            begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
            long = ends - begins >= length * (least_count - 1)
            for begin, end in zip(begins[long], ends[long], strict=True):
                count = (end - begin) // length + 1
                chosen = slice(int(begin), int(begin + count * length))
                if is_taken[chosen].any():
                    continue
                is_taken[chosen] = True
                yield Repeat(mine[chosen], length, int(table.track[mine[0]]))
