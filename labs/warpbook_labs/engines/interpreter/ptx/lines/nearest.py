"""How near instructions are to one that needs them, and what decides on them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from warpbook_labs.engines.interpreter.ptx.text.loops import (
    deciding_branches,
    names_of,
    results,
    sources,
)
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Instruction,
    Linked,
    Register,
    Symbol,
)

WRITES = frozenset({"st", "atom", "red", "cp"})
_SPACES = frozenset({"global", "shared", "local", "param", "const"})


class Stores:
    """The stores of a kernel, by the memory and the variables that they reach."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._code = code
        #: by name, the places of the instructions that give a register
        self.by_result: dict[str, list[int]] = {}
        for place, instruction in enumerate(code):
            for name in names_of(results(instruction)):
                self.by_result.setdefault(name, []).append(place)
        self._places = [
            place
            for place, instruction in enumerate(code)
            if instruction.name in WRITES
        ]
        self._symbols: dict[int, frozenset[Symbol]] = {}

    def before(self, load: int) -> list[int]:
        """Give the places of stores that may have written what a load reads."""
        space = _space(self._code[load])
        if space == "const":
            # no kernel stores there
            return []
        if space == "param":
            return self._handing(load)
        reached = self._reached(load)
        return [
            place
            for place in self._places
            if _is_same(space, _space(self._code[place]))
            and _may_meet(reached, self._reached(place))
        ]

    def _handing(self, load: int) -> list[int]:
        address = address_of(self._code[load])
        if address is None:
            return []
        base = address.base
        if isinstance(base, Symbol):
            base = Symbol(base.name)
        return [
            place
            for place in self._places
            if _space(self._code[place]) == "param"
            and (to := address_of(self._code[place])) is not None
            and to.base == base
        ]

    def to(self, is_meant: Callable[[Symbol], bool]) -> list[int]:
        """Give the stores whose addresses may be computed from some variables."""
        return [
            place for place in self._places if any(map(is_meant, self._reached(place)))
        ]

    def _reached(self, place: int) -> frozenset[Symbol]:
        """Give the variables and parameters from which an address is computed."""
        bases = self._symbols.get(place)
        if bases is None:
            bases = self._symbols[place] = frozenset(self._bases(place))
        return bases

    def _bases(self, place: int) -> set[Symbol]:
        address = address_of(self._code[place])
        pending: list[object] = [] if address is None else [address.base]
        seen: set[object] = set()
        symbols: set[Symbol] = set()
        while pending:
            base = pending.pop()
            if base in seen:
                continue
            seen.add(base)
            if isinstance(base, Symbol):
                symbols.add(base)
            elif isinstance(base, Register):
                for at in self.by_result.get(base.name, ()):
                    pending += sources(self._code[at])
        return symbols


def address_of(instruction: Instruction) -> Address | None:
    operands = instruction.operands
    at = 0 if instruction.name in ("st", "red", "cp") else 1
    operand = operands[at] if len(operands) > at else None
    return operand if isinstance(operand, Address) else None


def _space(instruction: Instruction) -> str:
    """Name the memory that an instruction reads or writes; nothing for any."""
    if instruction.name == "cp":
        # it copies from global memory
        return "shared"
    spaces = [modifier.partition("::")[0] for modifier in instruction.modifiers]
    return next((space for space in spaces if space in _SPACES), "")


def _is_same(one: str, other: str) -> bool:
    return one == other or not one or not other


def _may_meet(one: frozenset[Symbol], other: frozenset[Symbol]) -> bool:
    # an address that comes from nowhere known may be anything
    return not one or not other or bool(one & other)


LEAVES = frozenset({"ret", "exit", "trap"})
#: a line that takes the thread's own number is as far as so many more
_STEPS_TO_THREAD = 2
_OF_THREAD = ("%tid", "%ctaid", "%ntid", "%nctaid", "%laneid", "%warpid")
#: the line of a call is so much farther than what is done in the function
_STEPS_TO_CALL = 2
#: a branch that only lets threads leave early is as far as so many
_STEPS_TO_GUARD = 4
#: what is not asked about is as far as so many
_STEPS_TO_OTHER = 6

#: of an access: the value that it stores, or the place
About = Literal["all", "value", "place"]


