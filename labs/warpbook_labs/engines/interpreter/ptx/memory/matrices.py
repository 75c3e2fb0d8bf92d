"""Tensor cores: `mma.sync` on the registers of a warp, and `ldmatrix`.

Which thread holds which element is told by the PTX ISA ("Matrix Fragments for
mma.m16n8k16" and others, "ldmatrix"). Products are exact, and their sum is rounded once
to FP32 here; a tensor core cuts bits off in between, so its last bits differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import WARP, Step, put
from warpbook_labs.engines.interpreter.ptx.memory.reach import Reach
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.memory.watch import (
    count_traffic,
    tell_unwritten,
    watch_read,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported, on_line
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Instruction,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import Bools, from_bf16
from warpbook_labs.results.findings import Finding

Ints = NDArray[np.int64]
_LANE = np.arange(WARP)
_GROUP, _IN_GROUP = _LANE // 4, _LANE % 4
_ROWS, _COLUMNS = 16, 8
#: bits of an element of A and B
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8}
#: depths that there are, by the bits of an element
_DEPTHS = {16: (8, 16), 32: (4, 8), 8: (16, 32)}
#: TF32 has 10 binary places of FP32's 23
_OF_TF32 = np.uint32(0xFFFFE000)


def matrix(instruction: Instruction, pc: int, state: State) -> Step | None:
    if instruction.name == "mma":
        if "m8n8k4" in instruction.modifiers and "f64" in instruction.modifiers:
            return _multiply_doubles(instruction, pc, state)
        return _multiply(instruction, pc, state)
    if instruction.name == "ldmatrix":
        return _load(instruction, pc, state)
    return None


def _places(bits: int, depth: int) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Tell where the elements of A and B lie that each lane holds.

    Returns:
        Of A rows and columns, of B the same: arrays of lanes by elements. Lanes of four
        share a row of A; a register holds neighbours in k, then comes the row eight
        further down, then the other half of k.
    """
    per_register = 32 // bits
    halves = depth // (4 * per_register)
    a_rows, a_columns, b_rows = [], [], []
    for half in range(halves):
        for lower in (0, 8):
            for part in range(per_register):
                a_rows.append(_GROUP + lower)
                a_columns.append(
                    _IN_GROUP * per_register + part + half * 4 * per_register
                )
        for part in range(per_register):
            b_rows.append(_IN_GROUP * per_register + part + half * 4 * per_register)
    b_columns = [_GROUP] * len(b_rows)
    stacked = [np.stack(given, axis=1) for given in (a_rows, a_columns)]
    other = [np.stack(given, axis=1) for given in (b_rows, b_columns)]
    return (stacked[0], stacked[1]), (other[0], other[1])


#: of C and D: lanes by four elements
_C_ROWS = np.stack([_GROUP, _GROUP, _GROUP + 8, _GROUP + 8], axis=1)
_C_COLUMNS = np.stack([_IN_GROUP * 2, _IN_GROUP * 2 + 1] * 2, axis=1)


def _numbers(words: NDArray[np.uint32], type_: str) -> NDArray[Any]:
    """Give the elements that registers hold, those of the first register first."""
    if type_ == "tf32":
        return (words & _OF_TF32).view(np.float32)
    if type_ == "bf16":
        return from_bf16(np.ascontiguousarray(words).view(np.uint16))
    dtype = {"f16": np.float16, "s8": np.int8, "u8": np.uint8}[type_]
    return np.ascontiguousarray(words).view(dtype)


def _multiply(instruction: Instruction, pc: int, state: State) -> Step:
    modifiers = instruction.modifiers
    kinds = [modifier for modifier in modifiers if modifier in (*_BITS, "f32", "s32")]
    shape = next(
        (modifier for modifier in modifiers if modifier.startswith("m16n8k")), ""
    )
    known = {"sync", "aligned", "row", "col", "satfinite", shape, *kinds}
    if len(kinds) != 4 or not shape or set(modifiers) - known:
        raise Unsupported(instruction.text, instruction.line)
    result, a_type, b_type, total = kinds
    depth, bits = int(shape[6:]), _BITS.get(a_type, 0)
    whole = bits == 8
    if (
        bits != _BITS.get(b_type)
        or result != total
        or result != ("s32" if whole else "f32")
        or depth not in _DEPTHS.get(bits, ())
        or "satfinite" in modifiers
    ):
        raise Unsupported(instruction.text, instruction.line)
    lanes = state.lanes
    held = [
        [lanes.source(part, "b32") for part in parts_of(operand)]
        for operand in instruction.operands[1:]
    ]
    targets = [lanes.target(part, "b32") for part in parts_of(instruction.operands[0])]
    dtype = np.int32 if whole else np.float32
    wide: Any = np.int64 if whole else np.float64
    a_at, b_at = _places(bits, depth)

    def laid(sources: list[Any], type_: str, at: tuple[Ints, Ints], size: Any) -> Any:
        words = np.stack(
            [np.broadcast_to(source, (lanes.count,)) for source in sources], axis=1
        )
        numbers = _numbers(words, type_).reshape(-1, WARP, at[0].shape[1])
        matrices = np.zeros((len(numbers), *size), wide)
        matrices[:, at[0], at[1]] = numbers
        return matrices

    def run(mask: Bools | None) -> None:
        _tell_missing(instruction, mask, pc, state)
        a = laid(held[0], a_type, a_at, (_ROWS, depth))
        b = laid(held[1], b_type, b_at, (depth, _COLUMNS))
        words = np.stack(
            [np.broadcast_to(register, (lanes.count,)) for register in held[2]], axis=1
        )
        before = np.ascontiguousarray(words).view(dtype).reshape(-1, WARP, 4)
        product = (a @ b)[:, _C_ROWS, _C_COLUMNS] + before.astype(wide)
        bits_of = product.astype(dtype).view(np.uint32).reshape(-1, 4)
        for number, target in enumerate(targets):
            if mask is None:
                target[:] = bits_of[:, number]
            else:
                target[mask] = bits_of[mask, number]

    return run


