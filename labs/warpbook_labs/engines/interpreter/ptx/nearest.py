"""How near instructions are to one that needs them, and what decides on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from warpbook_labs.engines.interpreter.ptx.dependence import deciding_branches
from warpbook_labs.engines.interpreter.ptx.link import Linked
from warpbook_labs.engines.interpreter.ptx.loops import results, sources
from warpbook_labs.engines.interpreter.ptx.program import (
    Instruction,
    Register,
    Symbol,
    Vector,
)

_LEAVES = frozenset({"ret", "exit", "trap"})
_WRITES = frozenset({"st", "atom", "red", "cp"})


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
        return [linked.labels[each] for each in targets]
    elif instruction.name in _LEAVES:
        nodes.append(end)
    if not nodes or instruction.guard is not None:
        nodes.append(pc + 1)
    return nodes


def _name(operand: object) -> str:
    return operand.name if isinstance(operand, Symbol) else ""


def nearest(
    code: Sequence[Instruction],
    pc: int,
    lines: Collection[int],
    deciding: Callable[[int], Sequence[int]],
) -> tuple[int, ...]:
    """Order lines by how few steps lie between them and an instruction.

    A step leads from an instruction to those that compute what it uses, and to the
    branches that decide whether it is run.

    Args:
        code: of a kernel.
        pc: the place of the instruction, whose own line is left out.
        lines: that are ordered; those not met come last.
        deciding: gives the places of the branches that decide on an instruction.
    """
    by_result: dict[str, list[int]] = {}
    for place, instruction in enumerate(code):
        for name in _names(results(instruction)):
            by_result.setdefault(name, []).append(place)
    writes = [place for place, each in enumerate(code) if each.name in _WRITES]
    order: dict[int, None] = {}
    seen, front = {pc}, [pc]
    while front:
        following: list[int] = []
        for place in front:
            instruction = code[place]
            if instruction.line in lines and instruction.line != code[pc].line:
                order.setdefault(instruction.line or 0)
            before = [
                other
                for name in _names(tuple(sources(instruction)))
                for other in by_result.get(name, ())
            ]
            if instruction.name in ("ld", "ldmatrix") and (
                "param" not in instruction.modifiers
            ):
                before += writes
            before += deciding(place)
            following += [other for other in before if other not in seen]
            seen.update(following)
        front = list(dict.fromkeys(following))
    rest = sorted(set(lines) - set(order) - {code[pc].line}, reverse=True)
    return (*order, *rest)


def _names(operands: Sequence[object]) -> list[str]:
    names = []
    for each in operands:
        parts = each.parts if isinstance(each, Vector) else (each,)
        names += [part.name for part in parts if isinstance(part, Register)]
    return names
