"""Instructions by which the threads of a warp talk to each other.

They run when all threads that they name have come to them; the machine sees to that.
Only `bar.warp.sync` (`__syncwarp`) puts memory in an order: shuffles, votes and matches
wait for each other, and the CUDA guide promises no more of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import (
    WARP,
    Lanes,
    Step,
    put,
    type_of,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Instruction,
    Vector,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import Bools

#: they name no threads: all of the warp must come
WHOLE_WARP = frozenset({"mma", "ldmatrix"})


def members(instruction: Instruction, lanes: Lanes) -> Any:
    """Give the mask of the threads that it waits for."""
    if instruction.name in WHOLE_WARP:
        return np.uint32(0xFFFFFFFF)
    place = 0 if instruction.name in ("bar", "barrier") else -1
    return lanes.source(instruction.operands[place], "b32")


def warp_wide(instruction: Instruction, pc: int, state: State) -> Step | None:
    if instruction.name == "activemask":
        return _active(instruction, state)
    if not instruction.is_warp_wide or instruction.name in WHOLE_WARP:
        return None
    if instruction.name == "shfl":
        return _shuffle(instruction, pc, state)
    made = {
        "vote": _vote,
        "match": _match,
        "redux": _reduce,
        "elect": _elect,
    }.get(instruction.name)
    if made is not None:
        return made(instruction, state)
    named = members(instruction, state.lanes)
    return lambda mask: _meet(mask, named, state)


def _meet(mask: Bools | None, named: Any, state: State) -> None:
    """Put in order what these threads did before and do after (`bar.warp.sync`)."""
    going = state.active(mask)
    rows = going.reshape(-1, WARP)
    whole = ~(state.alive.reshape(-1, WARP) & ~rows).any(axis=1) & rows.any(axis=1)
    causality = state.causality
    causality.warp_epoch.reshape(-1, WARP)[whole] += 1
    all_of_warp = np.repeat(whole, WARP)
    causality.meet(np.flatnonzero(going & all_of_warp), is_block=False)
    some = np.flatnonzero(going & ~all_of_warp)
    if not len(some):
        return
    masks = np.broadcast_to(named, going.shape)[some]
    groups = (some // WARP << 32) | masks.astype(np.int64)
    for group in np.unique(groups):
        causality.meet_some(some[groups == group])


def _rows(values: Any, lanes: Lanes) -> NDArray[Any]:
    return np.broadcast_to(values, (lanes.count,)).reshape(-1, WARP)


def _active(instruction: Instruction, state: State) -> Step:
    target = state.lanes.target(instruction.operands[0], "b32")

    def run(mask: Bools | None) -> None:
        put(target, _ballot(state.active(mask)), mask)

    return run


def _ballot(votes: Bools) -> NDArray[np.uint32]:
    """Give each lane the votes of its warp as bits."""
    bits = np.packbits(votes.reshape(-1, WARP), axis=1, bitorder="little")
    return np.repeat(bits.view(np.uint32).ravel(), WARP)


def _shuffle(instruction: Instruction, pc: int, state: State) -> Step:
    lanes = state.lanes
    mode, type_ = instruction.modifiers[-2:]
    if mode not in ("up", "down", "bfly", "idx"):
        raise Unsupported(instruction.text, instruction.line)
    names = parts_of(instruction.operands[0])
    target = lanes.target(names[0], type_)
    inside = lanes.target(names[1], "pred") if len(names) > 1 else None
    a = lanes.source(instruction.operands[1], type_)
    b, c = (lanes.source(operand, "u32") for operand in instruction.operands[2:4])
    lane = lanes.lane

    def run(mask: Bools | None) -> None:
        by = np.asarray(b).astype(np.int64) & 31
        clamp = np.asarray(c).astype(np.int64) & 31
        segment = np.asarray(c).astype(np.int64) >> 8 & 31
        most = (lane & segment) | (clamp & ~segment)
        if mode == "up":
            source, fits = lane - by, lane - by >= most
        elif mode == "down":
            source, fits = lane + by, lane + by <= most
        elif mode == "bfly":
            source, fits = lane ^ by, (lane ^ by) <= most
        else:
            source = (lane & segment) | (by & ~segment)
            fits = source <= most
        source = np.where(fits, source, lane)
        rows = _rows(a, lanes)
        taken = np.take_along_axis(rows, source.reshape(-1, WARP), axis=1).ravel()
        active = state.active(mask).reshape(-1, WARP)
        there = np.take_along_axis(active, source.reshape(-1, WARP), axis=1).ravel()
        odd = active.ravel() & ~there
        if odd.any():
            state.read_from_nobody(int(np.flatnonzero(odd)[0]), source, pc)
            if state.poison:
                garbage = np.array(state.poison, np.uint64).astype(taken.dtype)
                taken = np.where(odd, taken ^ garbage, taken)
        put(target, taken, mask)
        if inside is not None:
            put(inside, fits, mask)

    return run


def _vote(instruction: Instruction, state: State) -> Step:
    lanes = state.lanes
    mode, type_ = instruction.modifiers[-2:]
    target = lanes.target(instruction.operands[0], type_)
    votes = lanes.predicate(instruction.operands[1])

    def run(mask: Bools | None) -> None:
        active = state.active(mask).reshape(-1, WARP)
        yes = np.broadcast_to(votes(), (lanes.count,)).reshape(-1, WARP) & active
        if mode == "ballot":
            put(target, _ballot(yes.ravel()), mask)
            return
        count, of = yes.sum(axis=1), active.sum(axis=1)
        vote = {
            "all": count == of,
            "any": count > 0,
            "uni": (count == of) | (count == 0),
        }[mode]
        put(target, np.repeat(vote, WARP), mask)

    return run


def _match(instruction: Instruction, state: State) -> Step:
    lanes, type_ = state.lanes, type_of(instruction)
    mode = instruction.modifiers[0]
    names = parts_of(instruction.operands[0])
    target = lanes.target(names[0], "b32")
    same_for_all = lanes.target(names[1], "pred") if len(names) > 1 else None
    a = lanes.source(instruction.operands[1], type_)

    def run(mask: Bools | None) -> None:
        active = state.active(mask).reshape(-1, WARP)
        rows = _rows(a, lanes)
        equal = (rows[:, :, None] == rows[:, None, :]) & active[:, None, :]
        bits = np.packbits(equal, axis=2, bitorder="little").view(np.uint32).ravel()
        if mode == "any":
            put(target, bits, mask)
            return
        everyone = _ballot(active.ravel())
        is_same = bits == everyone
        put(target, np.where(is_same, everyone, np.uint32(0)), mask)
        if same_for_all is not None:
            put(same_for_all, is_same, mask)

    return run


def _elect(instruction: Instruction, state: State) -> Step:
    lanes = state.lanes
    first = instruction.operands[0]
    if not isinstance(first, Vector) or len(first.parts) != 2:
        raise Unsupported(instruction.text, instruction.line)
    leader = lanes.target(first.parts[0], "b32")
    is_leader = lanes.target(first.parts[1], "pred")

    def run(mask: Bools | None) -> None:
        # the ISA leaves open which it is, and here it is the first that is there
        chosen = state.active(mask).reshape(-1, WARP).argmax(axis=1)
        put(leader, np.repeat(chosen, WARP).astype(leader.dtype), mask)
        put(is_leader, lanes.lane == np.repeat(chosen, WARP), mask)

    return run


def _reduce(instruction: Instruction, state: State) -> Step:
    lanes, type_ = state.lanes, type_of(instruction)
    operations: dict[str, tuple[np.ufunc, int]] = {
        "add": (np.add, 0),
        "and": (np.bitwise_and, -1),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }
    name = next(modifier for modifier in instruction.modifiers if modifier != "sync")
    target = lanes.target(instruction.operands[0], type_)
    a = lanes.source(instruction.operands[1], type_)
    if name in ("min", "max") and type_[0] in "us":
        limits = np.iinfo(target.dtype)
        operations["min"] = (np.minimum, limits.max)
        operations["max"] = (np.maximum, limits.min)
    if name not in operations:
        raise Unsupported(instruction.text, instruction.line)
    operate, nothing = operations[name]

    def run(mask: Bools | None) -> None:
        active = state.active(mask).reshape(-1, WARP)
        idle = np.array(nothing).astype(target.dtype)
        rows = np.where(active, _rows(a, lanes), idle)
        reduced = operate.reduce(rows, axis=1, dtype=target.dtype)
        put(target, np.repeat(reduced, WARP), mask)

    return run
