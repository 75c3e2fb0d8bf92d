"""Which operators of a sequence take what others of it gave, and what they move.

A trace names no tensors, so a result is followed by its size and dtype: the next
operator that takes such a tensor takes it. Two operators that share no more than a
size, such as those of two turns of a loop, are no chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import Int64s
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


class _Tensor(NamedTuple):
    elements: int
    item_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.elements * self.item_bytes


@dataclass
class _Made:
    """What an operator gave."""

    by: int
    tensor: _Tensor
    #: of it a reduction made fewer numbers; nobody wrote down how many
    is_reduced: bool
    is_taken: bool = False


@dataclass
class _Chain:
    events: list[int] = field(default_factory=list)
    operators: set[int] = field(default_factory=set)
    outside: list[_Tensor] = field(default_factory=list)
    #: what nobody takes
    given_bytes: int = 0
    long_rows: int = 0


def flows(operators: Operators, events: Int64s) -> Iterator[tuple[Int64s, Moved]]:
    """Give the chains of two and more operators within a sequence of kernels.

    Args:
        operators: those of the window.
        events: positions among the events on the GPU, in the order of their launches.
    """
    direct = operators.direct[events]
    members, place = np.unique(direct, return_index=True)
    members = members[np.argsort(place)]
    chain_of: dict[int, _Chain] = {}
    made: list[_Made] = []
    for position in members.tolist():
        taken, outside = _taken(operators, position, made)
        # what it takes makes one chain of what was several
        chain = _Chain()
        for one in {id(chain_of[one.by]): chain_of[one.by] for one in taken}.values():
            chain.operators |= one.operators
            chain.outside += one.outside
            chain.long_rows += one.long_rows
        chain.operators.add(position)
        chain.outside += outside
        chain.long_rows += _reduces_long_rows(operators, position)
        for member in chain.operators:
            chain_of[member] = chain
        made.append(_gives(operators, position))
    for given in made:
        if not (given.is_taken or given.is_reduced):
            chain_of[given.by].given_bytes += given.tensor.size_bytes
    for event, position in zip(events.tolist(), direct.tolist(), strict=True):
        chain_of[position].events.append(event)
    for chain in {id(chain): chain for chain in chain_of.values()}.values():
        if len(chain.operators) > 1:
            yield np.array(chain.events, np.int64), _moved(chain)


def _moved(chain: _Chain) -> Moved:
    once = sum(tensor.size_bytes for tensor in set(chain.outside))
    every = sum(tensor.size_bytes for tensor in chain.outside)
    largest = max((tensor.size_bytes for tensor in chain.outside), default=0)
    return Moved(
        once + chain.given_bytes, every + chain.given_bytes, chain.long_rows * largest
    )


def _taken(
    operators: Operators, position: int, made: list[_Made]
) -> tuple[list[_Made], list[_Tensor]]:
    """Tell what an operator takes of what was made, and what from outside."""
    taken: list[_Made] = []
    left = _reads(operators, position)
    for is_new in (True, False):
        rest: list[_Tensor] = []
        for tensor in left:
            # what was made last, and is not taken yet, comes first
            fits = (
                one
                for one in reversed(made)
                if one.is_taken is not is_new
                and one not in taken
                and _fits(one, tensor)
            )
            one = next(fits, None)
            if one is None:
                rest.append(tensor)
            else:
                taken.append(one)
        left = rest
        if is_new and not taken:
            # another look at what others took is no link
            break
    for one in taken:
        one.is_taken = True
    return taken, left


def _fits(one: _Made, tensor: _Tensor) -> bool:
    if not one.is_reduced:
        return one.tensor == tensor
    elements = one.tensor.elements
    return tensor.elements < elements and elements % tensor.elements == 0


def _tensors(operators: Operators, position: int) -> list[_Tensor]:
    operands = operators.operands(position)
    elements = map(math.prod, operands.dims)
    return [
        _Tensor(count, ITEM_BYTES.get(dtype, 4))
        for dims, count, dtype in zip(
            operands.dims, elements, operands.dtypes, strict=False
        )
        if dims and count
    ]


def _base(operators: Operators, position: int) -> str:
    return operators.name(position).removeprefix("aten::").rstrip("_")


def _reads(operators: Operators, position: int) -> list[_Tensor]:
    base, tensors = _base(operators, position), _tensors(operators, position)
    if base == "copy":
        # the first is what is written
        return tensors[1:2]
    return [] if base in _FILLS else tensors


def _gives(operators: Operators, position: int) -> _Made:
    base, tensors = _base(operators, position), _tensors(operators, position)
    if not tensors:
        return _Made(position, _Tensor(1, 4), False)
    if base == "copy":
        return _Made(position, tensors[0], False)
    elements = max(tensor.elements for tensor in tensors)
    item_bytes = max(one.item_bytes for one in tensors if one.elements == elements)
    if base in _COMPARES:
        item_bytes = 1
    is_reduced = reduces(operators.name(position))
    return _Made(position, _Tensor(elements, item_bytes), is_reduced)


def _reduces_long_rows(operators: Operators, position: int) -> bool:
    dims = operators.operands(position).dims
    row = dims[0][-1:] if dims else ()
    return reduces(operators.name(position)) and row > (_LONG_ROW,)
