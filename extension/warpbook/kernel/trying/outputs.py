"""The results of a run, and how far those of a changed run are from them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.saved_tensors import free_gpu_bytes
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook_profiler.model.trials import OutputDifference

LAST_VALUE = "the last expression"
#: more results of one name than this are not looked at
_MOST_OF_A_NAME = 10_000
#: of a large tensor, so many numbers are compared at a time
_CHUNK = 1 << 24
#: of what sums of a few thousand products round to; half dtypes round once, at the end
_ROUNDINGS = 64
_ROUNDINGS_OF_HALF = 2
#: what subtractions leave of nearly equal numbers; a wrong result is off by more
_ROUNDINGS_OF_DOUBLE = 1 << 20

#: times as much as the cell itself, on the mean, with inputs that are rounded otherwise
_LIKE = 4
#: of results on the mean, the most that this explains
_MOST_SHARE = 0.01
_OF_CELL = "the cell with its inputs rounded otherwise"
#: longer whole numbers fit no float
_MOST_BITS = 1000

_PLAIN = (torch.Tensor, torch.nn.Parameter)

Outputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class _Compared:
    absolute: float
    relative: float
    #: of all elements, absolute
    mean: float
    expected: float
    dtype: str
    mismatch: str | None = None


def collect(
    snapshot: Snapshot, last: Any, written: bool = False, names: Container[str] = ()
) -> Outputs:
    """Copy what a run has bound and changed, and its last expression's value.

    Args:
        snapshot: the state in which it began.
        last: the value.
        written: also tensors that were written, and hold what they held.
        names: whose values are copied, even if they are bound as before.
    """
    named = snapshot.names.changed(names).items()
    own = ((name, value) for name, value in named if not name.startswith("_"))
    changed = (*snapshot.changed(written), *snapshot.objects.changed())
    return copied((*own, *changed, (LAST_VALUE, last)))


def copied(values: Iterable[tuple[str, Any]]) -> Outputs:
    """Copy the numbers and tensors of values, by the way that leads to each."""
    outputs: Outputs = {}
    with torch.no_grad():
        for path, value in values:
            _add(outputs, path, value)
    return outputs


def compare(
    unchanged: Outputs,
    changed: Outputs,
    again: Outputs | None = None,
    rounding: float = 0.0,
    rounded: Sequence[Outputs] = (),
) -> OutputDifference:
    """Tell how far results differ, and whether more than rounding explains.

    Args:
        unchanged: of a run of the cell as it is.
        changed: of a run with a change.
        again: of another run of the cell as it is.
        rounding: of the change's own dtype, relative to a tensor's largest value.
        rounded: of runs of the cell as it is with inputs that are rounded otherwise.
    """
    missing = sorted(unchanged.keys() ^ changed.keys())
    if missing:
        return _mismatch(f"{missing[0]} is not a result of both", len(unchanged))
    worst: tuple[float, str, _Compared, float, float] | None = None
    for name, before in unchanged.items():
        result = _compare(before, changed[name])
        if result.mismatch is not None:
            return _mismatch(f"{name} {result.mismatch}", len(unchanged))
        noise = 0.0
        if again is not None and name in again:
            noise = _compare(before, again[name]).relative
        expected = max(result.expected, rounding if result.expected else 0.0)
        if expected > result.expected:
            result = replace(result, dtype="the change's dtype")
        allowed = max(expected, 2 * noise)
        excess = result.relative / allowed if allowed else result.relative * np.inf
        # what is no difference at all is no number times infinity
        excess = 0.0 if result.relative == 0 else excess
        if excess > 1:
            of_cell = [_compare(before, run[name]) for run in rounded if name in run]
            most = _LIKE * max((one.mean for one in of_cell), default=0.0)
            # a cell with random results can't tell a right edit from a wrong one
            most = min(most, _MOST_SHARE * _compare(before, before * 0).mean)
            # nor does the mean show an element that is wrong by itself
            farthest = _LIKE * max((one.absolute for one in of_cell), default=0.0)
            if result.mean <= most and result.absolute <= farthest:
                result = replace(result, dtype=_OF_CELL)
                excess = result.mean / most
                expected = max(one.relative for one in of_cell)
        if worst is None or excess > worst[0]:
            worst = (excess, name, result, expected, noise)
    if worst is None:
        return OutputDifference("", "", 0, 0.0, 0.0, 0.0, 0.0, False)
    excess, name, result, expected, noise = worst
    return OutputDifference(
        name,
        result.dtype,
        len(unchanged),
        result.absolute,
        result.relative,
        expected,
        noise,
        excess > 1,
    )


def expected_relative(dtype: torch.dtype) -> float:
    """Give what rounding explains, relative to a tensor's largest value."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    epsilon: float = torch.finfo(dtype).eps
    if epsilon < torch.finfo(torch.float32).eps:
        return epsilon * _ROUNDINGS_OF_DOUBLE
    is_half = epsilon > torch.finfo(torch.float32).eps
    return epsilon * (_ROUNDINGS_OF_HALF if is_half else _ROUNDINGS)


