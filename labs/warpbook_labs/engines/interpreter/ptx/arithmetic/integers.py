"""Instructions that compute with whole numbers and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import (
    Lanes,
    Step,
    put,
    type_of,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES, Bools, Values

_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
    "min": np.minimum,
    "max": np.maximum,
    "neg": np.negative,
    "abs": np.absolute,
}
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def integer(instruction: Instruction, lanes: Lanes) -> Step | None:
    type_ = type_of(instruction)
    if type_ not in DTYPES or DTYPES[type_].kind not in "uib" or "f16" in type_:
        return None
    name = instruction.name
    modifiers = instruction.modifiers[:-1]
    if "cc" in modifiers or name in ("addc", "subc", "madc"):
        return None
    if name in _UFUNCS and not set(modifiers) - {"sat"} and type_ != "bf16":
        if "sat" in modifiers:
            return _saturating(instruction, lanes, type_)
        return _ufunc(instruction, lanes, type_)
    if name in ("mul", "mad"):
        return _product(instruction, lanes, type_, modifiers)
    made = _OTHERS.get(name)
    if made is None:
        return None
    target = lanes.target(instruction.operands[0], _result_type(name, type_))
    return made(instruction, lanes, type_, target)


def _result_type(name: str, type_: str) -> str:
    return "u32" if name in ("popc", "clz", "bfind") else type_


def _ufunc(instruction: Instruction, lanes: Lanes, type_: str) -> Step:
    function = _UFUNCS[instruction.name]
    target = lanes.target(instruction.operands[0], type_)
    sources = [lanes.source(operand, type_) for operand in instruction.operands[1:]]
    if type_ == "pred" and instruction.name == "not":
        function = np.logical_not

    def run(mask: Bools | None) -> None:
        if mask is None:
            function(*sources, out=target)
        else:
            function(*sources, out=target, where=mask)

    return run


def _saturating(instruction: Instruction, lanes: Lanes, type_: str) -> Step:
    if type_ != "s32" or instruction.name not in ("add", "sub"):
        raise Unsupported(instruction.text, instruction.line)
    target = lanes.target(instruction.operands[0], type_)
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:])
    function = _UFUNCS[instruction.name]
    limits = np.iinfo(np.int32)

    def run(mask: Bools | None) -> None:
        wide = function(a, b, dtype=np.int64)
        put(target, np.clip(wide, limits.min, limits.max).astype(np.int32), mask)

    return run


def _product(
    instruction: Instruction, lanes: Lanes, type_: str, modifiers: tuple[str, ...]
) -> Step:
    part = next(
        (modifier for modifier in modifiers if modifier in ("lo", "hi", "wide")), None
    )
    if part is None or "sat" in modifiers:
        raise Unsupported(instruction.text, instruction.line)
    result = _WIDER[type_] if part == "wide" else type_
    target = lanes.target(instruction.operands[0], result)
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:3])
    added = None
    if instruction.name == "mad":
        added = lanes.source(instruction.operands[3], result)
    parts: dict[str, Callable[..., Any]] = {
        "lo": np.multiply,
        "hi": high_product,
        "wide": _wide_product,
    }
    multiply = parts[part]

    def run(mask: Bools | None) -> None:
        product = multiply(a, b)
        put(target, product if added is None else product + added, mask)

    return run


def _wide_product(a: Values, b: Values) -> Values:
    wider = np.dtype(f"{np.asarray(a).dtype.kind}{2 * np.asarray(a).dtype.itemsize}")
    product: Values = np.multiply(a, b, dtype=wider)
    return product


def high_product(a: Values, b: Values) -> Values:
    """Give the upper half of a product."""
    dtype = np.result_type(a, b)
    bits = 8 * dtype.itemsize
    if bits < 64:
        wide = _wide_product(np.asarray(a, dtype), np.asarray(b, dtype))
        return (wide >> wide.dtype.type(bits)).astype(dtype)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = np.asarray(a).astype(np.uint64), np.asarray(b).astype(np.uint64)
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    low = x_low * y_low
    middle = x_high * y_low + (low >> half)
    other = x_low * y_high + (middle & mask)
    high = x_high * y_high + (middle >> half) + (other >> half)
    if dtype.kind == "i":
        high = high - np.where(np.asarray(a) < 0, y, np.uint64(0))
        high = high - np.where(np.asarray(b) < 0, x, np.uint64(0))
    return high.astype(dtype)


Maker = Callable[[Instruction, Lanes, str, Values], Step]


def _pure(compute: Callable[..., Any], *types: str) -> Maker:
    """Make an instruction that is a function of its operands alone.

    Args:
        compute: takes the arrays, and gives the result.
        types: of the operands, where they are not the instruction's own.
    """

    def make(
        instruction: Instruction, lanes: Lanes, type_: str, target: Values
    ) -> Step:
        sources = [
            lanes.source(operand, types[at] if at < len(types) and types[at] else type_)
            for at, operand in enumerate(instruction.operands[1:])
        ]

        def run(mask: Bools | None) -> None:
            put(target, compute(*sources), mask)

        return run

    return make


def _quotient(a: Values, b: Values) -> Values:
    """Divide towards zero; by zero, give all ones as the hardware does."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if b.dtype.kind == "u":
        quotient = a // safe
    else:
        quotient = a // safe
        quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, np.array(-1).astype(quotient.dtype), quotient)


