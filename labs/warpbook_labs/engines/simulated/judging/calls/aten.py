"""Does ATen calls that a program names, on memory that it names: nothing is trusted.

A call is done only if it is allowed and PyTorch's meta tensors, which have no memory,
say that it writes what the program says it writes. Of operands of which PyTorch's
kernels believe that they fit each other, that is looked at before: a kernel that
believes a hostile program would reach beyond its memory.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.judging.calls.allowed import (
    MOVING,
    PRODUCTS,
    RANDOM,
    base_of,
)
from warpbook_labs.engines.simulated.program import Launch, View

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

_MOST_DEPTH, _MOST_CALL = 4, 200_000
_KINDS = (
    "bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 float8_e4m3fn "
    "float8_e5m2 contiguous_format channels_last preserve_format strided"
).split()
_CONSTANTS = {name: getattr(torch, name) for name in _KINDS}
#: operations for each element
_OF_A_SOFTMAX = 5
#: sums of their products are of FP32, as a GPU has them
_NARROW = (torch.float16, torch.bfloat16)


class Call(NamedTuple):
    """One ATen call, without its tensors."""

    base: str
    func: Any
    args: list[Any]
    kwargs: dict[str, Any]
    #: of what is written, so many are named as arguments; the rest are results
    named: int


class _Seen(NamedTuple):
    """What a call sees of a tensor, beside its numbers."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Bound(NamedTuple):
    """What meta tensors say of a call."""

    flops: float
    is_pointwise: bool


@lru_cache(8192)
def call_of(operation: str, text: str) -> Call:
    """Read a call.

    Raises:
        ValueError: it is none, or none that is allowed.
    """
    base = base_of(operation)
    if base is None or len(text) > _MOST_CALL:
        raise ValueError("not allowed")
    try:
        _, name, overload = operation.split(".")
        func = getattr(getattr(torch.ops.aten, name), overload)
        args, kwargs = json.loads(text)
    except (AttributeError, RecursionError) as problem:
        raise ValueError("no such call") from problem
    if func.is_view or not isinstance(args, list) or not isinstance(kwargs, dict):
        raise ValueError("no such call")
    return Call(base, func, args, kwargs, len(_named([args, kwargs])))


def bound_of(launch: Launch) -> Bound:
    """Say what a launch computes.

    Raises:
        ValueError: its results are not what the launch writes.
        Exception: whatever PyTorch says of operands that do not fit.
    """
    seen = (_seen(views) for views in (launch.reads, launch.writes))
    return _bounded(launch.operation, launch.call, *seen)


def run(launch: Launch, reads: Sequence[Any], writes: Sequence[Any]) -> None:
    """Do a launch on tensors; what does not fit raises as `bound_of` does."""
    bound_of(launch)
    call = call_of(launch.operation, launch.call)
    if launch.numbers:
        torch.manual_seed(int(launch.numbers[0]))
    targets = writes
    is_narrow = any(view.dtype in _NARROW for view in (*reads, *writes))
    if call.base in PRODUCTS and is_narrow and call.base != "_scaled_mm":
        reads, writes = (
            [_wide(read) for read in reads],
            [_wide(write) for write in writes],
        )
    with torch.no_grad():
        if not fit(call.base, _filled(call.args, reads, writes)):
            raise ValueError("operands that do not fit")
        result = _called(call, reads, writes)
        results = [*writes[: call.named], *_fresh(call, result)]
        for target, new in zip(targets, results, strict=True):
            if target is not new:
                target.copy_(new)


def tensor_of(array: NDArray[Any], dtype: str) -> Any:
    """Give NumPy's array as PyTorch's tensor of the same memory."""
    tensor = torch.from_numpy(array)
    kind = _CONSTANTS[dtype]
    return tensor if tensor.dtype is kind else tensor.view(kind)


def indices_of(launch: Launch) -> tuple[list[int], list[int]]:
    """Say along which sides a call chooses, and by which of what it reads.

    Raises:
        ValueError: it is no call that chooses.
    """
    call = call_of(launch.operation, launch.call)
    if call.base in ("index", "index_put", "_index_put_impl"):
        held = enumerate(call.args[1])
        chosen = [
            (side, _read(index_tensor))
            for side, index_tensor in held
            if index_tensor is not None
        ]
        return [side for side, _ in chosen], [at for _, at in chosen]
    if call.base in ("embedding", "take"):
        return [0], [_read(call.args[1])]
    side, index = call.args[1:3]
    rank = len((launch.writes if call.named else launch.reads)[0].shape)
    return [int(side) % max(rank, 1)], [_read(index)]


def _read(recorded: Any) -> int:
    return int(recorded["r"])


def _seen(views: Sequence[View]) -> tuple[_Seen, ...]:
    return tuple(_Seen(view.dtype, view.shape, view.strides) for view in views)


