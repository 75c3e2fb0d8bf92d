"""Sums and what is like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpbook_labs.simulated.recording.dtypes import BOOL, LONG, DType
from warpbook_labs.simulated.recording.elementwise import compute
from warpbook_labs.simulated.recording.moving import to
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    new_like,
    of_array,
    one_device,
    place_of,
)
from warpbook_labs.simulated.recording.views import dimension, flatten

Dims = int | Sequence[int] | None


class Both(NamedTuple):
    """What `aminmax` answers."""

    min: Tensor
    max: Tensor


class Extreme(NamedTuple):
    """What `max` and `min` of a dimension answer."""

    values: Tensor
    indices: Tensor


def _axes(dim: Dims, count: int) -> list[int]:
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return list(range(count))
    dims = [dim] if isinstance(dim, int) else dim
    return sorted({dimension(one, count) for one in dims}) if count else []


def _reduced(
    name: str,
    input: Tensor,
    axes: list[int],
    keepdim: bool,
    kinds: Sequence[DType],
    out: Tensor | None = None,
    numbers: Sequence[float] = (),
) -> list[Tensor]:
    """The results, one of each type that is given; numbers come before the axes."""
    shape = input.array.shape
    kept = tuple(1 if at in axes else side for at, side in enumerate(shape))
    final = (
        kept if keepdim else tuple(s for at, s in enumerate(shape) if at not in axes)
    )
    if out is None:
        results = [new(final, kind, place_of(input.device)) for kind in kinds]
    else:
        one_device([input, out])
        if out.array.shape != final or out.dtype is not kinds[0]:
            raise RuntimeError(
                f"Expected out tensor to have dtype {kinds[0]} and shape "
                f"{list(final)}, but got {out.dtype} and {list(out.shape)}; PyTorch "
                "would give it other memory where only the shape differs."
            )
        results = [out]
    whole = [
        of_array(r, r.array if keepdim else np.expand_dims(r.array, tuple(axes)))
        for r in results
    ]
    launch(name, [input], whole, [*numbers, *axes])
    return results


def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sums along some sides."""
    if dtype is not None:
        input = to(input, input.device, dtype)
    kind = input.dtype if input.dtype.is_floating_point else LONG
    return _reduced("sum", input, _axes(dim, input.ndim), keepdim, [kind], out)[0]


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Products along a side, or of all."""
    kind = input.dtype if input.dtype.is_floating_point else LONG
    return _reduced("prod", input, _axes(dim, input.ndim), keepdim, [kind])[0]


def mean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Means along some sides."""
    if dtype is not None:
        input = to(input, input.device, dtype)
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a "
            f"floating point or complex dtype. Got: {input.dtype.letter_name}"
        )
    kind = [input.dtype]
    return _reduced("mean", input, _axes(dim, input.ndim), keepdim, kind, out)[0]


