"""Looks at operands of which PyTorch's kernels believe that they fit each other.

An ordinary program gives them what another kernel made. Here anybody may have written
the program, and a kernel that believes it would reach beyond its memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

#: of a kernel that believes its operands: their arguments, which it refuses or not
Look = Callable[[Sequence[Any]], bool]


def fit(base: str, args: Sequence[Any]) -> bool:
    """Tell whether the arguments of a call fit each other, as far as nobody else does.

    Args:
        args: its arguments by place, on the CPU.
    """
    look = _LOOKS.get(base)
    return look is None or look(args)


def _are_in(numbers: Any, most: int) -> bool:
    """Tell whether all are from 0 to less than a number."""
    if not numbers.numel():
        return True
    return int(numbers.min()) >= 0 and int(numbers.max()) < most


def _have(count: int, *tensors: Any) -> bool:
    return all(tensor is None or tensor.numel() == count for tensor in tensors)


def _embedding(args: Sequence[Any]) -> bool:
    slopes, index, rows = args[:3]
    fits = slopes.dim() and slopes.numel() == index.numel() * slopes.shape[-1]
    return bool(fits) and _are_in(index, rows)


def _pooling(args: Sequence[Any]) -> bool:
    slopes, image, index = args[0], args[1], args[-1]
    fits = image.dim() > 2 and slopes.shape == index.shape
    fits = fits and slopes.shape[:-2] == image.shape[:-2]
    return fits and _are_in(index, math.prod(image.shape[-2:]))


def _layer_norm(args: Sequence[Any]) -> bool:
    slopes, x, shape, mean, deviation, weight, bias = args[:7]
    inner = math.prod(shape)
    if tuple(x.shape[x.dim() - len(shape) :]) != tuple(shape) or not inner:
        return False
    outer = x.numel() // inner
    fits = slopes.shape == x.shape and _have(outer, mean, deviation)
    return fits and _have(inner, weight, bias)


def _group_norm(args: Sequence[Any]) -> bool:
    x, weight, bias, *sizes = args[:7]
    return _has_groups(x, sizes) and _have(sizes[1], weight, bias)


def _group_norm_backward(args: Sequence[Any]) -> bool:
    slopes, x, mean, deviation, weight, *sizes = args[:9]
    fits = _has_groups(x, sizes) and slopes.shape == x.shape
    groups = sizes[0] * sizes[3]
    return fits and _have(groups, mean, deviation) and _have(sizes[1], weight)


def _has_groups(x: Any, sizes: Sequence[int]) -> bool:
    images, channels, pixels, groups = sizes
    whole = images * channels * pixels
    return groups > 0 and channels % groups == 0 and x.numel() == whole


def _batch_norm(args: Sequence[Any]) -> bool:
    x, *of_channels = args[:5]
    return x.dim() > 1 and _have(x.shape[1], *_tensors(of_channels))


def _batch_norm_backward(args: Sequence[Any]) -> bool:
    slopes, x, *of_channels = args[:7]
    fits = x.dim() > 1 and slopes.shape == x.shape
    return fits and _have(x.shape[1], *_tensors(of_channels))


def _tensors(held: Sequence[Any]) -> list[Any]:
    # what was not kept has no elements
    return [tensor for tensor in held if hasattr(tensor, "numel") and tensor.numel()]


_LOOKS: dict[str, Look] = {
    "embedding_dense_backward": _embedding,
    "max_pool2d_with_indices_backward": _pooling,
    "native_layer_norm_backward": _layer_norm,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
}
