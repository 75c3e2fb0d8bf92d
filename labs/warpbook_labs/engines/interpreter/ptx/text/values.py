"""Numbers as PTX types them, on NumPy arrays with one element for each thread.

Registers are kept as unsigned integers of their width and looked at as what an
instruction's type says.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    floating = _FLOAT.match(text)
    if floating is not None:
        return Immediate(int(floating[2], 16), 32 if floating[1] in "fF" else 64)
    if _INTEGER.match(text):
        return Immediate(int(text.rstrip("U"), 0))
    return None


#: of any type: what an instruction makes of a register
Values = NDArray[Any]
Floats32 = NDArray[np.float32]
Floats64 = NDArray[np.float64]
Bools = NDArray[np.bool_]

DTYPES: dict[str, np.dtype[Any]] = {
    **{
        f"{kind}{bits}": np.dtype(f"u{bits // 8}")
        for kind in "ub"
        for bits in (8, 16, 32, 64)
    },
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "pred": np.dtype(np.bool_),
    # two halves beside each other, and a type that NumPy has not
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "bf16": np.dtype(np.uint16),
}
_SIGN = np.uint32(0x7FFFFFFF)
#: the part of a binary64 that a binary32 has no room for, and half of it
_LOW = np.uint64(0x1FFFFFFF)
_MIDDLE = np.uint64(0x10000000)
_SPLIT = 134217729.0
#: beyond these exponents the error terms of a product are lost
_LEAST, _MOST = 1e-250, 1e250


def flushed(values: Floats32) -> Floats32:
    """Give zeros of the same sign for subnormal numbers (`.ftz`)."""
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    if not tiny.any():
        return values
    return np.where(tiny, np.copysign(np.float32(0), values), values)


def saturated(values: Values) -> Values:
    """Give what is between 0 and 1; NaN becomes 0 (`.sat`)."""
    clipped: Values = np.clip(np.nan_to_num(values, nan=0.0), 0, 1).astype(values.dtype)
    return clipped


def fma32(a: Floats32, b: Floats32, c: Floats32, rounding: str = "rn") -> Floats32:
    """Give a * b + c, rounded once.

    The product of two binary32 is exact in binary64. The sum is rounded to odd there
    where rounding twice would show (Boldo and Melquiond, "Emulation of FMA").
    """
    product: Floats64 = np.multiply(a, b, dtype=np.float64)
    total: Floats64 = product + c.astype(np.float64)
    if rounding != "rn":
        return _directed(total, _error(product, c, total), rounding)
    bits = total.view(np.uint64) if total.ndim else np.atleast_1d(total).view(np.uint64)
    if ((bits & _LOW) == _MIDDLE).any():
        total = _to_odd(total, _error(product, c, total))
    return total.astype(np.float32)


def _error(a: Values, b: Values, total: Floats64) -> Floats64:
    """Give a + b - total, which is exact (Knuth's TwoSum)."""
    virtual = total - a
    error: Floats64 = (a - (total - virtual)) + (b - virtual)
    return error


def _to_odd(total: Floats64, error: Floats64) -> Floats64:
    """Round to odd: where something was cut off, the last bit says so."""
    bits = np.atleast_1d(total).view(np.int64)
    cut = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    if not cut.any():
        return total
    # towards the error: away from zero if it has the total's sign
    step = np.where((error > 0) == (total > 0), 1, -1)
    return (bits + np.where(cut, step, 0)).view(np.float64)


def _directed(total: Floats64, error: Floats64, rounding: str) -> Floats32:
    """Round an exact sum `total + error` down, up or towards zero."""
    near = total.astype(np.float32)
    rest = (total - near.astype(np.float64)) + error
    return _step(near, rest, rounding)


def _step(near: Values, rest: Values, rounding: str) -> Any:
    """Take the neighbour of the nearest number where the rest lies beyond it."""
    down = rest < 0
    up = rest > 0
    if rounding == "rz":
        down, up = down & (near > 0), up & (near < 0)
    elif rounding == "rm":
        up = np.zeros_like(up)
    elif rounding == "rp":
        down = np.zeros_like(down)
    lower = np.nextafter(near, near.dtype.type(-np.inf))
    upper = np.nextafter(near, near.dtype.type(np.inf))
    return np.where(down, lower, np.where(up, upper, near))


def add_rounded(a: Values, b: Values, rounding: str) -> Values:
    """Give a + b rounded as asked."""
    total = a + b
    if rounding == "rn":
        return total
    exact_total = total.astype(np.float64)
    if a.dtype == np.float32:
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        wide = wide_a + wide_b
        rest = (wide - exact_total) + _error(wide_a, wide_b, wide)
    else:
        rest = _error(a, b, exact_total)
    rounded: Values = _step(total, rest, rounding)
    return rounded


def multiply_rounded(a: Values, b: Values, rounding: str) -> Values:
    """Give a * b rounded as asked."""
    product = a * b
    if rounding == "rn":
        return product
    if a.dtype == np.float32:
        rest = a.astype(np.float64) * b.astype(np.float64) - product.astype(np.float64)
    else:
        rest = _product_error(a, b, product)
    rounded: Values = _step(product, rest, rounding)
    return rounded


def divide_rounded(a: Floats32, b: Floats32, rounding: str) -> Floats32:
    """Give a / b rounded as asked.

    A quotient of two binary32 lies between two neighbours far enough from both for
    binary64 to tell on which side of the nearest it is.
    """
    near = a / b
    wide = a.astype(np.float64) / b.astype(np.float64)
    rounded: Floats32 = _step(near, wide - near.astype(np.float64), rounding)
    return rounded


def root_rounded(a: Floats32, rounding: str) -> Floats32:
    """Give the square root rounded as asked; binary64 tells the side here, too."""
    near = np.sqrt(a)
    rest = np.sqrt(a.astype(np.float64)) - near.astype(np.float64)
    rounded: Floats32 = _step(near, rest, rounding)
    return rounded


def _product_error(a: Floats64, b: Floats64, product: Floats64) -> Floats64:
    """Give a * b - product, which is exact unless it underflows (Dekker)."""
    scaled_a, scaled_b = a * _SPLIT, b * _SPLIT
    high_a = scaled_a - (scaled_a - a)
    high_b = scaled_b - (scaled_b - b)
    low_a, low_b = a - high_a, b - high_b
    error: Floats64 = low_a * low_b - (
        ((product - high_a * high_b) - low_a * high_b) - high_a * low_b
    )
    return error


def fma64(a: Floats64, b: Floats64, c: Floats64, rounding: str = "rn") -> Floats64:
    """Give a * b + c, rounded once (Boldo and Melquiond, algorithm of figure 3)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    low = _product_error(a, b, product)
    small = c + low
    small_error = _error(c, low, small)
    total = product + small
    total_error = _error(product, small, total)
    rest = _to_odd(
        total_error + small_error,
        _error(total_error, small_error, total_error + small_error),
    )
    rounded: Floats64 = (
        total + rest if rounding == "rn" else _step(total, rest, rounding)
    )
    size = np.abs(product)
    odd = ~((size > _LEAST) & (size < _MOST) & (np.abs(c) < _MOST))
    plain = odd & ((product == 0) & ((a == 0) | (b == 0)) | ~np.isfinite(product + c))
    rounded = np.where(plain, product + c, rounded)
    for at in np.flatnonzero(odd & ~plain):
        exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
        rounded[at] = _nearest(exact)
    return rounded


def _nearest(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def to_bf16(values: Floats32) -> NDArray[np.uint16]:
    """Round binary32 to the nearest bfloat16, as its bits."""
    bits = values.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    nan = (bits & _SIGN) > np.uint32(0x7F800000)
    return np.where(nan, np.uint32(0x7FFF), rounded >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> Floats32:
    """Give the number that a bfloat16's bits stand for."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