def _remainder(a: Values, b: Values) -> Values:
    safe = np.where(b == 0, b.dtype.type(1), b)
    remainder: Values = np.fmod(a, safe)
    return np.where(b == 0, a, remainder)


def _arrays(function: Callable[[Values, Values], Values]) -> Callable[..., Values]:
    return lambda a, b: function(np.asarray(a), np.asarray(b))


def _shift_left(a: Values, by: Values) -> Values:
    bits = 8 * np.asarray(a).itemsize
    dtype = np.asarray(a).dtype
    moved = np.left_shift(a, np.minimum(by, bits - 1).astype(dtype))
    return np.where(np.asarray(by) >= bits, dtype.type(0), moved)


def _shift_right(a: Values, by: Values) -> Values:
    bits = 8 * np.asarray(a).itemsize
    dtype = np.asarray(a).dtype
    moved = np.right_shift(a, np.minimum(by, bits - 1).astype(dtype))
    if dtype.kind == "i":
        return moved
    return np.where(np.asarray(by) >= bits, dtype.type(0), moved)


def _count_bits(a: Values) -> Values:
    return np.bitwise_count(a)


def _leading_zeros(a: Values) -> Values:
    bits = 8 * a.itemsize
    return (bits - _bit_length(a)).astype(np.uint32)


def _bit_length(a: Values) -> Values:
    """Count the bits up to the highest that is set."""
    filled = a.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < 8 * a.itemsize:
            filled |= filled >> a.dtype.type(shift)
    return np.bitwise_count(filled).astype(np.int64)


def _find(instruction: Instruction, lanes: Lanes, type_: str, target: Values) -> Step:
    a = lanes.source(instruction.operands[1], type_)
    amount = "shiftamt" in instruction.modifiers
    bits = int(type_[1:])

    def run(mask: Bools | None) -> None:
        bare = np.where(a < 0, ~a, a) if type_[0] == "s" else a
        highest = _bit_length(bare.astype(f"u{bits // 8}")) - 1
        positions = np.where(highest < 0, -1, bits - 1 - highest if amount else highest)
        put(target, positions.astype(np.uint32), mask)

    return run


def _reverse(a: Values) -> Values:
    octets = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), a.itemsize)
    flipped = np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1)
    return np.ascontiguousarray(flipped[:, ::-1]).view(a.dtype).reshape(len(a))


def _extract(a: Values, at: Values, length: Values) -> Values:
    """`bfe`: a field of bits, with its sign for a signed type."""
    a, at, length = np.broadcast_arrays(a, at, length)
    bits = 8 * a.itemsize
    at, length = (np.minimum(bound & 255, bits) for bound in (at, length))
    wide = a.astype(np.int64 if a.dtype.kind == "i" else np.uint64)
    length = np.minimum(length, bits - np.minimum(at, bits))
    lost = np.where(length == 0, 0, 64 - length)
    up = (lost - np.minimum(at, lost)).astype(wide.dtype)
    field = np.right_shift(np.left_shift(wide, up), lost.astype(wide.dtype))
    return np.where(length == 0, a.dtype.type(0), field.astype(a.dtype))


def _insert(a: Values, b: Values, at: Values, length: Values) -> Values:
    """`bfi`: the lowest bits of a, put into b."""
    a, b, at, length = np.broadcast_arrays(a, b, at, length)
    bits = 8 * b.itemsize
    at, length = (np.minimum(bound & 255, bits) for bound in (at, length))
    ones = np.array(-1).astype(b.dtype)
    field = np.where(
        length >= bits,
        ones,
        np.left_shift(b.dtype.type(1), length.astype(b.dtype)) - b.dtype.type(1),
    )
    inside = at < bits
    field = np.where(inside, _shift_left(field, at), b.dtype.type(0))
    inserted: Values = (b & ~field) | (_shift_left(a, at) & field)
    return inserted


