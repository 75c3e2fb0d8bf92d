"""A window's operators: which one launched what, and which one encloses it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Int64s,
    Operands,
    distinct,
    rows_by,
)
from warpbook_profiler.events.intervals import enclosing, levels
from warpbook_profiler.facts.trace import Trace

#: begins the names of what a backward pass calls
BACKWARD = "autograd::engine::evaluate_function"
_ADDITIONS = (
    *("aten::index_add", "aten::index_add_"),
    *("aten::scatter_add", "aten::scatter_add_"),
)
#: a place among a thread's operators of which there is none
_NO_OPERANDS = Operands((), ())


class Operators:
    """All operators in the order of their start, and annotations apart.

    `table` has the operators; positions in it are what the methods take and give.
    """

    def __init__(self, trace: Trace) -> None:
        """Sort out who encloses whom."""
        every, run = trace.operators, trace.run
        inside = (every.start_ns >= run.start_ns) & (every.start_ns < run.code_end_ns)
        every = every.where(inside)
        of_library = np.array(["::" in name for name in every.names] or [False])
        self.table = every.where(of_library[every.name])
        self.annotations = every.where(~of_library[every.name])
        self.gpu = trace.on_gpu
        self._calls = trace.calls
        self.parent = self._parents()
        self.outermost: Bools = self.parent == NONE
        #: of each event on the GPU: who called for it, and the outermost around that
        self.direct = self._direct()
        self.outer = self._up(self.direct)

    @cached_property
    def launching(self) -> Int64s:
        """Give the operators that put work on the GPU themselves, in order."""
        launches: Bools = np.zeros(len(self.table) + 1, np.bool_)
        # the last stands for work that no operator called for
        launches[self.direct] = True
        positions: Int64s = np.flatnonzero(launches[:-1])
        return positions

    def name(self, position: int) -> str:
        """Give an operator's name."""
        names = self.table.names
        return names[int(self.table.name[position])]

    def operands(self, position: int) -> Operands:
        """Give what it was called with; nothing where that was not recorded."""
        at = int(self.table.operand[position])
        return _NO_OPERANDS if at == NONE else self.table.operands[at]

    def named(self, *names: str) -> Bools:
        wanted = frozenset(names)
        fits = np.array([name in wanted for name in self.table.names] or [False])
        chosen: Bools = fits[self.table.name]
        return chosen

    @property
    def are_trained(self) -> bool:
        """Tell whether there is a backward pass."""
        return any(name.startswith(BACKWARD) for name in self.table.names)

    @cached_property
    def recorded(self) -> Int64s:
        """Give the outermost operators that autograd makes nodes for."""
        table = self.table
        chosen = np.flatnonzero(self.outermost & (table.sequence != NONE))
        parts = [np.zeros(0, np.int64)]
        for rows in rows_by(table.track[chosen]):
            mine = chosen[rows]
            # each node has the number that its call is noted with
            made = np.diff(table.sequence[mine]) > 0
            parts.append(mine[:-1][made])
        return np.sort(np.concatenate(parts))

    @property
    def takes_rows(self) -> bool:
        """Tell whether tensors give rows; a list does so without an operator."""
        return bool(self.named("aten::unbind", "aten::select").any())

    def within(self, positions: Int64s) -> Bools:
        chosen = np.zeros(len(self.table) + 1, np.bool_)
        chosen[positions] = True
        chosen[-1] = False
        # who encloses begins before who is enclosed, so a pass a level is enough
        while True:
            more = chosen[:-1] | chosen[self.parent]
            if (more == chosen[:-1]).all():
                return more
            chosen[:-1] = more

    def launched_within(self, positions: Int64s) -> Int64s:
        """Give the events on the GPU that these operators, or those within, called."""
        chosen = np.append(self.within(positions), False)
        launched: Int64s = np.flatnonzero(chosen[self.direct])
        return launched

    def launched_from(self, first: int, last: int) -> Int64s:
        """Give the events that a thread's operators called, from one to another.

        Those in between and within count, too. It asks only about these, so a loop may
        ask it where `launched_within` would go through the whole window each time.
        """
        table = self.table
        # of one: all of them at once would go through the whole window each time
        until = np.searchsorted(
            table.start_ns, table.start_ns[last] + table.duration_ns[last]
        )
        order, direct = self._by_direct
        begin, end = np.searchsorted(direct, [first, until])
        inside = table.track[direct[begin:end]] == table.track[first]
        launched: Int64s = order[begin:end][inside]
        return launched

    @cached_property
    def _by_direct(self) -> tuple[Int64s, Int64s]:
        """Give the events on the GPU by who called for them, and these operators."""
        order = np.argsort(self.direct, kind="stable")
        return order, self.direct[order]

    def _parents(self) -> Int64s:
        table = self.table
        parent = np.full(len(table), NONE, np.int64)
        for mine in rows_by(table.track):
            for top, above in levels(table.start_ns[mine], table.end_ns[mine]):
                parent[mine[top]] = np.append(mine, NONE)[above]
        return parent

    def _direct(self) -> Int64s:
        """Give for each event on the GPU the innermost operator around its launch."""
        api, launch = self._calls.api, self._calls.launch
        innermost = np.full(len(self.gpu), NONE, np.int64)
        known = np.flatnonzero(launch != NONE)
        at_ns, thread = api.start_ns[launch[known]], api.track[launch[known]]
        table = self.table
        by_thread = {int(table.track[mine[0]]): mine for mine in rows_by(table.track)}
        for rows in rows_by(thread):
            mine = by_thread.get(int(thread[rows[0]]))
            if mine is None:
                continue
            # positions among the thread's own, and the last for none
            place = np.full(len(table) + 1, NONE, np.int64)
            place[mine] = np.arange(len(mine))
            own = enclosing(
                table.start_ns[mine],
                table.end_ns[mine],
                place[self.parent[mine]],
                at_ns[rows],
            )
            innermost[known[rows]] = np.append(mine, NONE)[own]
        return innermost

    def _up(self, positions: Int64s) -> Int64s:
        """Give the outermost operator around each, or NONE."""
        parent = np.append(self.parent, NONE)
        outermost: Int64s = positions.copy()
        while True:
            above = parent[outermost]
            rises = above != NONE
            if not rises.any():
                return outermost
            outermost[rises] = above[rises]

    def outer_of(self, positions: Int64s) -> Int64s:
        """Give the outermost operator around each of these."""
        return self._up(positions)


def sizes(dims: Iterable[tuple[int, ...]]) -> str:
    """Write the sizes of tensors, "8×2048 by 2048×64"."""
    return " by ".join("×".join(map(str, dim)) for dim in dims if dim)


def sorted_additions(operators: Operators) -> Int64s:
    """Give additions at indices that torch does in the order of sorted indices."""
    adds = operators.named(*_ADDITIONS)
    put = np.flatnonzero(operators.named("aten::index_put_"))
    parents = operators.parent[put]
    parents = parents[parents != NONE]
    return distinct(parents[adds[parents]])
