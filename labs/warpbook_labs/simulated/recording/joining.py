"""Elements of tensors put together in new memory: copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpbook_labs.simulated.recording.creating import full, sides
from warpbook_labs.simulated.recording.elementwise import type_of
from warpbook_labs.simulated.recording.moving import contiguous, copy_
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    new_like,
    of_array,
    one_device,
    place_of,
    refuse_overlap,
    stretched,
)
from warpbook_labs.simulated.recording.views import (
    dimension,
    narrow,
    reshape,
    unsqueeze,
)


def cat(
    tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None
) -> Tensor:
    """One after another, copied."""
    parts = list(tensors)
    if not parts:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    dim = dimension(dim, parts[0].ndim)
    shape = list(parts[0].shape)
    for part in parts[1:]:
        rest = [s for at, s in enumerate(part.shape) if at != dim]
        if part.ndim != len(shape) or rest != shape[:dim] + shape[dim + 1 :]:
            raise RuntimeError(
                "Sizes of tensors must match except in dimension "
                f"{dim}. Expected {shape} but got {list(part.shape)}"
            )
    shape[dim] = sum(part.array.shape[dim] for part in parts)
    device = one_device(parts if out is None else [*parts, out])
    if out is None:
        out = new(shape, type_of(parts), place_of(device))
    elif list(out.shape) != shape:
        raise RuntimeError(
            f"out has shape {list(out.shape)}, the result {shape}; PyTorch would give "
            "out other memory, with a warning."
        )
    for part in parts:
        refuse_overlap(out, part, may_be_same=False)
    launch("cat", parts, [out], [dim])
    return out


def stack(
    tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None
) -> Tensor:
    """As elements of a new side, copied."""
    return cat([unsqueeze(tensor, dim) for tensor in tensors], dim, out=out)


def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """So often along each side, copied."""
    times = sides(repeats)
    if len(times) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    shape = (1,) * (len(times) - self.ndim) + self.array.shape
    result = new(
        [n * s for n, s in zip(times, shape, strict=True)],
        self.dtype,
        place_of(self.device),
    )
    # each side as (times, side), so that one copy fills it
    pairs = [side for n, s in zip(times, shape, strict=True) for side in (n, s)]
    single = [side for s in shape for side in (1, s)]
    source = stretched(self.array.reshape(single), tuple(pairs))
    if np.may_share_memory(source, self.array):
        copy_(of_array(result, result.array.reshape(pairs)), of_array(self, source))
        return result
    return repeat(contiguous(self), *repeats)


def _at_least(tensor: Tensor, rank: int) -> Tensor:
    if tensor.ndim >= rank:
        return tensor
    return reshape(tensor, (1,) * (rank - tensor.ndim) + tensor.array.shape)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """One below another, copied."""
    return cat([_at_least(tensor, 2) for tensor in tensors])


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """One beside another, copied."""
    parts = [_at_least(tensor, 1) for tensor in tensors]
    return cat(parts, 0 if parts[:1] and parts[0].ndim == 1 else 1)


def flip(input: Tensor, *dims: Any) -> Tensor:
    """Some sides from their end, copied."""
    axes = [dimension(dim, input.ndim) for dim in sides(dims)]
    if len(set(axes)) < len(axes):
        raise RuntimeError("dim appears multiple times in the list of dims")
    result = new_like(input, input.dtype, place_of(input.device))
    launch("flip", [input], [result], axes)
    return result


def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Tensor:
    """One number around it, copied; the last side is given first."""
    if mode != "constant" or min(pad, default=0) < 0:
        refuse(f"pad with mode={mode!r} or less than 0; it has 'constant'")
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of "
            f"the input. Pad length is {len(pad)} while the input has {input.ndim} "
            "dimensions."
        )
    shape, pairs = list(input.shape), []
    for at in range(len(pad) // 2):
        dim = input.ndim - 1 - at
        pairs.append((dim, pad[2 * at], shape[dim]))
        shape[dim] += pad[2 * at] + pad[2 * at + 1]
    result = full(shape, value or 0, dtype=input.dtype, device=input.device)
    inner = result
    for dim, start, length in pairs:
        inner = narrow(inner, dim, start, length)
    copy_(inner, input)
    return result
