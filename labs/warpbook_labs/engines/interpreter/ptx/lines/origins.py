"""Which lines computed what registers and memory hold: a slice of what was really run.

A case that fails is run once more with this. Of each register of each thread, and of
each cell of memory, it keeps the set of lines from which the value came: of the
instructions that computed it, of the addresses it was read by, and of the branches
that had it run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import WARP, Step
from warpbook_labs.engines.interpreter.ptx.lines.line_sets import (
    LINE_BITS,
    Accesses,
    Launch,
    Sets,
    is_given,
    near,
)
from warpbook_labs.engines.interpreter.ptx.lines.nearest import About, deciders
from warpbook_labs.engines.interpreter.ptx.memory.reach import Reach
from warpbook_labs.engines.interpreter.ptx.memory.spaces import GLOBAL_BASE, Buffer
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import Fault
from warpbook_labs.engines.interpreter.ptx.text.loops import (
    name_of,
    names_of,
    results,
    sources,
)
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Register,
    Symbol,
    Vector,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES, Bools
from warpbook_labs.engines.interpreter.ptx.threads.steps import Code

#: of the source; what is longer is not followed
MOST_LINES = 512
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix"})
_WRITES = frozenset({"st", "atom", "red"})
#: they give nothing that is followed
_PASSED = frozenset(
    {"call", "mbarrier", "membar", "fence", "bra", "brx", "ret", "exit"}
)
_CARRY = "carry"


class Origins:
    """The lines of all values, over the launches of a program."""

    def __init__(self, last_line: int, cell_bytes: int) -> None:
        """Begin with nothing computed.

        Args:
            cell_bytes: of memory, as narrow as the narrowest access.
        """
        self._width, self._cell = last_line // LINE_BITS + 1, cell_bytes
        #: of global memory: of the value, and of where and whether it was written
        self._values = self._empty(0)
        self._places = self._empty(0)
        #: of addresses by the line of the access, and of the access first told of
        self._by_line: dict[int, Accesses] = {}
        self._told: Accesses | None = None
        self._launches: list[Launch] = []

    def attach(self, code: Code, state: State) -> None:
        """Have the steps of a launch note what they compute."""
        cells = len(state.memory.space.data) // self._cell + 1
        if not len(self._values):
            self._values, self._places = self._empty(cells), self._empty(cells)
        self._state, self._code = state, code
        self._registers: dict[str, Sets] = {}
        self._shared = self._empty(len(state.shared.data) // self._cell + 1)
        self._local = self._empty(len(state.local.data) // self._cell + 1)
        self._launch = Launch(
            len(self._launches),
            code,
            *deciders(code.instructions, state.linked),
            state.parameters,
        )
        self._launches.append(self._launch)
        for pc, instruction in enumerate(code.instructions):
            if instruction.name not in _PASSED:
                code.steps[pc] = self._followed(pc, instruction, code.steps[pc])

    def forget(self) -> None:
        """Forget what other blocks computed: only global memory stays."""
        for sets in (*self._registers.values(), self._shared, self._local):
            sets[:] = 0

    def of_value(self, buffer: Buffer, byte: int, line: int) -> tuple[int, ...]:
        """Give the lines from which an element came, those near its store first.

        Args:
            byte: of the element, from the buffer's begin.
            line: that wrote it, which is left out.
        """
        return self._named(self._values[self._cell_of(buffer, byte)], line, "value")

    def of_place(self, buffer: Buffer, byte: int, line: int) -> tuple[int, ...]:
        """Give the lines that decided that a line wrote there."""
        return self._named(self._places[self._cell_of(buffer, byte)], line, "place")

    def launches_to(self, buffer: Buffer) -> tuple[int, ...]:
        """Number the launches that have a store to a buffer, run or not."""
        return tuple(
            launch.number for launch in self._launches if launch.stores_to(buffer)
        )

    def of_nobody(self, buffer: Buffer) -> tuple[tuple[int, ...], int]:
        """Give the lines that decide on a store that was never run, and its line."""
        for launch in reversed(self._launches):
            for pc in launch.stores_to(buffer):
                line = launch.code.instructions[pc].line
                if line is not None:
                    lines = launch.decide(pc)
                    return tuple(other for other in lines if other != line), line
        return (), 0

    def of_unused(self, buffer: Buffer) -> tuple[int, ...]:
        """Give the line of the last store to a buffer that no thread came to.

        Behind it comes the line that is nearest to where it would write.
        """
        unused = (launch.unused(buffer) for launch in reversed(self._launches))
        return next((lines for lines in unused if lines), ())

    def beyond(
        self, buffer: Buffer, bytes_: NDArray[np.int64], byte: int, line: int
    ) -> tuple[int, ...]:
        """Give the lines from which elements came, but not one of them.

        Args:
            bytes_: of the elements, from the buffer's begin.
            line: that wrote them, which is left out.
        """
        cells = (buffer.address - GLOBAL_BASE + bytes_) // self._cell
        others = np.bitwise_or.reduce(self._values[cells], axis=0)
        own = self._values[self._cell_of(buffer, byte)]
        return self._named(others & ~own, line, "value")

    def of_told(self) -> tuple[int, ...]:
        """Give the lines of the address of the access that was first told of."""
        return near(self._told)

    def of_accesses(self, line: int) -> tuple[int, ...]:
        """Give the lines from which the addresses of a line's accesses came."""
        return near(self._by_line.get(line))

    def _named(self, sets: Sets, line: int, about: About) -> tuple[int, ...]:
        for launch in reversed(self._launches):
            starts = [
                pc
                for pc, instruction in enumerate(launch.code.instructions)
                if instruction.line == line and instruction.name in _WRITES
            ]
            if starts:
                lines = launch.near(sets, starts, about)
                return tuple(other for other in lines if other != line)
        return ()

    def _cell_of(self, buffer: Buffer, byte: int) -> int:
        return (buffer.address - GLOBAL_BASE + byte) // self._cell

    def _empty(self, count: int) -> Sets:
        return np.zeros((count, self._width), np.uint64)

    def _of_register(self, name: str) -> Sets:
        sets = self._registers.get(name)
        if sets is None:
            sets = self._registers[name] = self._empty(self._state.lanes.count)
        return sets

    def _bits(self, instruction: Instruction) -> Sets:
        bits = np.zeros(self._width, np.uint64)
        for line in instruction.lines:
            if line // LINE_BITS < self._width:
                bits[line // LINE_BITS] |= np.uint64(1) << np.uint64(line % LINE_BITS)
        return bits

    def _followed(self, pc: int, instruction: Instruction, step: Step) -> Step:
        follow = self._access(pc, instruction)
        if follow is None:
            follow = self._plain(pc, instruction)
        guard = instruction.guard
        holds = None
        if guard is not None and pc not in self._code.guards:
            holds = self._state.lanes.condition(guard)

        def run(mask: Bools | None) -> None:
            active = self._state.active(mask)
            if holds is not None:
                active = active & holds()
            report, finish = self._state.report, None
            before = len(report.findings) + report.more_findings
            try:
                if active.any():
                    finish = follow(np.flatnonzero(active))
                step(mask)
            except Fault:
                self._tell(pc)
                raise
            if len(report.findings) + report.more_findings > before:
                self._tell(pc)
            if finish is not None:
                finish()

        return run

    def _tell(self, pc: int) -> None:
        line = self._state.line(pc)
        if self._told is None and line is not None:
            self._told = self._by_line.get(line)

    def _deciding(self, pc: int, chosen: NDArray[np.int64]) -> Sets:
        """Give the lines of what had these threads come here."""
        sets = np.zeros((len(chosen), self._width), np.uint64)
        for branch in self._launch.deciding(pc):
            instruction = self._code.instructions[branch]
            sets |= self._bits(instruction)
            for operand in sources(instruction):
                if isinstance(operand, Register) and operand.name in self._registers:
                    sets |= self._registers[operand.name][chosen]
        return sets

    def _read(self, operands: Iterator[Any], chosen: NDArray[np.int64]) -> Sets:
        sets = np.zeros((len(chosen), self._width), np.uint64)
        for operand in operands:
            for part in parts_of(operand):
                if isinstance(part, Register) and part.name in self._registers:
                    sets |= self._registers[part.name][chosen]
        return sets

    def _plain(
        self, pc: int, instruction: Instruction
    ) -> Callable[[NDArray[np.int64]], Callable[[], None] | None]:
        targets = names_of(results(instruction))
        if "cc" in instruction.modifiers:
            targets.append(_CARRY)
        reads_carry = instruction.name in ("addc", "subc", "madc")
        own = self._bits(instruction)
        is_own = not is_given(instruction)

        def follow(chosen: NDArray[np.int64]) -> None:
            sets = self._read(sources(instruction), chosen)
            if reads_carry:
                sets |= self._of_register(_CARRY)[chosen]
            if instruction.is_warp_wide:
                sets = self._of_warps(sets, chosen)
            if is_own:
                sets |= own
                sets |= self._deciding(pc, chosen)
            for name in targets:
                self._of_register(name)[chosen] = sets

        return follow

    def _of_warps(self, sets: Sets, chosen: NDArray[np.int64]) -> Sets:
        """Give each thread the lines of all of its warp that take part."""
        whole = self._empty(self._state.lanes.count)
        whole[chosen] = sets
        rows = whole.reshape(-1, WARP, self._width)
        together = np.bitwise_or.reduce(rows, axis=1)
        return np.asarray(together[chosen // WARP])

    def _access(
        self, pc: int, instruction: Instruction
    ) -> Callable[[NDArray[np.int64]], Callable[[], None] | None] | None:
        """Follow what reads or writes memory; None for all else."""
        if instruction.name not in _MEMORY:
            return None
        if instruction.name == "cp":
            return self._copy(pc, instruction)
        stores = instruction.name in ("st", "red")
        operand = instruction.operands[0 if stores else 1]
        if not isinstance(operand, Address) or self._is_parameter(operand):
            return None
        if instruction.name == "ldmatrix":
            width, parts = 16, 1
        else:
            first = instruction.operands[1 if stores else 0]
            parts = len(first.parts) if isinstance(first, Vector) else 1
            width = parts * DTYPES[instruction.modifiers[-1]].itemsize
        reach = Reach(instruction, operand, pc, self._state, "reads")
        targets = [] if stores else [name_of(result) for result in results(instruction)]
        given = instruction.operands[1:] if stores else instruction.operands[2:]
        own = self._bits(instruction)
        if is_given(instruction):
            # a function's head takes what is handed to it
            own = np.zeros_like(own)
        writes = instruction.name in _WRITES

        def follow(chosen: NDArray[np.int64]) -> Callable[[], None] | None:
            mask = np.zeros(self._state.lanes.count, np.bool_)
            mask[chosen] = True
            here = self._empty(self._state.lanes.count)
            here[chosen] = own | self._deciding(pc, chosen)
            here[chosen] |= self._read(iter((operand.base,)), chosen)
            self._note_address(instruction, here[chosen], pc)
            if writes and len(chosen):
                self._launch.stored.add(pc)
            if instruction.name == "ldmatrix":
                mask &= self._state.lanes.lane < 8 * max(len(targets), 1)
            if not mask.any():
                return None
            value = here.copy()
            value[chosen] |= self._read(iter(given), chosen)
            places = list(reach.places(mask, width))
            origins = [here.copy() for _ in range(parts)]
            for place in places:
                for part, sets in enumerate(origins):
                    for at in self._cells(place, width // parts, part):
                        sets[place.chosen] |= self._held(place)[at]
            if instruction.name == "ldmatrix":
                origins = [self._spread(origins[0], chosen)] * max(len(targets), 1)

            def finish() -> None:
                for name, sets in zip(targets, origins, strict=False):
                    if name:
                        self._of_register(name)[chosen] = sets[chosen]
                if not writes:
                    return
                keeps = instruction.name != "st" or width // parts < self._cell
                for place in places:
                    for part in range(parts):
                        for at in self._cells(place, width // parts, part):
                            self._write(place, at, value, here, keeps)

            return finish

        return follow

    def _spread(self, sets: Sets, chosen: NDArray[np.int64]) -> Sets:
        whole = sets.copy()
        whole[chosen] = self._of_warps(sets[chosen], chosen)
        return whole

    def _write(
        self, place: Any, at: NDArray[np.int64], value: Sets, here: Sets, keeps: bool
    ) -> None:
        held = self._held(place)
        sets = value[place.chosen]
        if keeps:
            np.bitwise_or.at(held, at, sets)
        else:
            held[at] = sets
        if place.name == "global":
            self._places[at] = here[place.chosen]

    def _copy(
        self, pc: int, instruction: Instruction
    ) -> Callable[[NDArray[np.int64]], Callable[[], None] | None] | None:
        """Follow `cp.async`, as if it were done at once."""
        if instruction.modifiers[:2][-1] not in ("ca", "cg"):
            return None
        to, of, size, *_ = instruction.operands
        assert isinstance(size, Immediate)
        width, state = size.bits, self._state
        source = Reach(instruction, of, pc, state, "copies", "global")
        target = Reach(instruction, to, pc, state, "copies to", "shared")
        bases = [address.base for address in (to, of) if isinstance(address, Address)]
        more = instruction.operands[3:]
        own = self._bits(instruction)

        def follow(chosen: NDArray[np.int64]) -> Callable[[], None] | None:
            mask = np.zeros(state.lanes.count, np.bool_)
            mask[chosen] = True
            sets = self._empty(state.lanes.count)
            sets[chosen] = own | self._deciding(pc, chosen)
            sets[chosen] |= self._read(iter((*bases, *more)), chosen)
            self._note_address(instruction, sets[chosen], pc)
            if not more:
                # with a size of its own it may read nothing, wherever it points
                for place in source.places(mask, width):
                    for at in self._cells(place, width, 0):
                        sets[place.chosen] |= self._held(place)[at]
            for place in target.places(mask, width):
                for at in self._cells(place, width, 0):
                    self._held(place)[at] = sets[place.chosen]
            return None

        return follow

    def _note_address(self, instruction: Instruction, sets: Sets, pc: int) -> None:
        line = instruction.line
        if line is None:
            return
        together = np.bitwise_or.reduce(sets, axis=0)
        if line in self._by_line:
            together |= self._by_line[line].sets
        self._by_line[line] = Accesses(together, self._launch, pc)

    def _cells(self, place: Any, width: int, part: int) -> Iterator[NDArray[np.int64]]:
        for offset in range(part * width, (part + 1) * width, self._cell):
            yield (place.at + offset) // self._cell

    def _held(self, place: Any) -> Sets:
        if place.name == "shared":
            return self._shared
        if place.name in ("local", "param"):
            return self._local
        return self._values

    def _is_parameter(self, operand: Address) -> bool:
        base = operand.base
        return isinstance(base, Symbol) and base.name in self._state.parameters
