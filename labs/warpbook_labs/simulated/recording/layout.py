"""In which order elements lie: `torch.channels_last` and its like."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.simulated.recording.tensor import Tensor


class MemoryFormat:
    """An order of the elements of a tensor."""

    def __init__(self, name: str) -> None:
        """Name an order."""
        self._name = name

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        return f"torch.{self._name}"


CONTIGUOUS = MemoryFormat("contiguous_format")
PRESERVE = MemoryFormat("preserve_format")
CHANNELS_LAST = MemoryFormat("channels_last")


def strides(shape: Sequence[int], order: object) -> list[int]:
    """The strides, in elements, of a tensor that is whole in this order."""
    if not isinstance(order, MemoryFormat):
        raise TypeError(
            "argument 'memory_format' must be torch.memory_format, not "
            f"{type(order).__name__}"
        )
    dims = list(range(len(shape)))
    if order is CHANNELS_LAST:
        if len(shape) != 4:
            raise RuntimeError("required rank 4 tensor to use channels_last format")
        dims = [0, 2, 3, 1]
    result = [1] * len(shape)
    step = 1
    for dim in reversed(dims):
        result[dim] = step
        step *= max(shape[dim], 1)
    return result


def is_ordered(tensor: Tensor, order: object = CONTIGUOUS) -> bool:
    """Whether its elements lie in an order; any does for what is to be preserved."""
    if order is None or order is PRESERVE:
        return True
    if order is CONTIGUOUS:
        return bool(tensor.array.flags.c_contiguous)
    if order is CHANNELS_LAST and tensor.ndim == 4:
        return bool(tensor.array.transpose(0, 2, 3, 1).flags.c_contiguous)
    return False
