"""Whether tensors are the same, or nearly so."""

from __future__ import annotations

from typing import Any

from warpbook_labs.simulated.pointwise import promoted
from warpbook_labs.simulated.recording.devices import CPU
from warpbook_labs.simulated.recording.dtypes import BOOL, FLOAT, dtype_of
from warpbook_labs.simulated.recording.elementwise import compute
from warpbook_labs.simulated.recording.moving import to
from warpbook_labs.simulated.recording.reading import as_bool, look
from warpbook_labs.simulated.recording.reducing import all as all_of
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import Tensor, one_device

#: relative and absolute, as `torch.testing` has them; whole numbers are to be equal
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7,) * 2,
}


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two are the same; Python waits for the answer."""
    one_device([input, other])
    if input.array.shape != other.array.shape:
        return False
    return as_bool(all_of(compute("eq", [input, other], "bool")))


def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Where two are nearly the same, by the kernels that PyTorch takes for it."""
    if input.dtype is not other.dtype:
        names = input.dtype.letter_name, other.dtype.letter_name
        raise RuntimeError("{} did not match {}".format(*names))
    for name, number in (("rtol", rtol), ("atol", atol)):
        if number < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {number}"
            )
    close = compute("eq", [input, other], "bool")
    if equal_nan and input.dtype.is_floating_point:
        both = [compute("ne", [one, one], "bool") for one in (input, other)]
        compute("bitwise_or", [close, compute("bitwise_and", both)], out=close)
    if not (rtol or atol):
        return close
    if not other.dtype.is_floating_point:
        other = to(other, other.device, FLOAT)
    if input.dtype is BOOL:
        input = to(input, input.device, FLOAT)
    allowed = compute("abs", [compute("mul", [other, rtol])])
    allowed = compute("add", [allowed, atol])
    off = compute("abs", [compute("sub", [input, other])])
    near = compute("isfinite", [off], "bool")
    compute("bitwise_and", [near, compute("le", [off, allowed], "bool")], out=near)
    return compute("bitwise_or", [close, near], out=close)


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether two are nearly the same; Python waits for the answer."""
    return as_bool(all_of(isclose(input, other, rtol, atol, equal_nan)))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: Any = None,
) -> None:
    """Raise unless two are nearly the same; Python waits for the answer.

    Raises:
        AssertionError: they are not.
    """
    if not (isinstance(actual, Tensor) and isinstance(expected, Tensor)):
        refuse("torch.testing.assert_close of anything but two tensors")
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    checked = [("shape", True), ("device", check_device), ("dtype", check_dtype)]
    for name, is_checked in checked:
        left, right = getattr(actual, name), getattr(expected, name)
        if is_checked and left != right:
            raise AssertionError(
                f"The values for attribute '{name}' do not match: {left} != {right}."
            )
    if rtol is None or atol is None:
        kinds = (each.dtype.name for each in (actual, expected))
        both = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        rtol, atol = (max(pair) for pair in zip(*both, strict=True))
    if actual.device != expected.device:
        actual, expected = to(actual, CPU), to(expected, CPU)
    dtype = dtype_of(promoted(actual.dtype.numpy, expected.dtype.numpy))
    actual, expected = (to(each, each.device, dtype) for each in (actual, expected))
    matches = isclose(actual, expected, rtol, atol, equal_nan)
    if as_bool(all_of(matches)):
        return
    wrong = matches.array.size - int(look(matches, "assert_close").sum())
    message = (
        f"Tensor-likes are not close! Mismatched elements: {wrong} / "
        f"{matches.array.size}, with {atol=} and {rtol=}"
    )
    raise AssertionError(msg(message) if callable(msg) else msg or message)
