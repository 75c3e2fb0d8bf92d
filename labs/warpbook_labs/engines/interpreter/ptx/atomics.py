"""Atomic operations: each thread's whole, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.lanes import Step, type_of
from warpbook_labs.engines.interpreter.ptx.program import Instruction
from warpbook_labs.engines.interpreter.ptx.reach import (
    HINTS,
    Place,
    Reach,
    check_modifiers,
    scope_of,
    strength_of,
)
from warpbook_labs.engines.interpreter.ptx.state import State
from warpbook_labs.engines.interpreter.ptx.values import DTYPES, Bools, Values
from warpbook_labs.engines.interpreter.ptx.watch import (
    count_traffic,
    tell_flags,
    tell_unwritten,
    watch_write,
)


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
    name = next((each for each in instruction.modifiers if each in _ATOMIC), None)
    dtype = DTYPES.get(type_)
    if name is None or dtype is None or type_ in ("f16x2", "bf16", "bf16x2"):
        raise Unsupported(instruction.text, instruction.line)
    check_modifiers(instruction, HINTS | {name})
    operate = _ATOMIC[name]
    target, operands = None, instruction.operands
    if instruction.name == "atom":
        if state.is_read(operands[0]):
            target = lanes.target(operands[0], type_)
        operands = operands[1:]
    reach = Reach(instruction, operands[0], pc, state, "updates")
    strength, scope = strength_of(instruction, pc, state), scope_of(instruction)
    releases = bool({"release", "acq_rel"} & set(instruction.modifiers))
    acquires = bool({"acquire", "acq_rel"} & set(instruction.modifiers))
    sources = [lanes.source(each, type_) for each in operands[1:]]

    def run(mask: Bools | None) -> None:
        for place in reach.places(mask, dtype.itemsize):
            count_traffic(place, dtype.itemsize, pc, state)
            values = [
                np.broadcast_to(each, (lanes.count,))[place.chosen] for each in sources
            ]
            if place.name in ("global", "shared"):
                if releases:
                    state.causality.release(place.chosen, scope)
                watch_write(place, values[:1], pc, state, strength)
            if target is not None or name != "exch":
                # an exchange whose old number nobody wants is but a write
                tell_unwritten(place, dtype.itemsize, pc, state)
            old = _one_after_the_other(place, values, operate, dtype, target is None)
            if place.name in ("global", "shared"):
                wrote = np.ones(len(place.at), np.bool_)
                if name == "cas" and old is not None:
                    wrote = old == values[0]
                tell_flags(place, state, wrote)
                if acquires:
                    state.causality.acquire(place.chosen, scope)
            if target is not None and old is not None:
                target[place.chosen] = old

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
        new = operate(old[now], *(each[now] for each in values))
        place.space.write(place.at[now], np.asarray(new, dtype))
        left = np.delete(left, first)
    return old