def _multiply_doubles(instruction: Instruction, pc: int, state: State) -> Step:
    """Multiply 8 x 4 by 4 x 8 numbers of FP64, of which a lane holds one each."""
    known = {"sync", "aligned", "m8n8k4", "row", "col", "f64", "rn"}
    if set(instruction.modifiers) - known:
        raise Unsupported(instruction.text, instruction.line)
    lanes = state.lanes
    a, b, before = (
        [lanes.source(part, "f64") for part in parts_of(operand)]
        for operand in instruction.operands[1:]
    )
    targets = [lanes.target(part, "f64") for part in parts_of(instruction.operands[0])]

    def warps(source: Any) -> NDArray[np.float64]:
        return np.broadcast_to(source, (lanes.count,)).reshape(-1, WARP)

    def run(mask: Bools | None) -> None:
        _tell_missing(instruction, mask, pc, state)
        # lanes of four share a row of A, and a column of B
        rows = warps(a[0]).reshape(-1, 8, 4)
        columns = warps(b[0]).reshape(-1, 8, 4)
        product = (rows @ columns.transpose(0, 2, 1)).reshape(-1, WARP, 2)
        results = [
            (product[:, :, number] + warps(added)).ravel()
            for number, added in enumerate(before)
        ]
        for target, values in zip(targets, results, strict=True):
            put(target, values, mask)

    return run


def _load(instruction: Instruction, pc: int, state: State) -> Step:
    modifiers = set(instruction.modifiers)
    count = next((n for n in (1, 2, 4) if f"x{n}" in modifiers), 0)
    if not count or "m8n8" not in modifiers or "b16" not in modifiers:
        raise Unsupported(instruction.text, instruction.line)
    lanes = state.lanes
    targets = [lanes.target(part, "b32") for part in parts_of(instruction.operands[0])]
    reach = Reach(instruction, instruction.operands[1], pc, state, "reads")
    is_turned = "trans" in modifiers
    gives = lanes.lane < 8 * count

    def run(mask: Bools | None) -> None:
        _tell_missing(instruction, mask, pc, state)
        rows = np.zeros((lanes.count, 4), np.uint32)
        for place in reach.places(state.active(mask) & gives, 16):
            count_traffic(place, 16, pc, state)
            watch_read(place, 16, pc, state, 0)
            for word in range(4):
                at = place.at + 4 * word
                one = type(place)(place.name, place.space, place.chosen, at)
                tell_unwritten(one, 4, pc, state)
                rows[place.chosen, word] = place.space.read(at, np.dtype(np.uint32))
        halves = rows.view(np.uint16).reshape(-1, 4, 8, 8)
        if is_turned:
            halves = halves.transpose(0, 1, 3, 2)
        loaded = np.ascontiguousarray(halves).view(np.uint32).reshape(-1, 4, WARP)
        for number, target in enumerate(targets):
            values = loaded[:, number].reshape(-1)
            if mask is None:
                target[:] = values
            else:
                target[mask] = values[mask]

    return run


def _tell_missing(
    instruction: Instruction, mask: Bools | None, pc: int, state: State
) -> None:
    """Tell of a warp that is not whole: what it computes then is undefined."""
    rows = state.active(mask).reshape(-1, WARP)
    lacking = rows.any(axis=1) & ~rows.all(axis=1)
    if not lacking.any():
        return
    warp = int(np.flatnonzero(lacking)[0])
    first = warp * WARP
    line = state.line(pc)
    state.report.add(
        Finding(
            "inactive lane",
            f"Not all 32 lanes of the warp of "
            f"{state.lanes.words_of(first)} come to "
            f"`{instruction.text}`{on_line(line)}, which is undefined then.",
            line,
        )
    )
