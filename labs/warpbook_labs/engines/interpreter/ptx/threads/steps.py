"""Turns a kernel's instructions into what is done for all threads at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.carry import Carry
from warpbook_labs.engines.interpreter.ptx.arithmetic.choices import choice
from warpbook_labs.engines.interpreter.ptx.arithmetic.floats import floating
from warpbook_labs.engines.interpreter.ptx.arithmetic.integers import integer
from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Step, put
from warpbook_labs.engines.interpreter.ptx.memory.access import access, asynchronous
from warpbook_labs.engines.interpreter.ptx.memory.matrices import matrix
from warpbook_labs.engines.interpreter.ptx.memory.mbarriers import mbarrier
from warpbook_labs.engines.interpreter.ptx.memory.reach import scope_of
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    Fault,
    NotPtx,
    Unsupported,
    on_line,
)
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction, Symbol
from warpbook_labs.engines.interpreter.ptx.text.values import Bools
from warpbook_labs.engines.interpreter.ptx.threads.driver import driver_call
from warpbook_labs.engines.interpreter.ptx.threads.warp import warp_wide

#: they give no value, and order nothing that is not in order here
_IDLE = frozenset({"nanosleep", "prefetch", "prefetchu", "pmevent", "griddepcontrol"})
_BARRIERS = frozenset({"bar", "barrier"})
_ENDS = _BARRIERS | {"bra", "brx", "ret", "exit"}


@dataclass(frozen=True)
class Barrier:
    """A barrier of the block, or of a part of it."""

    number: Any
    #: that it waits for, in whole warps; 0 is all that have not ended
    threads: Any
    #: who comes to it does not wait
    only_arrives: bool


@dataclass(frozen=True)
class Code:
    """A kernel as the schedule runs it."""

    instructions: list[Instruction]
    steps: list[Step]
    #: of each beginning of a stretch, the instruction at which it ends
    ends: list[int]
    #: where a branch goes: one place, or one for each lane
    jumps: dict[int, int | Callable[[], Any]]
    barriers: dict[int, Barrier]
    #: beginnings of stretches in which threads wait for others, which so go first
    waits: Bools
    #: for which lanes an instruction that ends a stretch holds
    guards: dict[int, Callable[[], Bools]]


def make_code(state: State) -> Code:
    """Prepare all instructions.

    Raises:
        Unsupported: one of them is not known here.
    """
    instructions = state.linked.code
    carry = Carry(state.lanes)
    steps: list[Step] = []
    guards: dict[int, Callable[[], Bools]] = {}
    jumps: dict[int, int | Callable[[], Any]] = {}
    barriers: dict[int, Barrier] = {}
    for pc, instruction in enumerate(instructions):
        try:
            step = _step(instruction, pc, state, carry)
            if instruction.name in ("bra", "brx"):
                jumps[pc] = _jump(instruction, state)
            if is_block_wide(instruction):
                barriers[pc] = barrier_of(instruction, state)
        except Unsupported as problem:
            if instruction.line is None or "line" in str(problem):
                raise
            raise Unsupported(instruction.text, instruction.line) from None
        except (KeyError, ValueError, IndexError, TypeError):
            raise Unsupported(instruction.text, instruction.line) from None
        if instruction.guard is not None:
            holds = state.lanes.condition(instruction.guard)
            if instruction.name in _ENDS or instruction.is_warp_wide:
                guards[pc] = holds
            else:
                step = _guarded(step, holds)
        steps.append(step)
    ends = _ends(instructions, state)
    waits = np.zeros(len(instructions) + 1, np.bool_)
    for pc in state.polling.reads | state.polling.takes:
        for begin in range(pc, -1, -1):
            if ends[begin] < pc:
                break
            waits[begin] = True
    return Code(instructions, steps, ends, jumps, barriers, waits, guards)


def is_block_wide(instruction: Instruction) -> bool:
    """Tell a barrier of the block, or of some of its warps."""
    return instruction.name in _BARRIERS and not instruction.is_warp_wide


def _ends(instructions: list[Instruction], state: State) -> list[int]:
    """Give for each instruction where the stretch that begins with it ends."""
    joins = set(state.linked.labels.values())
    ends = [0] * len(instructions)
    end = len(instructions)
    for pc in range(len(instructions) - 1, -1, -1):
        if instructions[pc].name in _ENDS or instructions[pc].is_warp_wide:
            end = pc
        ends[pc] = end
        if pc in joins or instructions[pc].is_warp_wide:
            end = pc
    return ends


def _guarded(step: Step, holds: Callable[[], Bools]) -> Step:
    def run(mask: Bools | None) -> None:
        wanted = holds() if mask is None else holds() & mask
        if wanted.any():
            step(wanted.copy())

    return run


def _step(instruction: Instruction, pc: int, state: State, carry: Carry) -> Step:
    lanes, name = state.lanes, instruction.name
    if is_block_wide(instruction):
        return _barrier(instruction, state)
    if (name in _ENDS and name not in _BARRIERS) or name in _IDLE:
        return _nothing
    if name in ("membar", "fence"):
        return _fence(instruction, state)
    if name == "trap":
        return _trap(instruction)
    if name == "call":
        return driver_call(instruction, state)
    step = (
        access(instruction, pc, state)
        or asynchronous(instruction, pc, state)
        or warp_wide(instruction, pc, state)
        or matrix(instruction, pc, state)
        or mbarrier(instruction, pc, state)
        or choice(instruction, lanes)
        or carry.step(instruction)
        or floating(instruction, lanes)
        or integer(instruction, lanes)
    )
    if step is None:
        raise Unsupported(instruction.text, instruction.line)
    return step


def _nothing(mask: Bools | None) -> None:
    """Do nothing."""


def _trap(instruction: Instruction) -> Step:
    line = instruction.line

    def run(mask: Bools | None) -> None:
        raise Fault("assertion", f"The kernel gave up{on_line(line)} (`__trap`).", line)

    return run


def _fence(instruction: Instruction, state: State) -> Step:
    scope = scope_of(instruction)

    def run(mask: Bools | None) -> None:
        state.causality.fence(state.chosen(mask), scope)

    return run


def _jump(instruction: Instruction, state: State) -> int | Callable[[], Any]:
    labels = state.linked.labels
    if instruction.name == "bra":
        return labels[_name(instruction.operands[0])]
    index = state.lanes.source(instruction.operands[0], "u32")
    targets = state.linked.targets[_name(instruction.operands[1])]
    places = np.array([labels[target] for target in targets], np.int32)

    def where() -> Any:
        return places[np.minimum(index, np.uint32(len(places) - 1))]

    return where


def _name(operand: object) -> str:
    if not isinstance(operand, Symbol):
        raise NotPtx(f"A branch goes to {operand}.")
    return operand.name


def barrier_of(instruction: Instruction, state: State) -> Barrier:
    """Read which barrier of the block it is, and for how many threads."""
    lanes, modifiers = state.lanes, instruction.modifiers
    numbers = list(instruction.operands)
    if "red" in modifiers:
        numbers = numbers[1:-1]
    sources = [lanes.source(number, "u32") for number in numbers]
    threads = sources[1] if len(sources) > 1 else np.uint32(0)
    arrives = "arrive" in modifiers
    if arrives and len(sources) < 2:
        raise Unsupported(instruction.text, instruction.line)
    return Barrier(sources[0], threads, arrives)


def _barrier(instruction: Instruction, state: State) -> Step:
    """What is done when enough have come to a block's barrier."""
    lanes = state.lanes
    if "red" not in instruction.modifiers:
        return _nothing
    votes = lanes.predicate(instruction.operands[-1])
    how, type_ = instruction.modifiers[-2:]
    target = lanes.target(instruction.operands[0], type_)

    def run(mask: Bools | None) -> None:
        active = state.active(mask).reshape(-1, lanes.per_block)
        yes = np.broadcast_to(votes(), (lanes.count,)).reshape(active.shape) & active
        count = yes.sum(axis=1)
        results = {
            "popc": count,
            "and": count == active.sum(axis=1),
            "or": count > 0,
        }[how]
        put(target, np.repeat(results, lanes.per_block).astype(target.dtype), mask)

    return run
