"""How near instructions are to one that needs them, and what decides on them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from warpbook_labs.engines.interpreter.ptx.lines.stores import (
    Stores,
    address_of,
    register_names,
)
from warpbook_labs.engines.interpreter.ptx.text.dependence import deciding_branches
from warpbook_labs.engines.interpreter.ptx.text.link import Linked
from warpbook_labs.engines.interpreter.ptx.text.loops import sources
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction, Symbol

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
        for name in register_names(tuple(sources(instruction))):
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
    names = register_names(tuple(sources(code[other])))
    is_of_thread = any(name.startswith(_OF_THREAD) for name in names)
    return steps + _STEPS_TO_THREAD * is_of_thread


def _far_names(access: Instruction, about: About) -> frozenset[str]:
    """Name the registers of an access that are not asked about."""
    address = address_of(access)
    if address is None or about == "all":
        return frozenset()
    of_place = frozenset(register_names((address.base,)))
    if about == "value":
        return of_place
    return frozenset(register_names(tuple(sources(access)))) - of_place
