"""Reads the numbers of PTX, and what variables hold at first."""

from __future__ import annotations

import re

from warpbook_labs.engines.interpreter.ptx.text.errors import NotPtx
from warpbook_labs.engines.interpreter.ptx.text.program import Immediate

_FLOAT = re.compile(r"0([fFdD])([0-9a-fA-F]{8,16})$")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?$")
_NAME = re.compile(r"[\w$%.]+")
_POINTER_BYTES = 8


def width_bytes(type_: str) -> int:
    """Give the bytes of a type, such as "f32".

    Raises:
        NotPtx: it has no size.
    """
    bits = re.search(r"\d+$", type_)
    if bits is None:
        raise NotPtx(f"This type has no size: .{type_}.")
    return int(bits[0]) // 8


def initial(text: str, type_: str) -> tuple[bytes, tuple[tuple[int, str], ...]]:
    """Give what a variable holds at first, and the names whose addresses it holds."""
    width = width_bytes(type_)
    data, addresses = bytearray(), list[tuple[int, str]]()
    for value in re.findall(r"[^\s{},]+", text):
        known = number(value)
        if known is None:
            if width != _POINTER_BYTES or not _NAME.fullmatch(value):
                raise NotPtx(
                    f"A variable begins as {value[:40]!r}, which is no number."
                )
            addresses.append((len(data), value))
            known = Immediate(0)
        data += (known.bits & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return bytes(data), tuple(addresses)


def number(text: str) -> Immediate | None:
    """Give a number; None for what is none."""
    floating = _FLOAT.match(text)
    if floating is not None:
        return Immediate(int(floating[2], 16), 32 if floating[1] in "fF" else 64)
    if _INTEGER.match(text):
        return Immediate(int(text.rstrip("U"), 0))
    return None
