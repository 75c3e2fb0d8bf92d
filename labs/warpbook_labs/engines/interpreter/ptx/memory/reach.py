"""Where in memory an instruction reaches, checked for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.memory.causality import CTA, GPU
from warpbook_labs.engines.interpreter.ptx.memory.races import (
    ATOMIC,
    ATOMIC_IN_BLOCK,
    VOLATILE,
    WEAK,
)
from warpbook_labs.engines.interpreter.ptx.memory.spaces import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW_BYTES,
    Space,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    Fault,
    Unsupported,
    on_line,
)
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Symbol,
)
from warpbook_labs.engines.interpreter.ptx.text.values import Bools

Ints = NDArray[np.int64]
_SPACES = ("global", "shared", "local", "param", "const")
_ATOMIC = frozenset({"relaxed", "acquire", "release", "acq_rel"})
#: hints on caching and the scope of an order; all threads here see the same
HINTS = frozenset(
    "weak volatile relaxed acquire release acq_rel cta cluster gpu sys "
    "ca cg cs lu cv wb wt nc noftz v2 v4".split()
)


@dataclass(frozen=True)
class Place:
    """Lanes that reach into the same space."""

    name: str
    space: Space
    chosen: Ints
    #: in the space's bytes
    at: Ints


def space_of(instruction: Instruction) -> str:
    """Give the space that an instruction names, or "generic"."""
    for modifier in instruction.modifiers:
        name = modifier.split("::")[0]
        if name in _SPACES:
            return name
    return "generic"


def scope_of(instruction: Instruction) -> int:
    """Tell for whom an access or a fence is meant: a block, or all."""
    return CTA if "cta" in instruction.modifiers else GPU


def strength_of(instruction: Instruction, pc: int, state: State) -> int:
    """Tell how strong an access is, as `races.py` counts it."""
    modifiers = set(instruction.modifiers)
    if instruction.name in ("atom", "red") or modifiers & _ATOMIC:
        return ATOMIC if scope_of(instruction) == GPU else ATOMIC_IN_BLOCK
    if modifiers & {"volatile", "mmio"}:
        return ATOMIC if pc in state.polling.reads else VOLATILE
    return WEAK


def check_modifiers(instruction: Instruction, known: frozenset[str]) -> None:
    """Refuse what would mean something that is not done here.

    Raises:
        Unsupported: one of the modifiers is not known.
    """
    for modifier in instruction.modifiers[:-1]:
        if modifier.split("::")[0] in (*_SPACES, "L1", "L2", "level"):
            continue
        if modifier not in known:
            raise Unsupported(instruction.text, instruction.line)


class Reach:
    """Finds the memory that an address operand of an instruction means."""

    def __init__(
        self,
        instruction: Instruction,
        operand: Operand,
        pc: int,
        state: State,
        verb: str,
        space: str = "",
    ) -> None:
        """Take the operand; `verb` is what is done there, for messages.

        The space is the instruction's, unless it is given.
        """
        if not isinstance(operand, Address):
            raise Unsupported(instruction.text, instruction.line)
        self._state, self._pc, self._verb = state, pc, verb
        self._space = space or space_of(instruction)
        self._offset = operand.offset
        base = operand.base
        self._base: Any
        if isinstance(base, Symbol):
            self._base = self._symbol(base)
        elif isinstance(base, Immediate):
            self._base = np.int64(base.bits)
        else:
            width = state.lanes.width_bytes(base)
            self._base = state.lanes.source(base, f"u{8 * (width or 8)}")

    def _symbol(self, symbol: Symbol) -> Any:
        linked = self._state.linked
        if symbol.name in linked.local:
            self._space = "local"
            return np.int64(linked.local[symbol.name].offset + symbol.offset)
        if symbol.name in linked.shared:
            return np.int64(linked.shared[symbol.name].offset + symbol.offset)
        address = self._state.variables.get(symbol.name)
        if address is None:
            raise Unsupported(f"the variable {symbol.name.split('/')[0]}")
        return np.int64(address + symbol.offset)

    def places(self, mask: Bools | None, width: int) -> Iterator[Place]:
        """Give the lanes' places, space by space, each checked.

        Raises:
            Fault: an address is nobody's, or does not suit the width.
        """
        state = self._state
        chosen = state.chosen(mask)
        if np.ndim(self._base):
            address = self._base[chosen].astype(np.int64) + self._offset
        else:
            address = np.full(len(chosen), int(self._base) + self._offset, np.int64)
        names = [self._space]
        if self._space == "generic":
            in_shared = _within(address, SHARED_WINDOW)
            in_local = _within(address, LOCAL_WINDOW)
            begin, end = state.constants
            in_const = (address >= begin) & (address < end)
            groups = {
                "shared": (in_shared, SHARED_WINDOW),
                "local": (in_local, LOCAL_WINDOW),
                "const": (in_const, 0),
                "global": (~in_shared & ~in_local & ~in_const, 0),
            }
            for name, (inside, base) in groups.items():
                rows = np.flatnonzero(inside)
                if len(rows):
                    yield self._place(name, chosen[rows], address[rows] - base, width)
            return
        for name in names:
            yield self._place(name, chosen, address, width)

    def _place(self, name: str, chosen: Ints, address: Ints, width: int) -> Place:
        state = self._state
        if name in ("local", "param"):
            space, stride = state.local, state.local_stride
            at = address + chosen * stride
            inside = (address >= 0) & (address <= stride - width)
        elif name == "shared":
            space, stride = state.shared, state.shared_stride
            at = address + state.lanes.slot[chosen] * stride
            inside = (address >= 0) & (address <= stride - width)
        else:
            name = "const" if name == "const" else "global"
            space = state.memory.space
            at = address - GLOBAL_BASE
            inside = np.ones(len(at), np.bool_)
        odd = address % width != 0
        wrong = ~(inside & space.is_anyones(at, width))
        if wrong.any():
            self._fault("out of bounds", name, chosen, address, wrong, width)
        if odd.any():
            self._fault("misaligned", name, chosen, address, odd, width)
        if name == "const" and self._verb not in ("reads", "copies"):
            everyone = np.ones(len(at), np.bool_)
            self._fault("read-only", name, chosen, address, everyone, width)
        return Place(name, space, chosen, at)

    def _fault(
        self, kind: str, name: str, chosen: Ints, address: Ints, bad: Bools, width: int
    ) -> None:
        state = self._state
        at = int(np.flatnonzero(bad)[0])
        where = (
            state.memory.place(int(address[at]))
            if name in ("global", "const")
            else f"byte {int(address[at]):,} of {name} memory"
        )
        if kind == "out of bounds" and name in ("shared", "local"):
            own = state.linked.local_bytes
            size_bytes = state.shared_bytes if name == "shared" else own
            where += f", of which there are {size_bytes:,}"
        line = state.line(self._pc)
        what = {
            "misaligned": f", which is no multiple of {width}",
            "read-only": ", which is constant memory",
        }.get(kind, "")
        thread = state.lanes.words_of(chosen[at])
        count = int(bad.sum())
        others = f"; {count - 1:,} more threads do the same" if count > 1 else ""
        raise Fault(
            kind,
            f"{thread} {self._verb} {width} bytes{on_line(line)}: "
            f"{where}{what}{others}.",
            line,
        )


def _within(address: Ints, window: int) -> Bools:
    is_within: Bools = (address >= window) & (address < window + WINDOW_BYTES)
    return is_within
