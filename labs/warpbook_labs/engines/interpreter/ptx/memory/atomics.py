"""Atomic operations: each thread's whole, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Step, type_of
from warpbook_labs.engines.interpreter.ptx.memory.reach import (
    HINTS,
    Place,
    Reach,
    check_modifiers,
    scope_of,
    strength_of,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.memory.watch import (
    count_traffic,
    tell_flags,
    tell_unwritten,
    watch_write,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Instruction,
    Operand,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES, Bools, Values


def _wrapping_increment(old: Values, limit: Values) -> Values:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _wrapping_decrement(old: Values, limit: Values) -> Values:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_ATOMIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": _wrapping_increment,
    "dec": _wrapping_decrement,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
}


#: of a vector
_PARTS = {"v2": 2, "v4": 4}
#: by which threads take turns at a lock
_EXCHANGES = (_ATOMIC["exch"], _ATOMIC["cas"])


def _take_turns(place: Place, values: list[Values], old: Values) -> None:
    """Exchange one place with each thread's number, if it holds what was expected."""
    at, dtype = place.at[:1], old.dtype
    now = place.space.read(at, dtype)[0]
    expected = values[0] if len(values) > 1 else None
    for number, new in enumerate(values[-1]):
        old[number] = now
        if expected is None or now == expected[number]:
            now = new
    place.space.write(at, np.array([now], dtype))


def atomic(instruction: Instruction, pc: int, state: State) -> Step:
    """Give what `atom` and `red` do."""
    lanes, type_ = state.lanes, type_of(instruction)
    name = next(
        (modifier for modifier in instruction.modifiers if modifier in _ATOMIC), None
    )
    dtype = DTYPES.get(type_)
    if name is None or dtype is None or type_ in ("f16x2", "bf16", "bf16x2"):
        raise Unsupported(instruction.text, instruction.line)
    check_modifiers(instruction, HINTS | {name})
    operate = _ATOMIC[name]
    operands = instruction.operands
    results: tuple[Operand, ...] = ()
    if instruction.name == "atom":
        results, operands = parts_of(operands[0]), operands[1:]
    count = next(
        (_PARTS[modifier] for modifier in instruction.modifiers if modifier in _PARTS),
        1,
    )
    given = [parts_of(operand) for operand in operands[1:]]
    if any(
        len(vector) != count for vector in (*given, *([results] if results else []))
    ):
        raise Unsupported(instruction.text, instruction.line)
    targets = [
        lanes.target(result, type_) if state.is_read(result) else None
        for result in results
    ] or [None] * count
    reach = Reach(instruction, operands[0], pc, state, "updates")
    strength, scope = strength_of(instruction, pc, state), scope_of(instruction)
    releases = bool({"release", "acq_rel"} & set(instruction.modifiers))
    acquires = bool({"acquire", "acq_rel"} & set(instruction.modifiers))
    sources = [[lanes.source(part, type_) for part in parts] for parts in given]
    width = dtype.itemsize * count

    def run(mask: Bools | None) -> None:
        for place in reach.places(mask, width):
            count_traffic(place, width, pc, state, count)
            values = [
                [np.broadcast_to(part, (lanes.count,))[place.chosen] for part in parts]
                for parts in sources
            ]
            is_watched = place.name in ("global", "shared")
            if is_watched:
                if releases:
                    state.causality.release(place.chosen, scope)
                watch_write(place, values[0], pc, state, strength)
            for part, target in enumerate(targets):
                # of a vector each part is an operation of its own
                at = place.at + part * dtype.itemsize
                one = Place(place.name, place.space, place.chosen, at)
                if target is not None or name != "exch":
                    # an exchange whose old number nobody wants is but a write
                    tell_unwritten(one, dtype.itemsize, pc, state)
                own = [value[part] for value in values]
                old = _one_after_the_other(one, own, operate, dtype, target is None)
                if is_watched:
                    wrote = np.ones(len(at), np.bool_)
                    if name == "cas" and old is not None:
                        wrote = old == own[0]
                    tell_flags(one, state, wrote)
                if target is not None and old is not None:
                    target[place.chosen] = old
            if is_watched and acquires:
                state.causality.acquire(place.chosen, scope)

    return run


def _one_after_the_other(
    place: Place,
    values: list[Values],
    operate: Callable[..., Any],
    dtype: np.dtype[Any],
    is_silent: bool,
) -> Values | None:
    """Do each lane's operation in their order; give what was there before."""
    if is_silent and isinstance(operate, np.ufunc):
        operate.at(place.space.data.view(dtype), place.at // dtype.itemsize, values[0])
        return None
    old = np.zeros(len(place.at), dtype)
    if operate in _EXCHANGES and (place.at == place.at[0]).all():
        _take_turns(place, values, old)
        return old
    left = np.arange(len(place.at))
    while len(left):
        # of each place the first that is left
        _, first = np.unique(place.at[left], return_index=True)
        now = left[first]
        old[now] = place.space.read(place.at[now], dtype)
        new = operate(old[now], *(value[now] for value in values))
        place.space.write(place.at[now], np.asarray(new, dtype))
        left = np.delete(left, first)
    return old
