"""Instructions that compare, choose, move and convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import (
    Lanes,
    Step,
    computed,
    put,
    type_of,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Instruction,
    Operand,
    Register,
    Vector,
    parts_of,
)
from warpbook_labs.engines.interpreter.ptx.text.values import (
    DTYPES,
    Bools,
    Values,
    flushed,
    from_bf16,
    saturated,
    to_bf16,
)

_CLOCKS = frozenset({"%clock", "%clock64", "%globaltimer"})

_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_COMBINE: dict[str, Callable[..., Any]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def choice(instruction: Instruction, lanes: Lanes) -> Step | None:
    """Give what such an instruction does; None if it is none of them."""
    made = _MAKERS.get(instruction.name)
    return None if made is None else made(instruction, lanes)


def _comparison(instruction: Instruction) -> Callable[[Any, Any], Bools]:
    type_ = type_of(instruction)
    name = instruction.modifiers[0]
    is_float = type_ in ("f16", "bf16", "f32", "f64")
    flush = "ftz" in instruction.modifiers and type_ == "f32"

    def operands(a: Any, b: Any) -> tuple[Any, Any]:
        if type_ == "bf16":
            return from_bf16(np.asarray(a)), from_bf16(np.asarray(b))
        return (flushed(np.asarray(a)), flushed(np.asarray(b))) if flush else (a, b)

    if is_float and name in ("num", "nan"):

        def ordered(a: Any, b: Any) -> Bools:
            a, b = operands(a, b)
            nan = np.isnan(a) | np.isnan(b)
            return nan if name == "nan" else ~nan

        return ordered
    unordered = is_float and name.endswith("u")
    compare = _COMPARE.get(name[:-1] if unordered else name)
    if compare is None:
        raise Unsupported(instruction.text, instruction.line)

    def run(a: Any, b: Any) -> Bools:
        a, b = operands(a, b)
        is_so: Bools = compare(a, b)
        if unordered:
            return is_so | np.isnan(a) | np.isnan(b)
        # NaN is unequal to all, but `ne` asks for two numbers
        if is_float and name == "ne":
            return is_so & ~np.isnan(a) & ~np.isnan(b)
        return is_so

    return run


def _set_predicate(instruction: Instruction, lanes: Lanes) -> Step:
    type_ = type_of(instruction)
    compare = _comparison(instruction)
    names = parts_of(instruction.operands[0])
    targets = [lanes.target(name, "pred") for name in names]
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:3])
    combine = next((_COMBINE[m] for m in instruction.modifiers if m in _COMBINE), None)
    other = None
    if combine is not None:
        other = lanes.predicate(instruction.operands[3])

    def run(mask: Bools | None) -> None:
        is_so = compare(a, b)
        results = [is_so, ~is_so]
        if combine is not None and other is not None:
            results = [combine(result, other()) for result in results]
        for target, result in zip(targets, results, strict=False):
            put(target, result, mask)

    return run


def _set(instruction: Instruction, lanes: Lanes) -> Step:
    """`set`: a comparison as a number."""
    result, type_ = instruction.modifiers[-2:]
    compare = _comparison(instruction)
    if set(instruction.modifiers) & set(_COMBINE):
        raise Unsupported(instruction.text, instruction.line)
    target = lanes.target(instruction.operands[0], result)
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:3])
    one = target.dtype.type(1) if result == "f32" else np.array(-1).astype(target.dtype)

    return computed(target, lambda: np.where(compare(a, b), one, target.dtype.type(0)))


def _select(instruction: Instruction, lanes: Lanes) -> Step:
    type_ = type_of(instruction)
    target = lanes.target(instruction.operands[0], type_)
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:3])
    chosen = lanes.predicate(instruction.operands[3])

    return computed(target, lambda: np.where(chosen(), a, b))


def _select_by_sign(instruction: Instruction, lanes: Lanes) -> Step:
    type_, by = instruction.modifiers[-2:]
    target = lanes.target(instruction.operands[0], type_)
    a, b = (lanes.source(operand, type_) for operand in instruction.operands[1:3])
    sign = lanes.source(instruction.operands[3], by)

    return computed(target, lambda: np.where(sign >= 0, a, b))


def _test(instruction: Instruction, lanes: Lanes) -> Step:
    """`testp`: what kind of a number it is."""
    kind, type_ = instruction.modifiers
    tests: dict[str, Callable[[Values], Bools]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
    }
    target = lanes.target(instruction.operands[0], "pred")
    a = lanes.source(instruction.operands[1], type_)
    test = tests[kind]

    return computed(target, lambda: test(a))


def _move(instruction: Instruction, lanes: Lanes) -> Step:
    type_ = type_of(instruction)
    to, of = instruction.operands
    if isinstance(to, Vector):
        return _unpack(to, of, lanes, type_)
    if isinstance(of, Vector):
        return _pack(to, of, lanes, type_)
    target = lanes.target(to, type_)
    if isinstance(of, Register) and of.name in _CLOCKS:
        return _tick(target, lanes)
    source = lanes.source(of, type_)

    return computed(target, lambda: source)


def _tick(target: Values, lanes: Lanes) -> Step:
    """Read a clock, which has gone on since it was read last, and means no more."""

    return computed(target, lambda: np.array(next(lanes.ticks)).astype(target.dtype))


def _create_policy(instruction: Instruction, lanes: Lanes) -> Step:
    """Make a policy for caches, which changes nothing of what is read."""
    target = lanes.target(instruction.operands[0], "b64")
    return lambda mask: put(target, target.dtype.type(0), mask)


def _unpack(to: Vector, of: Operand, lanes: Lanes, type_: str) -> Step:
    bits = int(type_[1:]) // len(to.parts)
    targets = [lanes.target(part, f"b{bits}") for part in to.parts]
    source = lanes.source(of, type_)

    def run(mask: Bools | None) -> None:
        whole = np.broadcast_to(source, targets[0].shape)
        parts = [
            (whole >> whole.dtype.type(bits * at)).astype(target.dtype)
            for at, target in enumerate(targets)
        ]
        for target, part in zip(targets, parts, strict=True):
            put(target, part, mask)

    return run


def _pack(to: Operand, of: Vector, lanes: Lanes, type_: str) -> Step:
    bits = int(type_[1:]) // len(of.parts)
    target = lanes.target(to, type_)
    sources = [lanes.source(part, f"b{bits}") for part in of.parts]

    def run(mask: Bools | None) -> None:
        whole = np.zeros_like(target)
        for at, source in enumerate(sources):
            whole |= np.asarray(source).astype(target.dtype) << target.dtype.type(
                bits * at
            )
        put(target, whole, mask)

    return run


def _round_to_whole(rounding: str) -> Callable[[Values], Values]:
    by_name: dict[str, Callable[[Values], Values]] = {
        "rni": np.rint,
        "rzi": np.trunc,
        "rmi": np.floor,
        "rpi": np.ceil,
    }
    return by_name[rounding]


def _convert(instruction: Instruction, lanes: Lanes) -> Step:
    *modifiers, to, of = instruction.modifiers
    whole = next(
        (
            modifier
            for modifier in modifiers
            if modifier in ("rni", "rzi", "rmi", "rpi")
        ),
        "",
    )
    known = {"rn", "rz", "rm", "rp", "rna", "ftz", "sat", "relu", whole}
    if set(modifiers) - known or {"rm", "rp", "rna", "relu"} & set(modifiers):
        raise Unsupported(instruction.text, instruction.line)
    if to in ("f16x2", "bf16x2"):
        return _convert_pair(instruction, lanes, to, of)
    if "rz" in modifiers and to not in ("f32", "f16"):
        raise Unsupported(instruction.text, instruction.line)
    target, read = _wide_target(instruction, lanes, to), _narrow(instruction, lanes, of)
    clamp, flush = "sat" in modifiers, "ftz" in modifiers
    towards_zero = "rz" in modifiers
    from_float, to_float = of in _FLOATS, to in _FLOATS

    def run(mask: Bools | None) -> None:
        values = read()
        if of == "bf16":
            values = from_bf16(values)
        if flush and values.dtype == np.float32:
            values = flushed(values)
        if whole:
            values = _round_to_whole(whole)(values)
        if from_float and not to_float:
            converted = _to_integer(values, DTYPES[to])
        elif to == "bf16":
            converted = to_bf16(values.astype(np.float32))
        elif to_float:
            converted = _to_float(values, DTYPES[to], towards_zero)
            converted = saturated(converted) if clamp else converted
        else:
            converted = (
                _saturate(values, DTYPES[to]) if clamp else values.astype(DTYPES[to])
            )
        put(target, _extended(converted, target.dtype), mask)

    return run


_FLOATS = ("f16", "bf16", "f32", "f64")


def _wide_target(instruction: Instruction, lanes: Lanes, type_: str) -> Values:
    """Give the register as bits, which may be wider than the type."""
    operand = instruction.operands[0]
    width = lanes.width_bytes(operand) or DTYPES[type_].itemsize
    return lanes.target(operand, f"b{8 * width}")


def _extended(values: Values, container: np.dtype[Any]) -> Values:
    """Widen to a register: signed numbers keep their sign."""
    if values.dtype.itemsize == container.itemsize:
        return values.view(container)
    kind = "i" if values.dtype.kind == "i" else "u"
    bits = values.view(f"{kind}{values.dtype.itemsize}")
    return bits.astype(f"{kind}{container.itemsize}").view(container)


def _narrow(instruction: Instruction, lanes: Lanes, type_: str) -> Callable[[], Values]:
    """Read a register that may be wider than the type."""
    operand = instruction.operands[1]
    dtype = DTYPES[type_]
    width = lanes.width_bytes(operand)
    if width is None or width == dtype.itemsize:
        source = lanes.source(operand, type_)
        return lambda: np.broadcast_to(source, (lanes.count,))
    wide = lanes.source(operand, f"b{8 * width}")
    return lambda: wide.astype(f"u{dtype.itemsize}").view(dtype)


def _to_integer(values: Values, dtype: np.dtype[Any]) -> Values:
    """Convert as the hardware does: beyond the range to its end, NaN to zero."""
    limits = np.iinfo(dtype)
    wide = values.astype(np.float64)
    below, above = wide <= float(limits.min), wide >= float(limits.max)
    safe = np.where(below | above | np.isnan(wide), 0.0, np.trunc(wide))
    whole = safe.astype(dtype)
    whole = np.where(below, dtype.type(limits.min), whole)
    return np.where(above, dtype.type(limits.max), whole)


def _to_float(values: Values, dtype: np.dtype[Any], towards_zero: bool) -> Values:
    narrow = values.astype(dtype)
    if towards_zero:
        wide = values.astype(np.float64)
        beyond = np.abs(narrow.astype(np.float64)) > np.abs(wide)
        narrow = np.where(beyond, np.nextafter(narrow, dtype.type(0)), narrow)
    return narrow


def _saturate(values: Values, dtype: np.dtype[Any]) -> Values:
    limits = np.iinfo(dtype)
    own = np.iinfo(values.dtype)
    low, high = max(limits.min, own.min), min(limits.max, own.max)
    return np.clip(values, low, high).astype(dtype)


def _convert_pair(instruction: Instruction, lanes: Lanes, to: str, of: str) -> Step:
    target = lanes.target(instruction.operands[0], "b32")
    high, low = (lanes.source(operand, of) for operand in instruction.operands[1:])

    def half(values: Any) -> Values:
        wide = np.broadcast_to(values, target.shape).astype(np.float32)
        if to == "bf16x2":
            return to_bf16(wide)
        return wide.astype(np.float16).view(np.uint16)

    def run(mask: Bools | None) -> None:
        bits = half(high).astype(np.uint32) << np.uint32(16) | half(low)
        put(target, bits, mask)

    return run


_MAKERS: dict[str, Callable[[Instruction, Lanes], Step]] = {
    "setp": _set_predicate,
    "set": _set,
    "selp": _select,
    "slct": _select_by_sign,
    "testp": _test,
    "mov": _move,
    "cvt": _convert,
    "createpolicy": _create_policy,
}