def amax(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The largest along some sides."""
    kind = [input.dtype]
    return _reduced("amax", input, _axes(dim, input.ndim), keepdim, kind, out)[0]


def amin(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The smallest along some sides."""
    kind = [input.dtype]
    return _reduced("amin", input, _axes(dim, input.ndim), keepdim, kind, out)[0]


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Both:
    """The smallest and the largest along a side, or of all."""
    return Both(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _truth(name: str, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    kind = input.dtype if input.dtype.name == "uint8" else BOOL
    return _reduced(name, input, _axes(dim, input.ndim), keepdim, [kind])[0]


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all hold along some sides."""
    return _truth("all", input, dim, keepdim)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether one holds along some sides."""
    return _truth("any", input, dim, keepdim)


def _argument(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if input.dtype is BOOL:
        raise RuntimeError(f"{name}(): does not support bool input")
    if dim is None:
        input, dim, keepdim = flatten(input), 0, False
    return _reduced(name, input, _axes(dim, input.ndim), keepdim, [LONG])[0]


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest is."""
    return _argument("argmax", input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest is."""
    return _argument("argmin", input, dim, keepdim)


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest of all, along a side with its place, or of each two."""
    if isinstance(dim, Tensor):
        return compute("maximum", [input, dim])
    if dim is None:
        return amax(input)
    kinds = [input.dtype, LONG]
    return Extreme(*_reduced("max", input, _axes(dim, input.ndim), keepdim, kinds))


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest of all, along a side with its place, or of each two."""
    if isinstance(dim, Tensor):
        return compute("minimum", [input, dim])
    if dim is None:
        return amin(input)
    kinds = [input.dtype, LONG]
    return Extreme(*_reduced("min", input, _axes(dim, input.ndim), keepdim, kinds))


def _spread(
    is_root: bool,
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if not input.dtype.is_floating_point:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    if correction is None:
        correction = 0 if unbiased is False else 1
    axes = _axes(dim, input.ndim)
    numbers = [correction, is_root]
    return _reduced("var", input, axes, keepdim, [input.dtype], None, numbers)[0]


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Variances along some sides."""
    return _spread(False, input, dim, unbiased, keepdim, correction)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Standard deviations along some sides."""
    return _spread(True, input, dim, unbiased, keepdim, correction)


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
) -> Tensor:
    """Lengths along some sides: the p-th root of the sum of p-th powers."""
    if p == "fro" or p is None:
        p = 2.0
    if isinstance(p, str) or p == 0:
        refuse(f"norm with p={p!r}")
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {input.dtype.letter_name}"
        )
    if abs(p) == float("inf"):
        return (amax if p > 0 else amin)(compute("abs", [input]), dim, keepdim)
    axes = _axes(dim, input.ndim)
    return _reduced("norm", input, axes, keepdim, [input.dtype], None, [p])[0]


def vector_norm(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False
) -> Tensor:
    """Lengths along some sides."""
    return norm(x, ord, dim, keepdim)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12
) -> Tensor:
    """It over its lengths along a side."""
    lengths = compute("clamp_min", [norm(input, p, dim, True), eps])
    return compute("div", [input, lengths], "float")


def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Extreme:
    """The k largest along a side, and where they are."""
    del sorted
    if input.dtype is BOOL:
        raise RuntimeError("topk does not support bool dtypes")
    dim = dimension(dim, input.ndim)
    if not input.ndim or not 0 <= k <= input.shape[dim]:
        raise RuntimeError("selected index k out of range")
    return _in_order(input, k, dim, largest)


def _in_order(input: Tensor, k: int, dim: int, largest: bool) -> Extreme:
    shape = list(input.shape)
    shape[dim] = k
    place = place_of(input.device)
    values, indices = (new(shape, kind, place) for kind in (input.dtype, LONG))
    launch("topk", [input], [values, indices], [dim, bool(largest)])
    return Extreme(values, indices)


def sort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Extreme:
    """All along a side in order, and where they were."""
    del stable  # equal ones stay in their order anyway
    if not input.ndim:
        refuse("sort of a tensor of no dimensions")
    dim = dimension(dim, input.ndim)
    return _in_order(input, input.shape[dim], dim, descending)


def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Tensor:
    """Where the elements were that are next to each other in order."""
    return sort(input, dim, descending, stable=stable).indices


def _along(name: str, input: Tensor, dim: int, dtype: DType | None) -> Tensor:
    if dtype is not None:
        input = to(input, input.device, dtype)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f'"{name}_lastdim_kernel_impl" not implemented for '
            f"'{input.dtype.letter_name}'"
        )
    result = new_like(input, input.dtype, place_of(input.device))
    launch(name, [input], [result], [dimension(dim, input.ndim)])
    return result


def softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Shares of the powers of e along a side."""
    return _along("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Their logarithms."""
    return _along("log_softmax", input, dim, dtype)


def cumsum(input: Tensor, dim: int) -> Tensor:
    """Sums so far along a side."""
    kind = input.dtype if input.dtype.is_floating_point else LONG
    result = new_like(input, kind, place_of(input.device))
    launch("cumsum", [input], [result], [dimension(dim, input.ndim)])
    return result