def deciders(
    code: Sequence[Instruction], linked: Linked
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Give for each instruction a number, and by it the branches that decide on it."""
    successors = [_successors(pc, code, linked) for pc in range(len(code))]
    deciding = deciding_branches(successors)
    if deciding is None:
        # some loop never ends
        return [0] * len(code), [()]
    numbers: dict[tuple[int, ...], int] = {}
    places = [
        numbers.setdefault(tuple(sorted(branches)), len(numbers))
        for branches in deciding
    ]
    return places, list(numbers)


def _successors(pc: int, code: Sequence[Instruction], linked: Linked) -> list[int]:
    instruction, end = code[pc], len(code)
    nodes: list[int] = []
    if instruction.name == "bra":
        nodes.append(linked.labels[_name(instruction.operands[0])])
    elif instruction.name == "brx":
        targets = linked.targets[_name(instruction.operands[1])]
        return [linked.labels[target] for target in targets]
    elif instruction.name in LEAVES:
        nodes.append(end)
    if not nodes or instruction.guard is not None:
        nodes.append(pc + 1)
    return nodes


def _name(operand: object) -> str:
    return operand.name if isinstance(operand, Symbol) else ""


def nearest(
    code: Sequence[Instruction],
    starts: Sequence[int],
    lines: Collection[int],
    deciding: Callable[[int], Sequence[int]],
    is_all: bool = True,
    about: About = "all",
    lets_leave: Callable[[int], bool] = lambda _: False,
) -> tuple[int, ...]:
    """Order lines by how few steps lie between them and some instructions.

    A step leads from an instruction to those of other lines that compute what it uses,
    and to the branches that decide whether it is run.

    Args:
        deciding: gives the places of the branches that decide on an instruction.
        is_all: whether lines that are not met come last, or are left out.
        about: what of the instructions is asked about: the value that they store, or
            the place; the other is farther away.
    """
    stores = Stores(code)
    order: dict[int, None] = {}
    done: set[tuple[int, int]] = set()
    #: of what is as near, what comes later in the program is first; behind its place,
    #: how many calls lead from a line to the instruction
    ahead = [(0, -place, 0) for place in starts]
    heapq.heapify(ahead)
    while ahead:
        steps, negative, calls = heapq.heappop(ahead)
        place = -negative
        if (place, calls) in done:
            continue
        done.add((place, calls))
        instruction = code[place]
        if calls < len(instruction.lines):
            if instruction.lines[calls] in lines:
                order.setdefault(instruction.lines[calls])
            heapq.heappush(ahead, (steps + _STEPS_TO_CALL, -place, calls + 1))
        if calls:
            continue
        is_start, ahead_of = place in starts, list[tuple[int, int]]()
        far = _far_names(instruction, about) if is_start else frozenset()
        for name in names_of(sources(instruction)):
            to_source = _STEPS_TO_OTHER if name in far else 0
            for other in stores.by_result.get(name, ()):
                step = to_source + _steps(code, place, other)
                ahead_of.append((steps + step, other))
        if instruction.name in ("ld", "ldmatrix"):
            for other in stores.before(place):
                ahead_of.append((steps + _steps(code, place, other), other))
        for other in deciding(place):
            to_branch = 1 + _steps(code, place, other)
            if about == "value" and lets_leave(other):
                to_branch += _STEPS_TO_GUARD
            if about == "value" and is_start:
                to_branch = _STEPS_TO_OTHER
            ahead_of.append((steps + to_branch, other))
        for distance, other in ahead_of:
            if (other, 0) not in done:
                heapq.heappush(ahead, (distance, -other, 0))
    rest = sorted(set(lines) - set(order), reverse=True) if is_all else ()
    return (*order, *rest)


def _steps(code: Sequence[Instruction], place: int, other: int) -> int:
    """Count the step from an instruction to another; within a line there is none."""
    steps = int(code[place].lines != code[other].lines)
    names = names_of(sources(code[other]))
    is_of_thread = any(name.startswith(_OF_THREAD) for name in names)
    return steps + _STEPS_TO_THREAD * is_of_thread


def _far_names(access: Instruction, about: About) -> frozenset[str]:
    """Name the registers of an access that are not asked about."""
    address = address_of(access)
    if address is None or about == "all":
        return frozenset()
    of_place = frozenset(names_of((address.base,)))
    if about == "value":
        return of_place
    return frozenset(names_of(sources(access))) - of_place
