"""What kernels ask of the driver: to print, to give up, and to have a stack."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Step
from warpbook_labs.engines.interpreter.ptx.memory.spaces import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    WRITTEN,
)
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    Fault,
    Unsupported,
    on_line,
)
from warpbook_labs.engines.interpreter.ptx.text.frames import ROOM, STACK_BYTES
from warpbook_labs.engines.interpreter.ptx.text.link import NO_FUNCTION
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Immediate,
    Instruction,
    Register,
    Symbol,
)
from warpbook_labs.engines.interpreter.ptx.text.values import Bools

#: what kernels may print in all; a GPU's buffer has 1 MiB
MAX_PRINTED = 100_000
_MAX_TEXT = 4_000
_FORMAT = re.compile(r"%([-+ #0]*)(\d*)(?:\.(\d+))?(hh|ll|h|l|z)?([diouxXeEfgGcsp%])")


def driver_call(instruction: Instruction, state: State) -> Step:
    if instruction.modifiers[0] == ROOM:
        return _room(instruction, state)
    if instruction.modifiers[0] == NO_FUNCTION:
        return _no_function(instruction, state)
    places = []
    for operand in instruction.operands:
        base: Any = np.zeros(state.lanes.count, np.uint64)
        if isinstance(operand, Address) and isinstance(operand.base, Register):
            places.append((state.lanes.source(operand.base, "u64"), operand.offset))
        elif isinstance(operand, Symbol) and operand.name in state.linked.local:
            places.append((base, state.linked.local[operand.name].offset))
        else:
            raise Unsupported(f"a call of {instruction.modifiers[0]}", instruction.line)

    def begin_of(lane: int, at: int) -> int:
        base, offset = places[at]
        return lane * state.local_stride + int(base[lane]) + offset

    def argument(lane: int, at: int) -> int:
        begin = begin_of(lane, at)
        return int.from_bytes(state.local.data[begin : begin + 8].tobytes(), "little")

    def print_all(mask: Bools | None) -> None:
        for lane in state.chosen(mask):
            for at in range(2, len(places)):
                # the number of values, which nobody asks for
                begin = begin_of(int(lane), at)
                state.local.data[begin : begin + 4] = 0
                state.local.state[begin : begin + 4] = WRITTEN
            if len(state.report.printed) < MAX_PRINTED:
                text = _text(argument(int(lane), 0), state)
                values = _values(argument(int(lane), 1), int(lane), state)
                state.report.printed += _formatted(text, values, state)

    def give_up(mask: Bools | None) -> None:
        lane = int(state.chosen(mask)[0])
        name = state.lanes.words_of(lane)
        what = _text(argument(lane, 0), state)
        line = instruction.line
        raise Fault(
            "assertion",
            f"{name} found{on_line(line)} that this does not hold: {what}.",
            line,
        )

    return print_all if instruction.modifiers[0] == "vprintf" else give_up


def _room(instruction: Instruction, state: State) -> Step:
    """Give up where a thread's stack has no room for one more frame."""
    begin, size, name = instruction.operands
    assert isinstance(size, Immediate) and isinstance(name, Symbol)
    frames = state.lanes.source(begin, "u64")
    most = state.linked.local_bytes - size.bits

    def run(mask: Bools | None) -> None:
        chosen = state.chosen(mask)
        over = chosen[frames[chosen] > most]
        if not len(over):
            return
        thread = state.lanes.words_of(over[0])
        line = instruction.line
        raise Fault(
            "too long",
            f"{thread} calls `{_plain(name.name)}`{on_line(line)} within itself, and "
            f"its stack of {STACK_BYTES:,} bytes has no room for one more call. Does "
            "it never end? GPUs have 1,024 bytes, unless the host asks for more.",
            line,
        )

    return run


def _no_function(instruction: Instruction, state: State) -> Step:
    """Give up where a pointer is no function's that fits."""
    pointer = state.lanes.source(instruction.operands[0], "u64")

    def run(mask: Bools | None) -> None:
        lane = int(state.chosen(mask)[0])
        thread = state.lanes.words_of(lane)
        line = instruction.line
        raise Fault(
            "out of bounds",
            f"{thread} calls a function{on_line(line)} by the address "
            f"{int(pointer[lane]):#x}, where none is that has these parameters and "
            "results.",
            line,
        )

    return run


def _plain(name: str) -> str:
    """Give the name of a function as it is in the source, without its types."""
    mangled = re.match(r"_Z(\d+)", name)
    if mangled is None:
        return name
    return name[mangled.end() : mangled.end() + int(mangled[1])]


def _text(address: int, state: State) -> str:
    space = state.memory.space
    begin = address - GLOBAL_BASE
    if not 0 <= begin < len(space.data):
        return ""
    held = space.data[begin : begin + _MAX_TEXT]
    inside = space.state[begin : begin + _MAX_TEXT] == WRITTEN
    end = int(np.argmin(inside & (held != 0)))
    return held[:end].tobytes().decode(errors="replace")


def _values(address: int, lane: int, state: State) -> bytes:
    """Read what is to be printed from a thread's own memory."""
    begin = address - LOCAL_WINDOW
    if not 0 <= begin < state.local_stride:
        return b""
    own = lane * state.local_stride
    return state.local.data[own + begin : own + state.local_stride].tobytes()


def _formatted(text: str, values: bytes, state: State) -> str:
    """Write as C's printf does; every value takes its width, at least four bytes."""
    at = 0

    def take(size: int, code: str) -> object:
        nonlocal at
        at = -(-at // size) * size
        part = values[at : at + size]
        at += size
        return struct.unpack(code, part)[0] if len(part) == size else 0

    def one(match: re.Match[str]) -> str:
        flags, width, digits, size, kind = match.groups()
        if kind == "%":
            return "%"
        shape = f"%{flags}{min(int(width or 0), 100) or ''}"
        shape += "" if digits is None else f".{min(int(digits), 100)}"
        if kind in "eEfgG":
            return (shape + kind) % take(8, "<d")
        if kind == "s":
            return (shape + "s") % _text(int(str(take(8, "<Q"))), state)
        if kind == "p":
            return f"{take(8, '<Q'):#x}"
        wide = size in ("l", "ll", "z")
        signed = kind in "di"
        code = "<" + {(True, True): "q", (True, False): "Q", (False, True): "i"}.get(
            (wide, signed), "I"
        )
        value = take(8 if wide else 4, code)
        if kind == "c":
            return chr(int(str(value)) & 255)
        return (shape + ("d" if kind in "diu" else kind)) % value

    return _FORMAT.sub(one, text)
