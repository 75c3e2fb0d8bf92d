"""The loops of a program, and what decides whether threads leave them.

Compilers lay a loop out as a stretch of code that ends with a branch back to its
beginning. Its *control* is what its exits depend on: the registers of their conditions
and all that these are computed from within the loop, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from warpbook_labs.engines.interpreter.ptx.program import (
    Address,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    Vector,
)

#: they give no result in their first operand
_NO_RESULT = frozenset({"st", "red", "bra", "brx", "bar", "barrier", "ret", "exit"})
_LEAVES = frozenset({"ret", "exit", "trap", "brkpt", "brx"})
#: what they give is not of the thread's own registers alone
_OUTSIDE = frozenset(
    {
        "ld",
        "ldu",
        "atom",
        "mbarrier",
        "tex",
        "tld4",
        "suld",
        "bar",
        "barrier",
        "call",
        "activemask",
    }
)
#: they read or write a flag that is no operand
_CARRIES = frozenset({"addc", "subc", "madc"})
_CHANGING = ("%clock", "%globaltimer", "%pm")


def sources(instruction: Instruction) -> Iterator[Operand]:
    """Give the operands that decide what an instruction does or gives."""
    guard = instruction.guard
    if guard is not None:
        yield guard.register if isinstance(guard, Negated) else guard
    operands = instruction.operands
    if instruction.name not in _NO_RESULT:
        operands = operands[1:]
    for operand in operands:
        if isinstance(operand, Negated):
            yield operand.register
        elif isinstance(operand, Address):
            yield operand.base
        elif isinstance(operand, Vector):
            yield from operand.parts
        else:
            yield operand


def results(instruction: Instruction) -> tuple[Operand, ...]:
    """Give the operands that an instruction writes."""
    if instruction.name in _NO_RESULT or not instruction.operands:
        return ()
    first = instruction.operands[0]
    return first.parts if isinstance(first, Vector) else (first,)


def loop_ranges(
    code: list[Instruction], labels: dict[str, int]
) -> Iterator[tuple[int, int]]:
    """Give the first and the last instruction of each loop."""
    for pc, instruction in enumerate(code):
        target = _target(instruction, labels)
        if target is not None and target <= pc:
            yield target, pc


def _target(instruction: Instruction, labels: dict[str, int]) -> int | None:
    if instruction.name != "bra" or not isinstance(instruction.operands[0], Symbol):
        return None
    return labels.get(instruction.operands[0].name)


@dataclass(frozen=True)
class Loop:
    """One loop; it ends with the branch back."""

    code: list[Instruction]
    labels: dict[str, int]
    begin: int
    end: int

    @property
    def places(self) -> range:
        """Give the places of its instructions."""
        return range(self.begin, self.end + 1)

    @property
    def lines(self) -> tuple[int, int] | None:
        """Give its first and its last line of the source, if they are known."""
        lines = [line for pc in self.places if (line := self.code[pc].line)]
        return (min(lines), max(lines)) if lines else None

    @cached_property
    def exits(self) -> tuple[int, ...]:
        """Give the places at which threads may leave it."""
        return tuple(pc for pc in self.places if self._leaves(pc))

    def _leaves(self, pc: int) -> bool:
        instruction = self.code[pc]
        if instruction.name in _LEAVES:
            return True
        if instruction.name == "call" and "__assertfail" in instruction.modifiers:
            return True
        if pc == self.end:
            return instruction.guard is not None
        target = _target(instruction, self.labels)
        return target is not None and target not in self.places

    @cached_property
    def control(self) -> frozenset[str] | None:
        """Name the registers on which its exits depend.

        None where memory, other threads or a clock have a part in it.
        """
        names: set[str] = set()
        for pc in self.exits:
            if self.code[pc].name == "brx":
                return None
            names |= self._conditions(pc)
        while True:
            more = set(names)
            for pc in self.places:
                instruction = self.code[pc]
                given = {each.name for each in _registers(results(instruction))}
                if _reduces(instruction):
                    given |= {each.name for each in _registers(instruction.operands)}
                if not given & names:
                    continue
                if not _is_own(instruction):
                    return None
                more |= {each.name for each in _registers(sources(instruction))}
                more |= self._conditions(pc)
            if any(name.startswith(_CHANGING) for name in more):
                return None
            if more == names:
                return frozenset(names)
            names = more

    def _conditions(self, at: int) -> set[str]:
        """Name what decides whether a place is reached, and whether it does anything.

        A place lies under each branch that jumps over it, with its other half, and in
        each loop within this one.
        """
        names = _guard(self.code[at])
        for pc in self.places:
            instruction = self.code[pc]
            target = _target(instruction, self.labels)
            if instruction.guard is None or target is None or pc == at:
                continue
            if target <= pc:
                is_over = target <= at <= pc and pc != self.end
            else:
                is_over = pc < at < self._join(pc, target)
            if is_over:
                names |= _guard(instruction)
                if target <= pc:
                    inner = range(target, pc + 1)
                    names = names.union(*(_guard(self.code[i]) for i in inner))
        return names

    def _join(self, pc: int, target: int) -> int:
        """Give the place at which both ways of a branch have come together."""
        join, at = target, pc
        while at < join and at <= self.end:
            other = _target(self.code[at], self.labels)
            if other is not None and self.code[at].guard is None:
                join = max(join, other)
            at += 1
        return join


def _registers(operands: object) -> list[Register]:
    assert isinstance(operands, Iterator | tuple)
    return [each for each in operands if isinstance(each, Register)]


def _guard(instruction: Instruction) -> set[str]:
    guard = instruction.guard
    if guard is None:
        return set()
    return {guard.register.name if isinstance(guard, Negated) else guard.name}


def _reduces(instruction: Instruction) -> bool:
    """Tell a barrier that gives a result."""
    return instruction.name in ("bar", "barrier") and "red" in instruction.modifiers


def _is_own(instruction: Instruction) -> bool:
    """Tell whether a result comes of the thread's own registers alone."""
    if instruction.name in _OUTSIDE or instruction.is_warp_wide:
        return False
    return not ("cc" in instruction.modifiers or instruction.name in _CARRIES)
