"""Gives the names in an instruction those that they have in a linked program."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping

from warpbook_labs.engines.interpreter.ptx.text.errors import NotPtx
from warpbook_labs.engines.interpreter.ptx.text.frames import ADDRESS, STACK
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    Vector,
)


def renamed(
    instruction: Instruction,
    names: Mapping[str, str],
    registers: Container[str],
    in_frame: Mapping[str, int],
) -> tuple[Instruction, int | None]:
    """Rename what an instruction names.

    Args:
        names: what its names are called in the program.
        in_frame: where in the last frame variables are, by their names there.

    Returns:
        The instruction; and where in the last frame that is of which it takes the
        address, in `frames.ADDRESS`; None if there is no such thing.
    """
    taken: int | None = None

    def rename(operand: Operand) -> Operand:
        nonlocal taken
        if isinstance(operand, Register):
            return Register(names.get(operand.name, operand.name))
        if isinstance(operand, Symbol):
            name = names.get(operand.name, operand.name)
            if name in in_frame:
                taken = in_frame[name] + operand.offset
                return ADDRESS
            # only here is known whether a name without "%" is a register's
            if name in registers:
                return Register(name)
            return Symbol(name, operand.offset)
        if isinstance(operand, Address):
            known = operand.base
            if isinstance(known, Symbol):
                place = in_frame.get(names.get(known.name, known.name))
                if place is not None:
                    return Address(STACK, place + known.offset + operand.offset)
            base = rename(known)
            if not isinstance(base, Register | Symbol | Immediate):
                raise NotPtx(f"An address in {instruction.text} is invalid.")
            return Address(base, operand.offset)
        if isinstance(operand, Vector):
            return Vector(tuple(map(rename, operand.parts)))
        if isinstance(operand, Negated):
            name = operand.register.name
            return Negated(Register(names.get(name, name)))
        return operand

    guard = instruction.guard
    renamed_guard = None if guard is None else rename(guard)
    if not isinstance(renamed_guard, Register | Negated | None):
        raise NotPtx(f"The condition of {instruction.text} is invalid.")
    operands = tuple(map(rename, instruction.operands))
    renamed_instruction = dataclasses.replace(
        instruction, operands=operands, guard=renamed_guard
    )
    return renamed_instruction, taken
