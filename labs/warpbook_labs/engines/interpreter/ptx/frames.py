"""Frames on a thread's stack, for functions that may call themselves.

All else is put in where it is called. Such a function stands once in the program, and
what a call of it has of its own lies in a frame: parameters, results, local variables,
and the registers that are needed once another call of it has ended. The frames of a
thread lie one behind the other in its own memory; a register tells where the last one
begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from warpbook_labs.engines.interpreter.ptx.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.loops import results, sources
from warpbook_labs.engines.interpreter.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Register,
    Symbol,
    Vector,
)
from warpbook_labs.engines.interpreter.ptx.values import DTYPES

#: where a thread's last frame begins; in the kernel itself it is 0
STACK = Register("%stack")
#: an address in a frame, for one instruction
ADDRESS = Register("%in_frame")
#: a predicate as a number, while it is moved
_NUMBER = Register("%as_number")
REGISTERS = {STACK.name: "u64", ADDRESS.name: "u64", _NUMBER.name: "u32"}
#: four times what GPUs give a thread, unless the host asks for more
STACK_BYTES = 4096
#: modifies a `call` that makes sure that there is room for one more frame
ROOM = "%room"
_ENDS = frozenset({"ret", "exit", "trap"})


@dataclass
class Frame:
    """What a call of a function has on the stack, or a launch of the kernel."""

    number: int
    #: without what is kept while another call goes on
    size_bytes: int = 0
    #: of functions: where it begins, how it ends, and where it goes on behind each call
    entry: str = ""
    function: str = ""
    returns_to: str = ""
    labels: list[str] = field(default_factory=list)
    first: int = 0

    def place(self, size_bytes: int, alignment_bytes: int) -> int:
        """Make room for a variable; give where it is in the frame."""
        at = -(-self.size_bytes // alignment_bytes) * alignment_bytes
        self.size_bytes = at + size_bytes
        return at


@dataclass(frozen=True)
class Site:
    """A call of a function from within itself, and what its code is in the program."""

    label: str
    first: int
    last: int


@dataclass
class Plan:
    """What is known of frames only once a kernel has been put together."""

    #: of each frame, by its number
    sizes: dict[int, int] = field(default_factory=dict)
    #: registers that are kept, by the label behind a call
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)


def kept_at(
    sites: Iterable[Site],
    code: Sequence[Instruction],
    labels: dict[str, int],
    targets: dict[str, tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    """Name the registers that are needed behind each call, and that it overwrites."""
    needed = _needed(code, labels, targets)
    found = {}
    for site in sites:
        given = {
            name
            for instruction in code[site.first : site.last]
            for name in _names(results(instruction))
        }
        kept = needed[labels[site.label]] & given - REGISTERS.keys()
        found[site.label] = tuple(sorted(kept))
    return found


def _needed(
    code: Sequence[Instruction],
    labels: dict[str, int],
    targets: dict[str, tuple[str, ...]],
) -> list[set[str]]:
    """Name the registers that are read behind each place, before they are written."""
    needed: list[set[str]] = [set() for _ in range(len(code) + 1)]
    has_changed = True
    while has_changed:
        has_changed = False
        for pc in range(len(code) - 1, -1, -1):
            instruction = code[pc]
            live: set[str] = set()
            for other in _successors(pc, instruction, labels, targets):
                live |= needed[other]
            if instruction.guard is None:
                live -= set(_names(results(instruction)))
            live |= set(_names(sources(instruction)))
            guard = instruction.guard
            if guard is not None:
                live.add(
                    guard.register.name if isinstance(guard, Negated) else guard.name
                )
            if live != needed[pc]:
                needed[pc], has_changed = live, True
    return needed


def _successors(
    pc: int,
    instruction: Instruction,
    labels: dict[str, int],
    targets: dict[str, tuple[str, ...]],
) -> list[int]:
    operands = instruction.operands
    found = [pc + 1]
    if instruction.name == "brx" and isinstance(operands[1], Symbol):
        return [labels[each] for each in targets[operands[1].name]]
    if instruction.name == "bra" and isinstance(operands[0], Symbol):
        target = labels[operands[0].name]
        found = [target] if instruction.guard is None else [target, pc + 1]
    elif instruction.name in _ENDS and instruction.guard is None:
        found = []
    return found


def _names(operands: Iterable[object]) -> list[str]:
    names = []
    for each in operands:
        parts = each.parts if isinstance(each, Vector) else (each,)
        for part in parts:
            if isinstance(part, Negated):
                names.append(part.register.name)
            elif isinstance(part, Register):
                names.append(part.name)
    return names


def moved(
    register: str, type_: str, offset: int, is_back: bool
) -> list[Instruction]:
    """Give what stores a register into the last frame, or loads it from there."""
    at = Address(STACK, offset)
    if type_ == "pred":
        if is_back:
            zero = Immediate(0)
            return [
                Instruction("ld", ("local", "u32"), (_NUMBER, at)),
                Instruction("setp", ("ne", "u32"), (Register(register), _NUMBER, zero)),
            ]
        one = (_NUMBER, Immediate(1), Immediate(0), Register(register))
        return [
            Instruction("selp", ("u32",), one),
            Instruction("st", ("local", "u32"), (at, _NUMBER)),
        ]
    width = slot_bytes(type_)
    bits = ("local", f"b{8 * width}")
    if is_back:
        return [Instruction("ld", bits, (Register(register), at))]
    return [Instruction("st", bits, (at, Register(register)))]


def slot_bytes(type_: str) -> int:
    """Give the bytes that a register takes in a frame.

    Raises:
        Unsupported: its type is not known.
    """
    if type_ == "pred":
        return 4
    if type_ not in DTYPES or DTYPES[type_].itemsize > 8:  # noqa: PLR2004 - bytes
        raise Unsupported(f"registers of .{type_} in a function that calls itself")
    return DTYPES[type_].itemsize
