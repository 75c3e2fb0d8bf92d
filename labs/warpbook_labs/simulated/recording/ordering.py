"""New tensors whose elements lie in an order that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpbook_labs.simulated.recording import creating, layout
from warpbook_labs.simulated.recording.tensor import Tensor, of_array


def empty(*size: Any, memory_format: object = None, **options: Any) -> Tensor:
    """Memory that nobody has written."""
    if memory_format is None:
        return creating.empty(*size, **options)
    if memory_format is layout.PRESERVE:
        raise RuntimeError("unsupported memory format Preserve")
    shape = creating.sides(size)
    return empty_strided(shape, layout.strides(shape, memory_format), **options)


def empty_strided(size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """The same, with strides in elements."""
    shape, steps = creating.sides([size]), creating.sides([stride])
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of "
            f"strides ({len(steps)})"
        )
    if min(shape, default=0) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: "
            f"{list(shape)}"
        )
    if min(steps, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(steps)}"
        )
    last = sum((side - 1) * step for side, step in zip(shape, steps, strict=True))
    memory = creating.empty(0 if 0 in shape else last + 1, **options)
    in_bytes = [step * memory.itemsize for step in steps]
    return of_array(
        memory, np.ndarray(shape, memory.array.dtype, memory.array, 0, in_bytes)
    )


def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], **options: Any
) -> Tensor:
    """The same, of this one's kind."""
    options = {"dtype": self.dtype, "device": self.device, **options}
    return empty_strided(size, stride, **options)
