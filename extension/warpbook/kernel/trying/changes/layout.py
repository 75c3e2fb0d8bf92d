"""Images and filters with their channels last, as tensor cores read them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from warpbook.kernel.trying.changes.change import Applied, TriedCell


class ChannelsLast:
    """Convolutions' filters, what optimizers keep of them, and the images."""

    name: ClassVar[str] = "channels-last"
    advice: ClassVar[str] = (
        "Write model.to(memory_format=torch.channels_last), and the same for images."
    )
    warm_ups: ClassVar[int] = 3

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        convolutions = cell.facts.convolutions
        if not convolutions:
            return "no torch.nn.Conv2d ran."
        if not any(map(cell.is_kept, convolutions)):
            return "the cell makes its modules itself: move that to a cell before it."
        if all(_is_channels_last(convolution.weight) for convolution in convolutions):
            return "the filters have their channels last already."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Lay everything out anew, in memory of its own; the old memory stays as is."""
        moved = [
            (tensor, tensor.data)
            for tensor in _wanted(cell)
            if not _is_channels_last(tensor)
        ]
        hooks = [
            module.register_forward_pre_hook(_with_channels_last)
            for module in cell.facts.modules
        ]
        try:
            for tensor, _ in moved:
                tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)
            yield Applied(cell.run)
        finally:
            for hook in hooks:
                hook.remove()
            for tensor, then in moved:
                tensor.data = then


def _wanted(cell: TriedCell) -> Iterator[torch.Tensor]:
    filters = []
    for module in cell.reached.modules:
        if isinstance(module, torch.nn.Conv2d):
            filters.append(module.weight)
    yield from filters
    for weight in filters:
        if weight.grad is not None:
            yield weight.grad
        for optimizer in cell.reached.optimizers:
            for kept in optimizer.state.get(weight, {}).values():
                if isinstance(kept, torch.Tensor) and kept.shape == weight.shape:
                    yield kept
    for _, tensor in cell.reached.tensors:
        is_image = tensor.untyped_storage().data_ptr() in cell.facts.images
        # a part of something larger can't be laid out by itself
        is_whole = tensor.numel() * tensor.element_size() == (
            tensor.untyped_storage().nbytes()
        )
        if is_image and is_whole and tensor.dim() == 4 and tensor.is_leaf:
            yield tensor


def _is_channels_last(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_contiguous(memory_format=torch.channels_last))


def _with_channels_last(
    module: torch.nn.Module, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    return tuple(
        argument.contiguous(memory_format=torch.channels_last)
        if isinstance(argument, torch.Tensor) and argument.dim() == 4
        else argument
        for argument in arguments
    )
