"""Which stores of a kernel may have written what a load reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpbook_labs.engines.interpreter.ptx.text.loops import results, sources
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Instruction,
    Register,
    Symbol,
    Vector,
)

WRITES = frozenset({"st", "atom", "red", "cp"})
_SPACES = frozenset({"global", "shared", "local", "param", "const"})


class Stores:
    """The stores of a kernel, by the memory and the variables that they reach."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._code = code
        #: by name, the places of the instructions that give a register
        self.by_result: dict[str, list[int]] = {}
        for place, instruction in enumerate(code):
            for name in register_names(results(instruction)):
                self.by_result.setdefault(name, []).append(place)
        self._places = [
            place
            for place, instruction in enumerate(code)
            if instruction.name in WRITES
        ]
        self._symbols: dict[int, frozenset[Symbol]] = {}

    def before(self, load: int) -> list[int]:
        """Give the places of stores that may have written what a load reads."""
        space = _space(self._code[load])
        if space == "const":
            # no kernel stores there
            return []
        if space == "param":
            return self._handing(load)
        reached = self._reached(load)
        return [
            place
            for place in self._places
            if _is_same(space, _space(self._code[place]))
            and _may_meet(reached, self._reached(place))
        ]

    def _handing(self, load: int) -> list[int]:
        address = address_of(self._code[load])
        if address is None:
            return []
        base = address.base
        if isinstance(base, Symbol):
            base = Symbol(base.name)
        return [
            place
            for place in self._places
            if _space(self._code[place]) == "param"
            and (to := address_of(self._code[place])) is not None
            and to.base == base
        ]

    def to(self, is_meant: Callable[[Symbol], bool]) -> list[int]:
        """Give the stores whose addresses may be computed from some variables."""
        return [
            place for place in self._places if any(map(is_meant, self._reached(place)))
        ]

    def _reached(self, place: int) -> frozenset[Symbol]:
        """Give the variables and parameters from which an address is computed."""
        bases = self._symbols.get(place)
        if bases is None:
            bases = self._symbols[place] = frozenset(self._bases(place))
        return bases

    def _bases(self, place: int) -> set[Symbol]:
        address = address_of(self._code[place])
        pending: list[object] = [] if address is None else [address.base]
        seen: set[object] = set()
        symbols: set[Symbol] = set()
        while pending:
            base = pending.pop()
            if base in seen:
                continue
            seen.add(base)
            if isinstance(base, Symbol):
                symbols.add(base)
            elif isinstance(base, Register):
                for at in self.by_result.get(base.name, ()):
                    pending += sources(self._code[at])
        return symbols


def address_of(instruction: Instruction) -> Address | None:
    operands = instruction.operands
    at = 0 if instruction.name in ("st", "red", "cp") else 1
    operand = operands[at] if len(operands) > at else None
    return operand if isinstance(operand, Address) else None


def register_names(operands: Sequence[object]) -> list[str]:
    """Name the registers among operands, also those of vectors."""
    names = []
    for operand in operands:
        parts = operand.parts if isinstance(operand, Vector) else (operand,)
        names += [part.name for part in parts if isinstance(part, Register)]
    return names


def _space(instruction: Instruction) -> str:
    """Name the memory that an instruction reads or writes; nothing for any."""
    if instruction.name == "cp":
        # it copies from global memory
        return "shared"
    spaces = [modifier.partition("::")[0] for modifier in instruction.modifiers]
    return next((space for space in spaces if space in _SPACES), "")


def _is_same(one: str, other: str) -> bool:
    return one == other or not one or not other


def _may_meet(one: frozenset[Symbol], other: frozenset[Symbol]) -> bool:
    # an address that comes from nowhere known may be anything
    return not one or not other or bool(one & other)
