"""The same program on PyTorch and on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpbook_labs.simulated.recording.session import Session

#: a program takes a torch and tensors
Body = Callable[..., Any]


def simulated() -> Any:
    """A new case, and its torch."""
    return Session({}).modules()["torch"]


def outcome(body: Body, module: Any, arrays: list[NDArray[Any]]) -> Any:
    """What the program answers or raises."""
    tensors = [module.tensor(array.copy()) for array in arrays]
    try:
        return body(module, *tensors)
    except Exception as problem:  # noqa: BLE001 - any is compared
        return problem


def _steps(tensor: Any) -> list[int]:
    """Its strides, where there is more than one element to step to."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [step for side, step in pairs if side > 1]


def assert_same(body: Body, *arrays: NDArray[Any]) -> None:
    """Both give the same tensor, in value, type and order, or fail alike."""
    right = outcome(body, torch, list(arrays))
    got = outcome(body, simulated(), list(arrays))
    if isinstance(right, Exception):
        assert isinstance(got, Exception), f"PyTorch raises {right!r}, got {got}"
        is_alike = isinstance(got, RuntimeError) and isinstance(right, RuntimeError)
        assert is_alike or type(got) is type(right), f"{got!r} is not {right!r}"
        return
    if isinstance(got, Exception):
        raise got
    if not isinstance(right, torch.Tensor):
        assert got == right
        return
    assert str(got.dtype) == str(right.dtype)
    assert tuple(got.shape) == tuple(right.shape)
    if right.numel():
        assert _steps(got) == _steps(right)
    loose = right.dtype == torch.float16 or any(a.dtype == np.float16 for a in arrays)
    allowed = 2e-3 if loose else 2e-6
    np.testing.assert_allclose(
        np.array(got.tolist(), float),
        np.array(right.tolist(), float),
        rtol=allowed,
        atol=allowed,
    )
