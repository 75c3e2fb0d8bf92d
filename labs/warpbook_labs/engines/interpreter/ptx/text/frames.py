"""Frames on a thread's stack, for functions that may call themselves.

All else is put in where it is called. Such a function stands once in the program, and
what a call of it has of its own lies in a frame: parameters, results, local variables,
and the registers that are needed once another call of it has ended. The frames of a
thread lie one behind the other in its own memory; a register tells where the last one
begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.loops import results, sources
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Linked,
    Negated,
    Operand,
    Register,
    Symbol,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES

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
    #: of functions: their label, and the register that tells where to go on
    function: str = ""
    entry: str = ""
    returns_to: str = ""
    #: the places where they go on
    labels: list[str] = field(default_factory=list)
    #: their code
    first: int = 0
    last: int = 0
    size_bytes: int = 0
    #: of what is handed to those that it calls, which is behind it
    handed_bytes: int = 0

    def place(self, size_bytes: int, alignment_bytes: int) -> int:
        """Make room for a variable; give where it is in the frame."""
        at = -(-self.size_bytes // alignment_bytes) * alignment_bytes
        self.size_bytes = at + size_bytes
        return at


@dataclass
class Plan:
    """What is known of frames only once a kernel has been put together."""

    #: of each frame, by its number; and of what is handed on, behind it
    sizes: dict[int, int] = field(default_factory=dict)
    handed: dict[int, int] = field(default_factory=dict)
    #: registers that are kept, by the label behind a call
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def next(
        self,
        frames: Iterable[Frame],
        sites: Iterable[tuple[str, Frame]],
        linked: Linked,
    ) -> Plan:
        """Give what is known once a kernel has been put together by this plan."""
        needed = _needed(linked)
        kept = {}
        for label, frame in sites:
            given = {
                name
                for instruction in linked.code[frame.first : frame.last]
                for name in _names(results(instruction))
            }
            names = needed[linked.labels[label]] & given - REGISTERS.keys()
            # what is loaded again is not needed any more, and is kept all the same
            kept[label] = tuple(sorted(names | {*self.kept.get(label, ())}))
        return Plan(
            {frame.number: frame.size_bytes for frame in frames},
            {frame.number: frame.handed_bytes for frame in frames},
            kept,
        )

    def frame_bytes(self, number: int) -> int:
        """Give the size of a frame, behind which the next one begins."""
        return -(-self.sizes.get(number, 0) // 16) * 16

    def room_bytes(self, number: int) -> int:
        """Give what a frame takes with what is handed on."""
        return self.frame_bytes(number) + self.handed.get(number, 0)


def _needed(linked: Linked) -> list[set[str]]:
    """Name the registers that are read behind each place, before they are written."""
    code = linked.code
    needed: list[set[str]] = [set() for _ in range(len(code) + 1)]
    has_changed = True
    while has_changed:
        has_changed = False
        for pc in range(len(code) - 1, -1, -1):
            instruction = code[pc]
            live: set[str] = set()
            for other in _successors(pc, linked):
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


def _successors(pc: int, linked: Linked) -> list[int]:
    instruction, labels = linked.code[pc], linked.labels
    operands = instruction.operands
    following = [pc + 1]
    if instruction.name == "brx" and isinstance(operands[1], Symbol):
        return [labels[label] for label in linked.targets[operands[1].name]]
    if instruction.name == "bra" and isinstance(operands[0], Symbol):
        target = labels[operands[0].name]
        following = [target] if instruction.guard is None else [target, pc + 1]
    elif instruction.name in _ENDS and instruction.guard is None:
        following = []
    return following


def _names(operands: Iterable[Operand]) -> list[str]:
    names = []
    for operand in operands:
        for part in parts_of(operand):
            if isinstance(part, Negated):
                names.append(part.register.name)
            elif isinstance(part, Register):
                names.append(part.name)
    return names


def moved(register: str, type_: str, offset: int, is_back: bool) -> list[Instruction]:
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
    if type_ not in DTYPES or DTYPES[type_].itemsize > 8:
        raise Unsupported(f"registers of .{type_} in a function that calls itself")
    return DTYPES[type_].itemsize