def _logic(instruction: Instruction, lanes: Lanes, type_: str, target: Values) -> Step:
    """`lop3`: any function of three bits, as a table of eight."""
    a, b, c = (lanes.source(operand, "b32") for operand in instruction.operands[1:4])
    table = int(lanes.source(instruction.operands[4], "b32"))

    def run(mask: Bools | None) -> None:
        bits = np.zeros_like(target)
        for row in range(8):
            if table >> row & 1:
                bits |= (
                    (a if row & 4 else ~a)
                    & (b if row & 2 else ~b)
                    & (c if row & 1 else ~c)
                )
        put(target, bits, mask)

    return run


def _pair(low: Values, high: Values) -> Values:
    """Put two words of 32 bits into one of 64."""
    upper = np.asarray(high).astype(np.uint64) << np.uint64(32)
    return upper | np.asarray(low).astype(np.uint64)


def _permute(
    instruction: Instruction, lanes: Lanes, type_: str, target: Values
) -> Step:
    """`prmt`: four bytes chosen from eight."""
    if instruction.modifiers != ("b32",):
        raise Unsupported(instruction.text, instruction.line)
    a, b, chosen = (
        lanes.source(operand, "b32") for operand in instruction.operands[1:]
    )

    def run(mask: Bools | None) -> None:
        both = _pair(a, b)
        permuted = np.zeros(len(target), np.uint32)
        for place in range(4):
            pick = np.asarray(chosen).astype(np.uint64) >> np.uint64(4 * place)
            byte = (both >> ((pick & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
            sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            byte = np.where(pick & np.uint64(8), sign, byte)
            permuted |= (byte << np.uint64(8 * place)).astype(np.uint32)
        put(target, permuted, mask)

    return run


def _funnel(instruction: Instruction, lanes: Lanes, type_: str, target: Values) -> Step:
    """`shf`: two words shifted as one."""
    left = "l" in instruction.modifiers
    wraps = "wrap" in instruction.modifiers
    low, high, by = (
        lanes.source(operand, "b32") for operand in instruction.operands[1:]
    )

    def run(mask: Bools | None) -> None:
        both = _pair(low, high)
        amount = (
            np.asarray(by) & np.uint32(31) if wraps else np.minimum(by, np.uint32(32))
        )
        amount = amount.astype(np.uint64)
        moved = (both << amount) >> np.uint64(32) if left else both >> amount
        put(target, moved.astype(np.uint32), mask)

    return run


def _dot(instruction: Instruction, lanes: Lanes, type_: str, target: Values) -> Step:
    """`dp4a`: the sum of four products of bytes."""
    kinds = [
        modifier for modifier in instruction.modifiers if modifier in ("u32", "s32")
    ]
    a, b = (lanes.source(operand, "b32") for operand in instruction.operands[1:3])
    added = lanes.source(instruction.operands[3], type_)
    views = [np.int8 if kind == "s32" else np.uint8 for kind in kinds]

    def run(mask: Bools | None) -> None:
        parts = [
            np.broadcast_to(np.asarray(packed), target.shape)
            .copy()
            .view(view)
            .reshape(-1, 4)
            .astype(np.int64)
            for packed, view in zip((a, b), views, strict=True)
        ]
        total = (parts[0] * parts[1]).sum(axis=1) + added
        put(target, total.astype(target.dtype), mask)

    return run


def _carry_on(a: Values, b: Values, c: Values) -> Values:
    """`sad`: |a - b| + c."""
    total: Values = np.where(a > b, a - b, b - a) + c
    return total


_OTHERS: dict[str, Maker] = {
    "div": _pure(_arrays(_quotient)),
    "rem": _pure(_arrays(_remainder)),
    "shl": _pure(_shift_left, "", "b32"),
    "shr": _pure(_shift_right, "", "b32"),
    "popc": _pure(_count_bits),
    "clz": _pure(_leading_zeros),
    "brev": _pure(_reverse),
    "bfind": _find,
    "bfe": _pure(_extract, "", "u32", "u32"),
    "bfi": _pure(_insert, "", "", "u32", "u32"),
    "lop3": _logic,
    "prmt": _permute,
    "shf": _funnel,
    "dp4a": _dot,
    "sad": _pure(_carry_on),
}
