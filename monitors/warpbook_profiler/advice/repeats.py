"""What repeats: operators that a thread calls again and again, a window's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import Int64s, groups, rows_by

#: a longer group is a model or a step of training, and no row
_MOST_LENGTH = 16
#: candidates for the length of a repeated part that are tried
_MOST_TRIED = 64
#: kinds of work whose distances are tried
_MOST_KINDS = 4
#: of the work, what is the same a period later; a first pass may differ a little
_LEAST_SAME = 0.98
#: `for row in x` calls it once before the loop, not further away
_TAKES_APART, _NEAR = "aten::unbind", 4


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
        is_taken, thread = bytearray(len(mine)), int(table.track[mine[0]])
        for length in range(1, min(_MOST_LENGTH, len(mine) // least_count) + 1):
            same = np.zeros(len(mine) - length + 2, np.int8)
            same[1:-1] = name[length:] == name[:-length]
            edges = np.diff(same)
            begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
            long = ends - begins >= length * (least_count - 1)
            spans = zip(begins[long].tolist(), ends[long].tolist(), strict=True)
            for begin, end in spans:
                count = ((end - begin) // length + 1) * length
                chosen = slice(begin, begin + count)
                if 1 in is_taken[chosen]:
                    continue
                is_taken[chosen] = b"\1" * count
                yield Repeat(mine[chosen], length, thread)


def taking_apart(operators: Operators) -> Int64s:
    """Give the operators that take a tensor apart, as `for row in x` does."""
    return np.flatnonzero(operators.named(_TAKES_APART) & operators.outermost)


def rows_from(operators: Operators, repeat: Repeat, apart: Int64s) -> int | None:
    """Give the operator that took a tensor apart for a loop; None where none did.

    Args:
        operators: those of the window.
        repeat: the loop, a row a turn.
        apart: what `taking_apart` gives.
    """
    first = int(repeat.operators[0])
    place = int(np.searchsorted(apart, first)) - 1
    if place < 0:
        return None
    before = int(apart[place])
    between = np.count_nonzero(operators.outermost[before:first])
    rows = np.count_nonzero(operators.parent[before:first] == before)
    return before if between <= _NEAR and rows >= repeat.turns else None


def period_of(evidence: Evidence) -> int | None:
    """Give after how many events on the GPU the same ones come again; None if never."""
    gpu, launch = evidence.gpu, evidence.calls.launch
    order = np.argsort(launch, kind="stable")
    if len(order) < 2:
        return None
    _, kind = groups(gpu.name, gpu.shape)
    kind = kind[order]
    # what comes again does so in the second half, too: begin with its rarest kinds,
    # without what comes once, before a loop
    counts = np.bincount(kind[: len(kind) // 2])
    rarest = np.argsort(np.where(counts > 1, counts, len(kind)), kind="stable")
    most = _MOST_TRIED // _MOST_KINDS
    for one in rarest[:_MOST_KINDS].tolist():
        places = np.flatnonzero(kind == one)
        for period in (places[1:] - places[0])[:most].tolist():
            if 2 * period > len(kind):
                break
            if (kind[period:] == kind[:-period]).mean() >= _LEAST_SAME:
                return int(period)
    return None
