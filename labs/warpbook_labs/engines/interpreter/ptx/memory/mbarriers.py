"""Barriers that live in shared memory (`mbarrier`, which `cuda::barrier` is made of).

One has a number of arrivals that it waits for; when the last has come, its phase ends
and the next begins (PTX ISA, "mbarrier"). Who arrives releases what it did before, and
who finds the phase ended acquires it. Copies of Hopper that count bytes (`expect_tx`)
are not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Step
from warpbook_labs.engines.interpreter.ptx.memory.races import ATOMIC, WEAK
from warpbook_labs.engines.interpreter.ptx.memory.reach import Place, Reach
from warpbook_labs.engines.interpreter.ptx.memory.state import Phases, State
from warpbook_labs.engines.interpreter.ptx.memory.watch import watch_write
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Instruction,
    Operand,
    Register,
)
from warpbook_labs.engines.interpreter.ptx.text.values import Bools

_BYTES = 8
_HINTS = {"b64", "shared", "shared::cta", "relaxed", "acquire", "release", "cta"}
_TESTS = ("test_wait", "try_wait")


def mbarrier(instruction: Instruction, pc: int, state: State) -> Step | None:
    """Give what an instruction on such a barrier does; None if it is none."""
    if instruction.name != "mbarrier" or not instruction.modifiers:
        return None
    what, *hints = instruction.modifiers
    makers: dict[str, Callable[[Instruction, int, State], Step]] = {
        "init": _init,
        "inval": _end,
        "arrive": _arrive,
        **dict.fromkeys(_TESTS, _test),
    }
    known = _HINTS | ({"parity"} if what in _TESTS else set())
    if what not in makers or set(hints) - known:
        raise Unsupported(instruction.text, instruction.line)
    return makers[what](instruction, pc, state)


def _reach(instruction: Instruction, operand: Operand, pc: int, state: State) -> Reach:
    return Reach(instruction, operand, pc, state, "updates")


def _watch(place: Place, pc: int, state: State, strength: int) -> None:
    if place.name != "shared":
        raise Unsupported("mbarrier outside of shared memory", state.line(pc))
    watch_write(place, [np.zeros(len(place.at), np.uint64)], pc, state, strength)


def _of(place: Place, number: int, pc: int, state: State) -> Phases:
    known = state.mbarriers.get(int(place.at[number]))
    if known is None:
        raise Unsupported("an mbarrier that is not initialized", state.line(pc))
    return known


def _init(instruction: Instruction, pc: int, state: State) -> Step:
    reach = _reach(instruction, instruction.operands[0], pc, state)
    lanes = state.lanes
    count = lanes.source(instruction.operands[1], "u32")

    def run(mask: Bools | None) -> None:
        counts = np.broadcast_to(count, (lanes.count,))
        for place in reach.places(mask, _BYTES):
            _watch(place, pc, state, WEAK)
            place.space.write(place.at, np.zeros(len(place.at), np.uint64))
            for lane, at in zip(place.chosen, place.at, strict=True):
                wanted = int(counts[lane])
                state.mbarriers[int(at)] = Phases(wanted, wanted)

    return run


def _end(instruction: Instruction, pc: int, state: State) -> Step:
    reach = _reach(instruction, instruction.operands[0], pc, state)

    def run(mask: Bools | None) -> None:
        for place in reach.places(mask, _BYTES):
            _watch(place, pc, state, WEAK)
            for at in place.at:
                state.mbarriers.pop(int(at), None)

    return run


def _arrive(instruction: Instruction, pc: int, state: State) -> Step:
    operands, lanes = list(instruction.operands), state.lanes
    target = None
    if not isinstance(operands[0], Address):
        first = operands.pop(0)
        if isinstance(first, Register) and first.name != "_":
            target = lanes.target(first, "b64")
    reach = _reach(instruction, operands[0], pc, state)
    number: Any = np.uint32(1)
    if len(operands) > 1:
        number = lanes.source(operands[1], "u32")

    def run(mask: Bools | None) -> None:
        numbers = np.broadcast_to(number, (lanes.count,))
        for place in reach.places(mask, _BYTES):
            _watch(place, pc, state, ATOMIC)
            for at in np.unique(place.at):
                came = np.flatnonzero(place.at == at)
                barrier = _of(place, int(came[0]), pc, state)
                first_told = 0
                for count, lane in enumerate(place.chosen[came], 1):
                    if target is not None:
                        target[lane] = barrier.phase
                    is_last = barrier.arrive(int(numbers[lane]))
                    if is_last or count == len(came):
                        # as one, so that who waits has one clock to look at
                        lanes_told = place.chosen[came[first_told:count]]
                        clock = state.causality.clock_of(lanes_told)
                        barrier.tell(clock, is_last)
                        first_told = count

    return run


def _test(instruction: Instruction, pc: int, state: State) -> Step:
    lanes = state.lanes
    to, address, token = instruction.operands[:3]
    target = lanes.target(to, "pred")
    reach = _reach(instruction, address, pc, state)
    by_parity = "parity" in instruction.modifiers
    tokens = lanes.source(token, "u32" if by_parity else "b64")

    def run(mask: Bools | None) -> None:
        phases = np.broadcast_to(tokens, (lanes.count,))
        for place in reach.places(mask, _BYTES):
            _watch(place, pc, state, ATOMIC)
            over = np.zeros(len(place.at), np.bool_)
            for at, lane in enumerate(place.chosen):
                now, phase = _of(place, at, pc, state).phase, int(phases[lane])
                over[at] = now % 2 != phase % 2 if by_parity else now != phase
            target[place.chosen] = over
            for at in np.unique(place.at[over]):
                done = np.flatnonzero(over & (place.at == at))
                arrived = _of(place, int(done[0]), pc, state).arrived
                state.causality.learn(place.chosen[done], arrived)

    return run
