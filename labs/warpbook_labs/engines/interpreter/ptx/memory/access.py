"""Loads, stores, conversions of addresses, and asynchronous copies (`cp.async`).

A copy from global to shared memory is done at once here, and is not there before its
thread has waited for it (`cp.async.wait_group`, `cp.async.wait_all`; PTX ISA,
"Asynchronous copy operations"): reading it earlier is a finding. Other threads wait for
a barrier after that wait, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import (
    Step,
    computed,
    put,
    type_of,
)
from warpbook_labs.engines.interpreter.ptx.memory.atomics import atomic
from warpbook_labs.engines.interpreter.ptx.memory.reach import (
    HINTS,
    Place,
    Reach,
    check_modifiers,
    scope_of,
    space_of,
    strength_of,
)
from warpbook_labs.engines.interpreter.ptx.memory.spaces import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.memory.watch import (
    count_traffic,
    tell_flags,
    tell_unwritten,
    watch_read,
    watch_write,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Symbol,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES, Bools, Values


def access(instruction: Instruction, pc: int, state: State) -> Step | None:
    """Give what an instruction does with memory; None if it does nothing with it."""
    makers: dict[str, Callable[[Instruction, int, State], Step]] = {
        "ld": _load,
        "ldu": _load,
        "st": _store,
        "atom": atomic,
        "red": atomic,
        "cvta": _convert_address,
    }
    made = makers.get(instruction.name)
    return None if made is None else made(instruction, pc, state)


def _load(instruction: Instruction, pc: int, state: State) -> Step:
    check_modifiers(instruction, HINTS)
    lanes, type_ = state.lanes, type_of(instruction)
    dtype = DTYPES.get(type_)
    if dtype is None:
        raise Unsupported(instruction.text, instruction.line)
    parts = parts_of(instruction.operands[0])
    targets = [
        lanes.target(part, f"b{8 * (lanes.width_bytes(part) or dtype.itemsize)}")
        for part in parts
    ]
    address = instruction.operands[1]
    parameter = _parameter(address, state)
    if parameter is not None:
        return _load_parameter(targets, parameter, dtype)
    reach = Reach(instruction, address, pc, state, "reads")
    strength, scope = strength_of(instruction, pc, state), scope_of(instruction)
    acquires = "acquire" in instruction.modifiers
    width = dtype.itemsize * len(parts)
    bits = np.dtype(f"u{dtype.itemsize}")

    def run(mask: Bools | None) -> None:
        for place in reach.places(mask, width):
            count_traffic(place, width, pc, state)
            if place.name in ("global", "shared"):
                watch_read(place, width, pc, state, strength)
                if acquires:
                    state.causality.acquire(place.chosen, scope)
            for number, target in enumerate(targets):
                at = place.at + number * dtype.itemsize
                values = place.space.read(at, bits).view(dtype)
                target[place.chosen] = _widened(values, target.dtype)
            first = Place(place.name, place.space, place.chosen, place.at)
            for number in range(len(targets)):
                one = Place(
                    first.name,
                    first.space,
                    first.chosen,
                    first.at + number * dtype.itemsize,
                )
                tell_unwritten(one, dtype.itemsize, pc, state)

    return run


def _widened(values: Values, container: np.dtype[Any]) -> Values:
    kind = "i" if values.dtype.kind == "i" else "u"
    bits = values.view(f"{kind}{values.itemsize}")
    return bits.astype(f"{kind}{container.itemsize}").view(container)


def _parameter(operand: Operand, state: State) -> bytes | None:
    """Give what the kernel was given, from this place on."""
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return None
    held = state.parameters.get(operand.base.name)
    return None if held is None else held[operand.base.offset + operand.offset :]


def _load_parameter(targets: list[Values], held: bytes, dtype: np.dtype[Any]) -> Step:
    numbers = np.frombuffer(held[: dtype.itemsize * len(targets)], dtype)

    def run(mask: Bools | None) -> None:
        for target, number in zip(targets, numbers, strict=True):
            put(target, _widened(number.reshape(1), target.dtype), mask)

    return run


def _store(instruction: Instruction, pc: int, state: State) -> Step:
    check_modifiers(instruction, HINTS)
    lanes, type_ = state.lanes, type_of(instruction)
    dtype = DTYPES.get(type_)
    if dtype is None:
        raise Unsupported(instruction.text, instruction.line)
    reach = Reach(instruction, instruction.operands[0], pc, state, "writes")
    parts = parts_of(instruction.operands[1])
    bits = np.dtype(f"u{dtype.itemsize}")
    sources = []
    for part in parts:
        held = lanes.width_bytes(part)
        sources.append(lanes.source(part, type_ if held is None else f"b{8 * held}"))
    strength, scope = strength_of(instruction, pc, state), scope_of(instruction)
    releases = "release" in instruction.modifiers
    width = dtype.itemsize * len(parts)

    def run(mask: Bools | None) -> None:
        for place in reach.places(mask, width):
            count_traffic(place, width, pc, state)
            values = [
                np.broadcast_to(source, (lanes.count,))[place.chosen].astype(bits)
                if np.ndim(source)
                else np.full(len(place.chosen), np.asarray(source).view(bits), bits)
                for source in sources
            ]
            if place.name in ("global", "shared"):
                if releases:
                    state.causality.release(place.chosen, scope)
                watch_write(place, values, pc, state, strength)
                if strength:
                    tell_flags(place, state)
            for number, value in enumerate(values):
                place.space.write(place.at + number * dtype.itemsize, value)

    return run


def _convert_address(instruction: Instruction, pc: int, state: State) -> Step:
    """`cvta`: between an address in a space and one that says which space it is."""
    type_ = type_of(instruction)
    space = space_of(instruction)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if "to" in instruction.modifiers:
        window = -window
    target = state.lanes.target(instruction.operands[0], type_)
    source = state.lanes.source(instruction.operands[1], type_)
    shift = np.array(window).astype(np.int64).astype(target.dtype)

    return computed(target, lambda: source + shift)


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
