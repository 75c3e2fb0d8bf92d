"""The results of a run, and how far those of a changed run are from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.saved_tensors import free_gpu_bytes
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook_profiler.model.trials import OutputDifference

LAST_VALUE = "the last expression"
#: more results of one name than this are not looked at
_MOST_OF_A_NAME = 1000
#: of a large tensor, so many numbers are compared at a time
_CHUNK = 1 << 24
#: of what sums of a few thousand products round to; half dtypes round once, at the end
_ROUNDINGS = 64
_ROUNDINGS_OF_HALF = 2
#: longer whole numbers fit no float
_MOST_BITS = 1000

Outputs = dict[str, torch.Tensor]


def collect(snapshot: Snapshot, last: Any) -> Outputs:
    """Copy what a run has bound and changed, and its last expression's value.

    Args:
        snapshot: the state in which it began.
        last: the value.
    """
    outputs: Outputs = {}
    names = snapshot.changed_names().items()
    results = {name: value for name, value in names if not name.startswith("_")}
    with torch.no_grad():
        for name, value in {**snapshot.changed(), **results, LAST_VALUE: last}.items():
            tensors = _tensors(name, value, 0)
            for path, tensor in itertools.islice(tensors, _MOST_OF_A_NAME):
                if path not in outputs:
                    outputs[path] = _copied(tensor)
    return outputs


def compare(
    unchanged: Outputs, changed: Outputs, again: Outputs | None = None
) -> OutputDifference:
    """Return how far results differ, and whether more than rounding explains.

    Args:
        unchanged: of a run of the cell as it is.
        changed: of a run with a change.
        again: of another run of the cell as it is.
    """
    count = len(unchanged)
    missing = sorted(unchanged.keys() ^ changed.keys())
    if missing:
        return _mismatch(f"{missing[0]} is not a result of both", count)
    worst = OutputDifference("", "", 0, 0.0, 0.0, 0.0, 0.0, False)
    most_excess = -1.0
    for name, before in unchanged.items():
        compared = _distance(before, changed[name])
        if isinstance(compared, str):
            return _mismatch(f"{name} {compared}", count)
        absolute, relative = compared
        expected, noise = expected_relative(before.dtype), 0.0
        if again is not None and name in again:
            of_same = _distance(before, again[name])
            noise = 0.0 if isinstance(of_same, str) else of_same[1]
        allowed = max(expected, 2 * noise)
        excess = relative / allowed if allowed else math.inf if relative else 0.0
        if excess > most_excess:
            most_excess = excess
            worst = OutputDifference(
                name,
                str(before.dtype).removeprefix("torch."),
                count,
                absolute,
                relative,
                expected,
                noise,
                excess > 1,
            )
    return worst


def expected_relative(dtype: torch.dtype) -> float:
    """Return what rounding explains, relative to a tensor's largest value."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    epsilon: float = torch.finfo(dtype).eps
    is_half = epsilon > torch.finfo(torch.float32).eps
    return epsilon * (_ROUNDINGS_OF_HALF if is_half else _ROUNDINGS)


def _mismatch(words: str, count: int) -> OutputDifference:
    return OutputDifference("", "", count, 0.0, 0.0, 0.0, 0.0, True, words)


def _tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if value.layout == torch.strided:
            yield name, value.detach()
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fiubc":
            yield name, torch.from_numpy(np.array(value))
    elif isinstance(value, (bool, int, float, complex, np.number)):
        if not isinstance(value, int) or value.bit_length() <= _MOST_BITS:
            yield name, torch.from_numpy(np.array([value], _dtype_of(value)))
    elif isinstance(value, torch.nn.Module):
        for part, parameter in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{part}", parameter.detach()
    elif depth < 4 and isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in itertools.islice(items, _MOST_OF_A_NAME):
            yield from _tensors(f"{name}[{key!r:.30}]", item, depth + 1)


def _dtype_of(value: Any) -> type[np.number[Any]]:
    if isinstance(value, (complex, np.complexfloating)):
        return np.complex128
    # most of Python's come of a tensor's item(), and are no more exact than it was
    return np.float32 if type(value) is float else np.float64


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    size_bytes = tensor.numel() * tensor.element_size()
    if tensor.is_cuda and free_gpu_bytes(tensor.device) < 4 * size_bytes:
        return tensor.to("cpu")
    return tensor.clone()


def _distance(before: torch.Tensor, after: torch.Tensor) -> tuple[float, float] | str:
    """Return the largest difference, also relative; or why there is none."""
    if before.shape != after.shape:
        return f"has the shape {tuple(after.shape)} instead of {tuple(before.shape)}"
    absolute = largest = 0.0
    ones, others = before.reshape(-1), after.to(before.device).reshape(-1)
    for one, other in zip(ones.split(_CHUNK), others.split(_CHUNK), strict=True):
        if not one.numel():
            continue
        one, other = _wide(one), _wide(other)
        strange = ~(torch.isfinite(one) & torch.isfinite(other))
        same = (one == other) | (torch.isnan(one) & torch.isnan(other))
        if bool((strange & ~same).any()):
            return "is infinite or no number where the other is not"
        one, other = one.masked_fill(strange, 0), other.masked_fill(strange, 0)
        absolute = max(absolute, float((one - other).abs().max()))
        largest = max(largest, float(one.abs().max()))
    return absolute, absolute / largest if largest else float(absolute > 0)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.to(torch.float64)
