"""Copies to the GPU out of pinned memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

import torch

from warpbook.kernel.trying.changes.change import Applied, TriedCell, on_gpu_only
from warpbook.kernel.trying.saved_tensors import bytes_of, free_host_bytes
from warpbook.kernel.trying.source import RunnableBody, copies_without_waiting
from warpbook_monitors import units


class Pinned:
    """What the cell copies to the GPU is pinned beforehand, and not waited for."""

    name: ClassVar[str] = "pinned"
    advice: ClassVar[str] = (
        "Pin the memory once (tensor.pin_memory(), pin_memory=True of a DataLoader) "
        "and copy with non_blocking=True."
    )
    warm_ups: ClassVar[int] = 2

    def __init__(self) -> None:
        """Pin nothing yet."""
        #: by the address of what was there before: all bytes, pinned
        self._pinned: dict[int, torch.Tensor] = {}
        self._body: RunnableBody | None = None

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        missing = on_gpu_only(cell)
        if missing is not None:
            return missing
        if not cell.facts.pageable:
            return "the cell copies nothing from pageable memory to a GPU."
        tensors = self._tensors(cell)
        if not tensors:
            return "what it copies to the GPU is made in the cell itself."
        storages = {
            _address(tensor): tensor.untyped_storage().nbytes() for tensor in tensors
        }
        wanted_bytes = sum(storages.values())
        free_bytes = free_host_bytes()
        # pinned memory is taken from everybody
        if wanted_bytes > free_bytes // 4:
            return (
                f"it would pin {units.size(wanted_bytes)}, and "
                f"{units.size(free_bytes)} of the host's memory are free."
            )
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Put pinned copies in the place of the elements."""
        tensors = [(tensor, tensor.data) for tensor in self._tensors(cell)]
        body = self._body
        if body is None:
            tree = copies_without_waiting(cell.body, cell.namespace)
            body = self._body = cell.body.compiled(tree)
        # what the host may write meanwhile, a copy must not read on its way
        runnable = cell.plain if cell.facts.on_host else body
        try:
            for tensor, then in tensors:
                tensor.data = self._pinned_like(then)
            yield Applied(lambda: runnable.run(cell.namespace))
        finally:
            for tensor, then in tensors:
                tensor.data = then

    def _tensors(self, cell: TriedCell) -> list[torch.Tensor]:
        return [
            tensor
            for _, tensor in cell.reached.tensors
            if tensor.device.type == "cpu" and _address(tensor) in cell.facts.pageable
        ]

    def _pinned_like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Give the same elements in pinned memory; several views share one copy."""
        whole = bytes_of(tensor)
        pinned = self._pinned.get(_address(tensor))
        if pinned is None:
            pinned = self._pinned[_address(tensor)] = whole.pin_memory()
        pinned.copy_(whole)
        elements = torch.empty(0, dtype=tensor.dtype)
        elements.set_(
            pinned.untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )
        return elements


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
