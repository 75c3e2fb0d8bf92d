"""Sets of lines that belong to a launch, named in order: the nearest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.lines.nearest import (
    LEAVES,
    About,
    Stores,
    nearest,
)
from warpbook_labs.engines.interpreter.ptx.memory.spaces import Buffer
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction, Symbol
from warpbook_labs.engines.interpreter.ptx.threads.steps import Code

#: a set of lines for each of many threads or cells: a bit for each line
Sets = NDArray[np.uint64]
LINE_BITS = 64


@dataclass(frozen=True)
class Launch:
    """The code of a launch, and what decides on its instructions."""

    number: int
    code: Code
    #: of each instruction a number, and by it the branches that decide on it
    places: list[int]
    branches: list[tuple[int, ...]]
    #: by name: what the kernel was given
    parameters: dict[str, bytes]
    #: places of stores that were run
    stored: set[int] = field(default_factory=set)

    def deciding(self, pc: int) -> tuple[int, ...]:
        """Give the branches that decide whether an instruction is run."""
        return self.branches[self.places[pc]]

    def stores_to(self, buffer: Buffer) -> list[int]:
        """Give the stores that write to a buffer, by where their addresses begin."""

        def is_meant(symbol: Symbol) -> bool:
            held = self.parameters.get(symbol.name, b"")
            return int.from_bytes(held[:8], "little") == buffer.address

        return Stores(self.code.instructions).to(is_meant)

    def decide(self, pc: int) -> tuple[int, ...]:
        """Name the lines that decide whether an instruction is run."""
        return self._nearest(self.deciding(pc))

    def unused(self, buffer: Buffer) -> tuple[int, ...]:
        """Give the line of the last store to a buffer that no thread came to.

        Behind it comes the line that is nearest to where it would write.
        """
        for pc in reversed(self.stores_to(buffer)):
            line = self.code.instructions[pc].line
            if pc not in self.stored and line is not None:
                others = [other for other in self.towards(pc) if other != line]
                return (line, *others[:1])
        return ()

    def towards(self, pc: int) -> tuple[int, ...]:
        """Name the lines that may decide where a store writes, and whether it does."""
        return self._nearest((pc,), "place")

    def _nearest(self, starts: Sequence[int], about: About = "all") -> tuple[int, ...]:
        code = self.code.instructions
        lines = {
            line
            for instruction in code
            if not is_given(instruction)
            for line in instruction.lines
        }
        return nearest(code, starts, lines, self.deciding, is_all=False, about=about)

    def near(self, sets: Sets, starts: Sequence[int], about: About) -> tuple[int, ...]:
        """Name the lines of a set, those near some instructions first."""
        lines = {
            word * LINE_BITS + bit
            for word in range(len(sets))
            for bit in range(LINE_BITS)
            if int(sets[word]) >> bit & 1
        }
        return nearest(
            self.code.instructions,
            starts,
            lines,
            self.deciding,
            about=about,
            lets_leave=self._lets_leave,
        )

    def _lets_leave(self, branch: int) -> bool:
        """Tell a branch that goes to where threads end."""
        code, target = self.code.instructions, self.code.jumps.get(branch)
        if not isinstance(target, int):
            return False
        return target >= len(code) or code[target].name in LEAVES


@dataclass
class Accesses:
    """The lines of the addresses of a line's accesses, and one of these."""

    sets: Sets
    launch: Launch
    pc: int


def is_given(instruction: Instruction) -> bool:
    """Tell what only takes what the kernel was given, on the line of its head."""
    is_parameter = instruction.name == "ld" and "param" in instruction.modifiers
    return is_parameter or instruction.name == "cvta"


def near(accesses: Accesses | None) -> tuple[int, ...]:
    """Name the lines of the addresses of accesses, the nearest first."""
    if accesses is None:
        return ()
    return accesses.launch.near(accesses.sets, (accesses.pc,), "place")
