"""What a lab's own Python must give: numbers, one by one or in the right shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.lab.spec import Parameter

#: kinds of NumPy's types: truth, whole numbers with a sign and without, floats
_NUMBERS = "biuf"


def not_a_dict(returned: Any) -> str:
    """Say what is wrong with the whole; nothing if it is a dict."""
    if isinstance(returned, dict):
        return ""
    kind = "nothing (None)" if returned is None else type(returned).__name__
    return f"it gives {kind}, and must give a dict of numbers or arrays by parameter."


def not_numbers(parameter: Parameter, held: Any) -> str:
    """Say what is wrong with what is given for a parameter; nothing if it is fit.

    Its shape is not looked at.
    """
    name = parameter.name
    try:
        kind = np.asarray(held).dtype.kind
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is no array
        return f"`{name}` is no array: {type(problem).__name__}: {problem}"
    if kind not in _NUMBERS:
        return f"`{name}` is {_short(held)}, and must be numbers."
    return _not_a_number(parameter, held) if parameter.kind == "scalar" else ""


def _not_a_number(parameter: Parameter, held: Any) -> str:
    name, dtype = parameter.name, parameter.dtype
    if np.size(held) != 1:
        return f"`{name}` is {np.shape(held)}, and must be one number."
    try:
        np.asarray(held, dtype)
    except (OverflowError, ValueError):
        return f"`{name}` is {_short(held)}, and must be a number of {dtype}."
    return ""


def not_a_bound(
    name: str, tolerance: Any, right: NDArray[Any], shape: tuple[int, ...]
) -> str:
    """Say why this is no tolerance; nothing if it is one.

    Where the right result is NaN or infinite, so must be the output's, and the
    tolerance may be anything.

    Args:
        tolerance: numbers; one for all elements, or one for each.
    """
    bound = np.asarray(tolerance)
    if not _fits(bound.shape, shape):
        return f"`{name}` is {bound.shape}, and must be one number or {shape}."
    if _is_finite(bound):
        return ""
    every = np.broadcast_to(bound, shape)
    off = ~(np.isfinite(every) & (every >= 0)) & np.isfinite(right.reshape(shape))
    if not off.any():
        return ""
    first = float(every[off][0])
    return f"`{name}` is {first:.3g}, and must be finite and 0 or more."


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(given, shape) == shape
    except ValueError:
        return False


def _is_finite(bound: NDArray[Any]) -> bool:
    """Tell whether all are finite and none is below 0, in one pass over them."""
    if bound.dtype.kind != "f":
        return bool(bound.min(initial=0) >= 0)
    if bound.itemsize > 8:
        bound = bound.astype(np.float64)
    bits = f"u{bound.itemsize}"
    # bits of what is negative, infinite or NaN are those of infinity, or more
    infinity = np.asarray(np.inf, bound.dtype).view(bits)
    return bool(bound.view(bits).max(initial=0) < infinity)


def _short(held: Any) -> str:
    words = repr(held)
    return words if len(words) <= 40 else type(held).__name__
