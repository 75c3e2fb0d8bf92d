"""Instructions that compute with floating numbers.

What the ISA rounds, is rounded as it says. What it calls approximate is rounded
correctly here, so it differs from a GPU's result in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Lanes, Step, put
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction
from warpbook_labs.engines.interpreter.ptx.text.values import (
    Bools,
    Values,
    add_rounded,
    divide_rounded,
    flushed,
    fma32,
    fma64,
    from_bf16,
    multiply_rounded,
    root_rounded,
    saturated,
    to_bf16,
)

TYPES = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_ROUNDINGS = ("rn", "rz", "rm", "rp")
#: they change nothing of the result
_IGNORED = {"rn", "full", "approx", "ftz", "sat", "NaN", "rna", "noftz"}


def _through_64(function: Callable[[Values], Values]) -> Callable[..., Values]:
    """Compute a function of binary32 in binary64 and round."""

    def compute(a: Values, rounding: str) -> Values:
        rounded: Values = function(np.asarray(a, np.float64)).astype(
            np.asarray(a).dtype
        )
        return rounded

    return compute


def _fma(a: Values, b: Values, c: Values, rounding: str) -> Values:
    if np.result_type(a, b, c) == np.float64:
        return fma64(a, b, c, rounding)
    return fma32(np.asarray(a), np.asarray(b), np.asarray(c), rounding)


def _fma_narrow(a: Values, b: Values, c: Values, rounding: str) -> Values:
    """Multiply and add short numbers: in binary64 that is all but exact."""
    wide = np.asarray(a, np.float64) * b + np.asarray(c, np.float64)
    rounded: Values = wide.astype(np.asarray(a).dtype)
    return rounded


def _plain(function: Callable[..., Any]) -> Callable[..., Values]:
    return lambda *operands: function(*operands[:-1])


_FUNCTIONS: dict[str, Callable[..., Values]] = {
    "add": lambda a, b, how: add_rounded(np.asarray(a), np.asarray(b), how),
    "sub": lambda a, b, how: add_rounded(np.asarray(a), -np.asarray(b), how),
    "mul": lambda a, b, how: multiply_rounded(np.asarray(a), np.asarray(b), how),
    "fma": _fma,
    "mad": _fma,
    "div": _plain(np.divide),
    "rcp": _plain(lambda a: np.asarray(a).dtype.type(1) / a),
    "sqrt": _plain(np.sqrt),
    "rsqrt": _through_64(lambda a: 1 / np.sqrt(a)),
    "sin": _through_64(np.sin),
    "cos": _through_64(np.cos),
    "lg2": _through_64(np.log2),
    "ex2": _through_64(np.exp2),
    "tanh": _through_64(np.tanh),
    # of a number and NaN, the number
    "min": _plain(np.fmin),
    "max": _plain(np.fmax),
    "abs": _plain(np.absolute),
    "neg": _plain(np.negative),
    # its operands are the other way round
    "copysign": _plain(lambda sign, size: np.copysign(size, sign)),
}
#: of binary32, where a direction is asked for
_DIRECTED: dict[str, Callable[..., Values]] = {
    "div": lambda a, b, how: divide_rounded(np.asarray(a), np.asarray(b), how),
    "rcp": lambda a, how: divide_rounded(np.float32(1), np.asarray(a), how),
    "sqrt": lambda a, how: root_rounded(np.asarray(a), how),
}
_ROUNDED = ("add", "sub", "mul", "fma", "mad")
#: of short numbers
_NARROW: dict[str, Callable[..., Values]] = {"fma": _fma_narrow, "mad": _fma_narrow}
_TAKES_NAN = {"min": np.minimum, "max": np.maximum}


def floating(instruction: Instruction, lanes: Lanes) -> Step | None:
    """Give what an instruction on floating numbers does; None if it is none."""
    type_ = instruction.modifiers[-1] if instruction.modifiers else ""
    compute: Callable[..., Values] | None = _FUNCTIONS.get(instruction.name)
    if compute is None or type_ not in TYPES:
        return None
    modifiers = set(instruction.modifiers[:-1])
    rounding = next(
        (modifier for modifier in _ROUNDINGS if modifier in modifiers), "rn"
    )
    narrow = type_ not in ("f32", "f64")
    directed = rounding != "rn"
    if directed and type_ == "f32":
        compute = _DIRECTED.get(instruction.name, compute)
    known = compute is not _FUNCTIONS[instruction.name] or instruction.name in _ROUNDED
    if modifiers - _IGNORED - set(_ROUNDINGS) or (directed and (narrow or not known)):
        raise Unsupported(instruction.text, instruction.line)
    if narrow:
        compute = _NARROW.get(instruction.name, compute)
    if "NaN" in modifiers:
        compute = _plain(_TAKES_NAN[instruction.name])
    if type_.startswith("bf16"):
        return _bf16(instruction, lanes, compute)
    flush = "ftz" in modifiers and type_ == "f32"
    clamp = "sat" in modifiers
    pairs = 2 if type_ == "f16x2" else 1
    dtype = {"f32": np.float32, "f64": np.float64}.get(type_, np.float16)
    held = "b32" if pairs == 2 else f"f{np.dtype(dtype).itemsize * 8}"
    target = lanes.target(instruction.operands[0], held)
    sources = [lanes.source(operand, held) for operand in instruction.operands[1:]]

    def of(source: Any) -> Any:
        if pairs == 1:
            return flushed(source) if flush and source.ndim else source
        return np.broadcast_to(source, target.shape).copy().view(np.float16)

    def run(mask: Bools | None) -> None:
        results = compute(*map(of, sources), rounding)
        if flush:
            results = flushed(results)
        if clamp:
            results = saturated(results)
        put(target, results if pairs == 1 else results.view(np.uint32), mask)

    return run


def _bf16(
    instruction: Instruction, lanes: Lanes, compute: Callable[..., Values]
) -> Step:
    pairs = instruction.modifiers[-1] == "bf16x2"
    held = "b32" if pairs else "b16"
    target = lanes.target(instruction.operands[0], held)
    sources = [lanes.source(operand, held) for operand in instruction.operands[1:]]

    def of(source: Any) -> Values:
        bits = np.broadcast_to(source, target.shape).copy().view(np.uint16)
        return from_bf16(bits)

    def run(mask: Bools | None) -> None:
        rounded = to_bf16(np.asarray(compute(*map(of, sources), "rn"), np.float32))
        put(target, rounded.view(target.dtype), mask)

    return run
