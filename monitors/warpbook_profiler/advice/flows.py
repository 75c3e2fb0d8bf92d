"""Which operators of a sequence take what others of it gave, and what they move.

A trace names no tensors, so a result is followed by its size and dtype: the next
operator that takes such a tensor takes it. Two operators that share no more than a
size, such as those of two turns of a loop, are no chain. What seems to be taken once
more may be another tensor of that size: what a chain moves is a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import groups
from warpbook_profiler.facts.traffic import ITEM_BYTES, reduces

#: a longer row does not stay on its multiprocessor while it is reduced
_LONG_ROW = 2_048
#: what takes no tensor but the one that it fills
_FILLS = frozenset("zero fill normal uniform bernoulli exponential".split())
_COMPARES = frozenset("eq ne lt le gt ge logical_and logical_or logical_not".split())


class Moved(NamedTuple):
    """What one kernel in the place of several must move, in bytes."""

    least_bytes: int
    #: where each read of the same size is of another tensor
    most_bytes: int
    #: what reductions over long rows read once more
    again_bytes: int
    #: tensors that are read at least, and the size of the largest
    reads: int
    largest_bytes: int

    def of_values(self, values: int) -> Moved:
        """Give the same where it is known how many values are read."""
        more_bytes = max(values - self.reads, 0) * self.largest_bytes
        known_bytes = min(self.least_bytes + more_bytes, self.most_bytes)
        return self._replace(least_bytes=known_bytes, most_bytes=known_bytes)


class _Tensor(NamedTuple):
    elements: int
    item_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.elements * self.item_bytes


@dataclass(frozen=True)
class _Kind:
    """What operators of one name with the same operands take and give."""

    reads: tuple[_Tensor, ...]
    gives: _Tensor
    #: of what it gives a reduction made fewer numbers; nobody wrote down how many
    is_reduced: bool
    reduces_long_rows: bool


@dataclass(eq=False)
class _Made:
    """What an operator gave."""

    by: int
    tensor: _Tensor
    is_reduced: bool
    is_taken: bool = False


@dataclass
class _Chain:
    #: places in the sequence
    operators: set[int] = field(default_factory=set)
    outside: list[_Tensor] = field(default_factory=list)
    #: results that others took before, or tensors of their size from outside
    unsure: list[_Tensor] = field(default_factory=list)
    #: what nobody takes
    given_bytes: int = 0
    long_rows: int = 0


class Flows:
    """Finds the chains of sequences; one that looks like another is followed once."""

    def __init__(self, operators: Operators) -> None:
        """Take the operators of the window."""
        self._operators = operators
        table = operators.table
        #: one number for operators of one name with the same operands
        self.kind = groups(table.name, table.operand)[1]
        self._kinds: dict[int, _Kind] = {}
        self._known: dict[tuple[int, ...], list[tuple[list[int], Moved]]] = {}

    def chains(
        self, operators: Sequence[int], kinds: Sequence[int]
    ) -> Iterator[tuple[list[int], Moved]]:
        """Give the chains of two and more operators within a sequence of kernels.

        Args:
            operators: which one called for each kernel, in launching order.
            kinds: what `kind` has of these.

        Yields:
            the places of a chain's kernels in the sequence, and what it moves.
        """
        members = dict(zip(operators, kinds, strict=True))
        key = tuple(members.values())
        if key not in self._known:
            for at, kind in members.items():
                if kind not in self._kinds:
                    self._kinds[kind] = _kind(self._operators, at)
            chains = _chains([self._kinds[kind] for kind in key])
            self._known[key] = [(sorted(one.operators), _moved(one)) for one in chains]
        if len(members) == len(operators):
            yield from self._known[key]
            return
        place = {member: at for at, member in enumerate(members)}
        for chain, moved in self._known[key]:
            yield [at for at, one in enumerate(operators) if place[one] in chain], moved


def _chains(kinds: list[_Kind]) -> list[_Chain]:
    chain_of: list[_Chain] = []
    made: list[_Made] = []
    for at, kind in enumerate(kinds):
        taken, outside, unsure = _taken(kind, made)
        # what it takes makes one chain of what was several
        chain = _Chain()
        chain_of.append(chain)
        for one in {id(chain_of[one.by]): chain_of[one.by] for one in taken}.values():
            chain.operators |= one.operators
            chain.outside += one.outside
            chain.unsure += one.unsure
            chain.long_rows += one.long_rows
        chain.operators.add(at)
        chain.outside += outside
        chain.unsure += unsure
        chain.long_rows += kind.reduces_long_rows
        for member in chain.operators:
            chain_of[member] = chain
        made.append(_Made(at, kind.gives, kind.is_reduced))
    for given in made:
        if not (given.is_taken or given.is_reduced):
            chain_of[given.by].given_bytes += given.tensor.size_bytes
    chains = {id(chain): chain for chain in chain_of}.values()
    return [chain for chain in chains if len(chain.operators) > 1]


def _moved(chain: _Chain) -> Moved:
    every = chain.outside + chain.unsure
    once = sum(tensor.size_bytes for tensor in set(chain.outside))
    largest = max((tensor.size_bytes for tensor in chain.outside), default=0)
    # of vectors any may be of another value
    smaller = [one for one in every if one.size_bytes < largest]
    return Moved(
        once + chain.given_bytes,
        sum(tensor.size_bytes for tensor in every) + chain.given_bytes,
        chain.long_rows * largest,
        len(set(chain.outside) - {*smaller}) + len(smaller),
        largest,
    )


def _taken(
    kind: _Kind, made: list[_Made]
) -> tuple[list[_Made], list[_Tensor], list[_Tensor]]:
    """Tell what an operator takes of what was made, what from outside, what of both."""
    taken: list[_Made] = []
    left, unsure = list(kind.reads), list[_Tensor]()
    for is_new in (True, False):
        rest: list[_Tensor] = []
        for tensor in left:
            # what was made last, and is not taken yet, comes first
            for one in reversed(made):
                is_free = one.is_taken is not is_new and one not in taken
                if is_free and _fits(one, tensor):
                    taken.append(one)
                    unsure += [] if is_new else [tensor]
                    break
            else:
                rest.append(tensor)
        left = rest
        if is_new and not taken:
            # another look at what others took is no link
            break
    for one in taken:
        one.is_taken = True
    return taken, left, unsure


def _fits(one: _Made, tensor: _Tensor) -> bool:
    if not one.is_reduced:
        return one.tensor == tensor
    elements = one.tensor.elements
    return tensor.elements < elements and elements % tensor.elements == 0


def _kind(operators: Operators, position: int) -> _Kind:
    name, operands = operators.name(position), operators.operands(position)
    base = name.removeprefix("aten::").rstrip("_")
    tensors = tuple(
        _Tensor(count, ITEM_BYTES.get(dtype, 4))
        for dims, dtype in zip(operands.dims, operands.dtypes, strict=False)
        if dims and (count := math.prod(dims))
    )
    reads = () if base in _FILLS else tensors
    gives = max(tensors, default=_Tensor(1, 4))
    if base == "copy":
        # the first is what is written
        reads, gives = tensors[1:2], tensors[0] if tensors else gives
    elif base in _COMPARES and tensors:
        gives = _Tensor(gives.elements, 1)
    is_reduced = reduces(name) and base != "copy" and bool(tensors)
    row = operands.dims[0][-1:] if operands.dims else ()
    return _Kind(reads, gives, is_reduced, reduces(name) and row > (_LONG_ROW,))