@lru_cache(8192)
def _bounded(
    operation: str, text: str, reads: tuple[_Seen, ...], writes: tuple[_Seen, ...]
) -> Bound:
    call = call_of(operation, text)
    sources = [_on_meta(read) for read in reads]
    targets = [_on_meta(write) for write in writes]
    named = targets[: call.named]
    if call.base.startswith(("_fused_", "_amp_", "_foreach_")):
        _look_at_lists(call, sources, targets)
    with torch.no_grad(), warnings.catch_warnings():
        # one that says that an `out=` is made to fit, which is refused below
        warnings.simplefilter("ignore")
        result = _called(call, sources, targets, is_meta=True)
    made = [*named, *_fresh(call, result)]
    shapes = [(tuple(view.shape), view.dtype) for view in made]
    wanted = [(view.shape, _CONSTANTS[view.dtype]) for view in writes]
    if shapes != wanted:
        raise ValueError("results of other shapes")
    is_pointwise = torch.Tag.pointwise in call.func.tags
    counted = writes if is_pointwise else (*reads, *writes)
    flops = float(max((math.prod(view.shape) for view in counted), default=0))
    if call.base in MOVING:
        flops = 0.0
    elif call.base in ("_softmax", "_log_softmax", "_safe_softmax"):
        flops *= _OF_A_SOFTMAX
    elif call.base in PRODUCTS:
        flops = _product_flops(call, sources, targets)
    return Bound(flops, is_pointwise)


def _product_flops(call: Call, reads: Sequence[Any], writes: Sequence[Any]) -> float:
    args = _filled(call.args, reads, writes)
    if call.base.startswith("convolution"):
        is_backward = call.base == "convolution_backward"
        weight = args[2 if is_backward else 1]
        result = args[0] if is_backward else writes[0]
        per_element = 2.0 * float(math.prod(weight.shape[1:]))
        # backward for images and filters
        return per_element * float(math.prod(result.shape) * (1 + is_backward))
    # a bias comes first
    at = int(call.base in ("addmm", "baddbmm", "addbmm", "addmv"))
    matrices = [arg for arg in args if isinstance(arg, torch.Tensor)]
    left, right = matrices[at : at + 2]
    columns = int(right.shape[-1]) if right.dim() > 1 else 1
    return 2.0 * float(math.prod(left.shape) * columns)


def _look_at_lists(call: Call, reads: Sequence[Any], writes: Sequence[Any]) -> None:
    """Refuse lists that do not fit each other, at which not every kernel looks."""
    lists = [
        [tuple(tensor.shape) for tensor in argument if isinstance(tensor, torch.Tensor)]
        for argument in _filled(call.args, reads, writes)
        if isinstance(argument, list)
    ]
    full = [tensors for tensors in lists if tensors]
    is_fused = call.base.startswith("_fused_")
    for shapes in full[1:]:
        steps = is_fused and all(not shape for shape in shapes)
        if len(shapes) != len(full[0]) or not (steps or shapes == full[0]):
            raise ValueError("lists that do not fit")


def _called(
    call: Call, reads: Sequence[Any], writes: Sequence[Any], is_meta: bool = False
) -> Any:
    args = _filled(call.args, reads, writes)
    kwargs = {
        name: _filled(argument, reads, writes) for name, argument in call.kwargs.items()
    }
    if is_meta and not reads and _takes(call.func, "device"):
        kwargs["device"] = "meta"
    if call.base in RANDOM and _takes(call.func, "generator"):
        kwargs.setdefault("generator", None)
    return call.func(*args, **kwargs)


def _takes(func: Any, name: str) -> bool:
    """Tell whether a call has an argument of a name."""
    return any(argument.name == name for argument in func._schema.arguments)


def _filled(
    argument: Any, reads: Sequence[Any], writes: Sequence[Any], depth: int = 0
) -> Any:
    """Put tensors and constants in their places."""
    if depth > _MOST_DEPTH:
        raise ValueError("lists in lists")
    if isinstance(argument, list):
        return [_filled(part, reads, writes, depth + 1) for part in argument]
    if not isinstance(argument, dict):
        return argument
    ((kind, held),) = argument.items()
    if kind == "c":
        return _CONSTANTS[held]
    if not isinstance(held, int) or held < 0:
        raise ValueError("no such tensor")
    return {"r": reads, "w": writes}[kind][held]


def _named(argument: Any) -> set[int]:
    """Give which of what is written are arguments; it begins with them."""
    if isinstance(argument, dict) and "w" in argument and len(argument) == 1:
        return {argument["w"]} if isinstance(argument["w"], int) else set()
    parts = argument.values() if isinstance(argument, dict) else argument
    if not isinstance(argument, dict | list):
        return set()
    return set().union(*(_named(part) for part in parts))


def _fresh(call: Call, result: Any) -> list[Any]:
    """Give the results that are new, as the schema says."""
    results = result if isinstance(result, tuple) else [result]
    returns = call.func._schema.returns
    if len(returns) == 1:
        results = [result]
    fresh = []
    for made, kind in zip(results, returns, strict=False):
        if kind.alias_info is not None and kind.alias_info.is_write:
            continue
        parts = made if isinstance(made, list | tuple) else [made]
        fresh += [part for part in parts if isinstance(part, torch.Tensor)]
    return fresh


def _on_meta(view: _Seen) -> Any:
    dtype = _CONSTANTS[view.dtype]
    return torch.empty_strided(view.shape, view.strides, dtype=dtype, device="meta")


def _wide(tensor: Any) -> Any:
    return tensor.float() if tensor.dtype in _NARROW else tensor