def round_otherwise(reached: Reached, number: int) -> None:
    """Have tensors lie elsewhere, with elements off by as much as results may round.

    What shares memory still does. Probabilities and indices stay what they are.

    Args:
        reached: holds them, in a state that is put back.
        number: of the rounding; each is another one.
    """
    moved: dict[tuple[Any, ...], torch.Tensor] = {}
    with torch.no_grad():
        for _, tensor in reached.tensors:
            if not _is_rounded(tensor):
                continue
            storage = tensor.untyped_storage()
            place = tensor.device, storage.data_ptr(), tensor.dtype
            if place not in moved:
                every = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                seed = (number << 32) + len(moved)
                moved[place] = _rounded(every.set_(storage), seed)
            layout = tensor.size(), tensor.stride(), tensor.storage_offset()
            tensor.data = moved[place].as_strided(*layout)


def _is_rounded(tensor: torch.Tensor) -> bool:
    is_plain = type(tensor) in _PLAIN and tensor.layout == torch.strided
    is_own = tensor.is_leaf and not tensor.is_inference()
    return is_plain and is_own and tensor.is_floating_point() and bool(tensor.numel())


def _rounded(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    if not bool(torch.isfinite(tensor).all()):
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(seed)
    off = torch.empty_like(tensor, dtype=torch.float32)
    off.uniform_(-1, 1, generator=generator)
    # as much as sums of products, which leaves float64 its digits
    most = _ROUNDINGS * torch.finfo(tensor.dtype).eps
    most = min(most, expected_relative(tensor.dtype))
    copy = tensor + tensor * (most * off).to(tensor.dtype)
    whole = tensor == tensor.round()
    return torch.where(whole, tensor, copy.clamp(tensor.min(), tensor.max()))


def _mismatch(words: str, compared: int) -> OutputDifference:
    return OutputDifference("", "", compared, 0.0, 0.0, 0.0, 0.0, True, words)


def _add(outputs: Outputs, name: str, value: Any) -> None:
    for count, (path, tensor) in enumerate(_tensors(name, value, 0)):
        if count == _MOST_OF_A_NAME:
            return
        outputs.setdefault(path, _copied(tensor))


def _tensors(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if value.layout == torch.strided:
            yield name, value.detach()
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fiubc":
            yield name, torch.from_numpy(np.array(value))
    elif isinstance(value, (bool, int, float, complex, np.number)):
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            return
        yield name, torch.from_numpy(np.array([value], _dtype_of(value)))
    elif isinstance(value, torch.nn.Module):
        for part, parameter in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{part}", parameter.detach()
    elif depth < 4 and isinstance(value, (list, tuple)):
        for at, item in enumerate(value[:_MOST_OF_A_NAME]):
            yield from _tensors(f"{name}[{at}]", item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in list(value.items())[:_MOST_OF_A_NAME]:
            yield from _tensors(f"{name}[{key!r:.30}]", item, depth + 1)
    elif depth < 4 and _is_of_person(value):
        for attribute, item in vars(value).items():
            yield from _tensors(f"{name}.{attribute}", item, depth + 1)


def _is_of_person(value: Any) -> bool:
    """Tell whether an object is of a class of the notebook's own."""
    kind = type(value)
    is_object = kind.__module__ == "__main__" and hasattr(value, "__dict__")
    return is_object and not isinstance(value, type)


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


def _compare(before: torch.Tensor, after: torch.Tensor) -> _Compared:
    dtype = str(before.dtype).removeprefix("torch.")
    expected = expected_relative(before.dtype)
    if before.shape != after.shape:
        words = f"has the shape {tuple(after.shape)} instead of {tuple(before.shape)}"
        return _Compared(0.0, 0.0, 0.0, expected, dtype, words)
    absolute = largest = total = 0.0
    for one, other in _chunks(before, after):
        strange = ~(torch.isfinite(one) & torch.isfinite(other))
        same = (one == other) | (torch.isnan(one) & torch.isnan(other))
        if bool((strange & ~same).any()):
            words = "is infinite or no number where the other is not"
            return _Compared(0.0, 0.0, 0.0, expected, dtype, words)
        one, other = one.masked_fill(strange, 0), other.masked_fill(strange, 0)
        off = (one - other).abs()
        absolute, total = max(absolute, float(off.max())), total + float(off.sum())
        largest = max(largest, float(one.abs().max()))
    relative = absolute / largest if largest else float(absolute > 0)
    mean = total / max(before.numel(), 1)
    return _Compared(absolute, relative, mean, expected, dtype)


def _chunks(
    before: torch.Tensor, after: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    one, other = before.reshape(-1), after.to(before.device).reshape(-1)
    for start in range(0, one.numel(), _CHUNK):
        part = slice(start, start + _CHUNK)
        yield _wide(one[part]), _wide(other[part])


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.to(torch.float64)
