"""Asynchronous copies from global to shared memory (`cp.async`).

A copy is done at once here, and is not there before its thread has waited for it
(`cp.async.wait_group`, `cp.async.wait_all`; PTX ISA, "Asynchronous copy operations"):
who reads it earlier is told. Other threads wait for a barrier after that wait, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Step
from warpbook_labs.engines.interpreter.ptx.memory.reach import Reach
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.memory.watch import (
    count_traffic,
    tell_unwritten,
    watch_read,
    watch_write,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import Immediate, Instruction
from warpbook_labs.engines.interpreter.ptx.text.values import Bools

_SIZES = (4, 8, 16)
_WORD = np.dtype(np.uint32)


def asynchronous(instruction: Instruction, pc: int, state: State) -> Step | None:
    """Give what an instruction of asynchronous copies does; None if it is none."""
    if instruction.name != "cp" or instruction.modifiers[:1] != ("async",):
        return None
    modifiers, copies = instruction.modifiers[1:], state.copies
    if modifiers == ("commit_group",):
        return lambda mask: copies.close(state.chosen(mask))
    if modifiers == ("wait_all",):
        return _wait(0, True, state)
    if modifiers == ("wait_group",):
        left = instruction.operands[0]
        if not isinstance(left, Immediate):
            raise Unsupported(instruction.text, instruction.line)
        return _wait(left.bits, False, state)
    if modifiers[0] in ("ca", "cg"):
        return _copy(instruction, pc, state)
    raise Unsupported(instruction.text, instruction.line)


def _wait(left: int, is_all: bool, state: State) -> Step:
    def run(mask: Bools | None) -> None:
        lanes = state.chosen(mask)
        if is_all:
            state.copies.close(lanes)
        size = state.shared_cell_bytes
        for batch in state.copies.wait(lanes, left):
            # written now, for who comes after the next barrier
            who = state.who(batch.lanes, batch.pc, 0)
            for offset in range(0, batch.size_bytes, size):
                state.shared_tracker.note_write((batch.at + offset) // size, who)

    return run


def _copy(instruction: Instruction, pc: int, state: State) -> Step:
    to, of, size, *more = instruction.operands
    if not isinstance(size, Immediate) or size.bits not in _SIZES or len(more) > 1:
        raise Unsupported(instruction.text, instruction.line)
    width, lanes = size.bits, state.lanes
    taken: Any = np.uint32(width)
    if more:
        if lanes.width_bytes(more[0]) == 1:
            # a predicate, which has the source ignored
            raise Unsupported(instruction.text, instruction.line)
        taken = lanes.source(more[0], "u32")
    source = Reach(instruction, of, pc, state, "copies", "global")
    target = Reach(instruction, to, pc, state, "copies to", "shared")

    def run(mask: Bools | None) -> None:
        given = np.broadcast_to(taken, (lanes.count,))
        held = np.zeros((lanes.count, width // 4), np.uint32)
        reads = state.active(mask) & (given > 0)
        if reads.any():
            for place in source.places(reads, width):
                count_traffic(place, width, pc, state)
                watch_read(place, width, pc, state, 0)
                for word in range(width // 4):
                    one = dataclasses.replace(place, at=place.at + 4 * word)
                    tell_unwritten(one, 4, pc, state)
                    held[one.chosen, word] = one.space.read(one.at, _WORD)
        # what lies beyond the bytes that are taken becomes zero
        octets = held.view(np.uint8)
        octets[np.arange(width)[None, :] >= given[:, None]] = 0
        for place in target.places(mask, width):
            count_traffic(place, width, pc, state)
            values = [held[place.chosen, word] for word in range(width // 4)]
            watch_write(place, values, pc, state, 0)
            for word, value in enumerate(values):
                place.space.write(place.at + 4 * word, value)
            state.copies.begin(place.chosen, place.at, width, pc)

    return run
