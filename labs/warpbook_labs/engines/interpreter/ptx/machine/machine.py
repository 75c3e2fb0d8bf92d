"""A GPU for one program: its memory, and launches of its kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.jobs import MAX_STEPS
from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Dim, Lanes
from warpbook_labs.engines.interpreter.ptx.lines.origins import MOST_LINES, Origins
from warpbook_labs.engines.interpreter.ptx.machine.launching import (
    Argument,
    checked,
    packed,
)
from warpbook_labs.engines.interpreter.ptx.memory.causality import Causality
from warpbook_labs.engines.interpreter.ptx.memory.races import Tracker
from warpbook_labs.engines.interpreter.ptx.memory.spaces import (
    EMPTY,
    RED,
    Buffer,
    Memory,
    Space,
    whole,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.memory.watch import Writers
from warpbook_labs.engines.interpreter.ptx.text.calls import (
    at_first,
    function_addresses,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    BadLaunch,
    Endless,
    Fault,
    TooLarge,
    TooLong,
    Unsupported,
)
from warpbook_labs.engines.interpreter.ptx.text.link import link
from warpbook_labs.engines.interpreter.ptx.text.loops import polling
from warpbook_labs.engines.interpreter.ptx.text.parse import parse
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Instruction,
    Linked,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES
from warpbook_labs.engines.interpreter.ptx.threads.endless import EndlessLoops
from warpbook_labs.engines.interpreter.ptx.threads.schedule import Budget, Schedule
from warpbook_labs.engines.interpreter.ptx.threads.steps import make_code
from warpbook_labs.results.findings import Counts, Finding, Report

#: threads that run at once, if there are so many: each instruction costs some
#: microseconds, however few threads it is for
_LANES = 8192
#: of each block, as on the largest GPUs
MAX_SHARED_BYTES = 227 * 1024
_MAX_LOCAL_BYTES = 1 << 16
#: very large numbers of either sign, as floating ones and as whole ones
_POISONS = (0x5A5A5A5A5A5A5A5A, 0xDA5A5A5ADA5A5A5A)

#: a job runs one program, and few of its kernels, in many cases
_parsed = functools.lru_cache(maxsize=2)(parse)


@functools.lru_cache(maxsize=16)
def _linked(ptx: str, kernel: str) -> Linked:
    return link(_parsed(ptx), kernel)


class Machine:
    """Runs the kernels of one PTX text on the CPU."""

    def __init__(self, ptx: str) -> None:
        """Read the program.

        Raises:
            NotPtx: the text can't be read.
        """
        self._ptx, self._module = ptx, _parsed(ptx)
        self._memory = Memory()
        self._variables: dict[str, int] = {}
        self._functions = function_addresses(self._module)
        self._own: list[Buffer] = []
        self._writers = Writers()
        #: follows where values come from, once it is asked to
        self.origins: Origins | None = None
        first = self._memory.end
        for space in ("const", "global"):
            for variable in self._module.variables.values():
                if variable.space == space:
                    self._variables[variable.name] = self._place(variable)
            if space == "const":
                self._constants = (first, self._memory.end)

    @property
    def kernels(self) -> list[str]:
        return [
            name
            for name, function in self._module.functions.items()
            if function.is_entry
        ]

    @property
    def buffers(self) -> list[Buffer]:
        return self._memory.buffers

    def follow(self, kernels: Iterable[str]) -> None:
        """Have these kernels note where all that they compute comes from.

        Raises:
            TooLarge: the source is too long for it.
        """
        linked = [_linked(self._ptx, kernel) for kernel in kernels]
        lines = [instruction.line or 0 for one in linked for instruction in one.code]
        if max(lines, default=0) > MOST_LINES:
            raise TooLarge("The source is too long.")
        widths = [
            _smallest(one, space) for one in linked for space in ("global", "shared")
        ]
        self.origins = Origins(max(lines, default=0), min(widths, default=1))

    def put(self, name: str, values: NDArray[Any], off_bytes: int = 0) -> Buffer:
        """Add a buffer of global memory that holds these values.

        Args:
            off_bytes: how far off the alignment of buffers it begins.
        """
        return self._memory.put(name, values, off_bytes=off_bytes)

    def empty(self, name: str, size_bytes: int, off_bytes: int = 0) -> Buffer:
        return self._memory.empty(name, size_bytes, off_bytes)

    def has_changed(self) -> bool:
        return not self._memory.is_as_at_first(self._own)

    def put_back(self, buffers: Iterable[Buffer]) -> None:
        self._memory.put_back(buffers)

    def read(self, buffer: Buffer, dtype: Any) -> NDArray[Any]:
        return self._memory.read(buffer, dtype)

    def writer_lines(self, buffer: Buffer) -> NDArray[np.uint16]:
        return self._writers.lines(buffer)

    def first_unwritten(self, buffer: Buffer) -> int | None:
        return self._memory.first_unwritten(buffer)

    def run(
        self,
        kernel: str,
        grid: Dim,
        block: Dim,
        arguments: Sequence[Argument],
        dynamic_shared_bytes: int = 0,
        max_steps: int = MAX_STEPS,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Launch a kernel and wait for it.

        Args:
            block: threads of a block in x, y and z.
            arguments: buffers and numbers, in the kernel's order.
            dynamic_shared_bytes: for its `extern __shared__` array.
            max_steps: instructions that may be run, each for many threads.
            is_over: tells whether there is no time left.

        Raises:
            BadLaunch: grid, block or arguments do not fit.
            Unsupported: the kernel has an instruction that is not known here.
        """
        linked = _linked(self._ptx, kernel)
        blocks = grid[0] * grid[1] * grid[2]
        memory = self._memory.space
        before = None
        if any(instruction.name == "shfl" for instruction in linked.code):
            before = memory.copy()

        def launch(poison: int) -> State:
            state = self._launched(linked, grid, block, arguments, dynamic_shared_bytes)
            state.poison = poison
            origins = None if poison else self.origins
            _run(state, blocks, Budget(max_steps, is_over), origins)
            return state

        state = launch(0)
        self._writers.note(state)
        if before is not None and state.from_nobody is not None:
            _tell_if_it_matters(state, memory, before, launch)
        return state.report

    def _launched(
        self,
        linked: Linked,
        grid: Dim,
        block: Dim,
        arguments: Sequence[Argument],
        dynamic_shared_bytes: int,
    ) -> State:
        parameters = packed(linked, arguments)
        threads, blocks = checked(linked, grid, block)
        shared = linked.shared_bytes
        if dynamic_shared_bytes:
            shared = whole(shared) + dynamic_shared_bytes
        if shared > MAX_SHARED_BYTES:
            raise BadLaunch(
                f"A block asks for {shared:,} bytes of shared memory; there are "
                f"{MAX_SHARED_BYTES:,}."
            )
        if linked.local_bytes > _MAX_LOCAL_BYTES:
            raise Unsupported(f"{linked.local_bytes:,} bytes of a thread's own memory")
        slots = min(blocks, max(1, _LANES // threads))
        return self._state(linked, grid, block, parameters, slots, shared)

    def _place(self, variable: Variable) -> int:
        held = at_first(variable, self._functions)
        name = variable.name
        buffer = self._memory.put(name, np.frombuffer(held, np.uint8))
        self._own.append(buffer)
        return buffer.address

    def _state(
        self,
        linked: Linked,
        grid: Dim,
        block: Dim,
        parameters: dict[str, bytes],
        slots: int,
        shared_bytes: int,
    ) -> State:
        def address_of(symbol: Symbol) -> int:
            for places in (linked.shared, linked.local):
                if symbol.name in places:
                    return places[symbol.name].offset + symbol.offset
            address = self._variables.get(symbol.name)
            if address is None:
                address = self._functions.get(symbol.name)
            if address is None:
                raise Unsupported(f"the address of {symbol.name.split('/')[0]}")
            return address + symbol.offset

        lanes = Lanes(grid, block, slots, linked.registers, address_of)
        shared_stride = whole(max(shared_bytes, 1))
        local_stride = whole(max(linked.local_bytes, 1))
        shared = Space(shared_stride * slots, EMPTY)
        local = Space(local_stride * lanes.count, EMPTY)
        # what only fills them up is nobody's
        shared.state.reshape(slots, -1)[:, shared_bytes:] = RED
        local.state.reshape(lanes.count, -1)[:, linked.local_bytes :] = RED
        widths = {name: _smallest(linked, name) for name in ("global", "shared")}
        memory = self._memory.space
        causality = Causality(lanes.thread, lanes.per_block)
        return State(
            linked=linked,
            lanes=lanes,
            memory=self._memory,
            shared=shared,
            local=local,
            shared_bytes=shared_bytes,
            shared_stride=shared_stride,
            local_stride=local_stride,
            report=Report(),
            global_cell_bytes=widths["global"],
            shared_cell_bytes=widths["shared"],
            global_tracker=Tracker(
                len(memory.data) // widths["global"] + 1, lanes.per_block, causality
            ),
            shared_tracker=Tracker(
                shared_stride * slots // widths["shared"] + 1,
                lanes.per_block,
                causality,
            ),
            parameters=parameters,
            variables=self._variables,
            constants=self._constants,
            read_registers=_read(linked.code),
            polling=polling(linked.code, linked.labels),
            causality=causality,
        )


def _run(state: State, blocks: int, budget: Budget, origins: Origins | None) -> Report:
    report, lanes = state.report, state.lanes
    code = make_code(state)
    if origins is not None:
        origins.attach(code, state)
    endless = EndlessLoops(state.linked, lanes)
    try:
        with np.errstate(all="ignore"):
            for number, first in enumerate(_order(state, blocks)):
                works = lanes.begin(first)
                state.causality.begin()
                if number:
                    _clear(state)
                    if origins is not None:
                        origins.forget()
                Schedule(code, state, budget, works, endless).run()
    except Fault as fault:
        report.stopped = True
        report.add(Finding(fault.kind, str(fault), fault.line))  # type: ignore[arg-type]
    except Endless as problem:
        report.stopped = True
        report.add(Finding("too long", str(problem), problem.line))
    except TooLong as problem:
        report.stopped = True
        words = str(endless.too_long(problem.line))
        report.add(Finding("too long", words, problem.line))
    report.counts.longest_warp_instructions = budget.longest_warp
    for (begin, end), (warps, threads) in budget.stretches.items():
        for instruction in code.instructions[begin:end]:
            counts = Counts(warp_instructions=warps, thread_instructions=threads)
            report.counts.add(counts)
            if instruction.line is not None:
                report.lines.setdefault(instruction.line, Counts()).add(counts)
    return report


def _order(state: State, blocks: int) -> Sequence[int]:
    """Give the first block of each group that runs at once, in their order.

    CUDA promises none: where threads wait for others, the last blocks begin first.
    """
    firsts = range(0, blocks, state.lanes.slots)
    if len(firsts) > 1 and (state.polling.reads or state.polling.takes):
        state.is_reversed = True
        return firsts[::-1]
    return firsts


def _tell_if_it_matters(
    state: State, memory: Space, before: Space, launch: Callable[[int], State]
) -> None:
    """Tell of a shuffle from a thread that gives nothing, if results depend on it.

    Nobody looks at some of what is shuffled so, as in the upper half of a sum: the
    kernel is run again with other numbers in its place, and must come to the same.
    """
    kept = memory.copy()
    for poison in _POISONS:
        memory.put_back(before)
        again = launch(poison)
        if again.report.stopped != state.report.stopped:
            # it took too long this time, which tells nothing
            break
        same = again.report.printed == state.report.printed and kept.equals(memory)
        if not same and state.from_nobody is not None:
            state.report.add(state.from_nobody)
            break
    memory.put_back(kept)


def _clear(state: State) -> None:
    """Give other blocks memory that nobody has written."""
    for space in (state.shared, state.local):
        space.state[space.state != 0] = EMPTY
    state.shared_tracker.forget()
    state.copies.forget()
    state.mbarriers.clear()


def _smallest(linked: Linked, space: str) -> int:
    """Give the bytes of the smallest access to a space, at most a word."""
    smallest = 4
    for instruction in linked.code:
        if instruction.name not in ("ld", "st", "atom", "red", "ldu"):
            continue
        spaces = [m.split("::")[0] for m in instruction.modifiers]
        other = {"global", "shared", "local", "param", "const"} - {space}
        if not other & set(spaces):
            smallest = min(smallest, DTYPES[instruction.modifiers[-1]].itemsize)
    return smallest


def _read(code: list[Instruction]) -> frozenset[str]:
    names: set[str] = set()

    def note(operand: Operand, is_result: bool) -> None:
        if isinstance(operand, Address):
            if isinstance(operand.base, Register):
                names.add(operand.base.name)
        elif isinstance(operand, Vector):
            for part in operand.parts:
                note(part, is_result)
        elif isinstance(operand, Register) and not is_result:
            names.add(operand.name)

    for instruction in code:
        for place, operand in enumerate(instruction.operands):
            note(operand, place == 0 and instruction.name not in ("st", "red", "brx"))
    return frozenset(names)
