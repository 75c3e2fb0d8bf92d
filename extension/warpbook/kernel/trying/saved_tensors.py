"""Tensors and arrays as they were: contents, place, gradient and version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch
from torch.overrides import TorchFunctionMode

from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.refusals import NoRoom
from warpbook_monitors import units

#: of what is free, the most that copies take
_MOST_SHARE = 0.9


@dataclass(frozen=True)
class _SavedStorage:
    """The bytes of one allocation, which several tensors may share."""

    path: str
    bytes_now: torch.Tensor
    bytes_then: torch.Tensor

    def is_same(self) -> bool:
        then = self.bytes_then
        if then.device != self.bytes_now.device:
            then = then.to(self.bytes_now.device)
        return bool(torch.equal(self.bytes_now, then))

    def restore(self) -> None:
        # memory of the host may be mapped read-only, and is then the same
        if self.bytes_now.is_cuda or not self.is_same():
            self.bytes_now.copy_(self.bytes_then)


@dataclass(frozen=True)
class _SavedTensor:
    """Where one tensor's elements are, and what belongs to it."""

    path: str
    tensor: torch.Tensor
    #: another tensor on the same elements
    place: torch.Tensor
    requires_grad: bool
    grad: torch.Tensor | None
    has_grad: bool
    version: int | None

    def is_same(self) -> bool:
        tensor, place = self.tensor, self.place
        return (
            _place(tensor) == _place(place)
            and tensor.requires_grad == self.requires_grad
            and (not self.has_grad or tensor.grad is self.grad)
            and (self.version is None or tensor._version == self.version)
        )

    def is_written(self) -> bool:
        return self.version is not None and self.tensor._version != self.version

    def restore(self) -> None:
        tensor = self.tensor
        if _place(tensor) != _place(self.place):
            tensor.data = self.place
        if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
            tensor.requires_grad_(self.requires_grad)
        if self.has_grad and tensor.grad is not self.grad:
            tensor.grad = self.grad
        if self.version is not None and self.is_written():
            # else a graph of the person's own would refuse its backward pass
            torch._C._autograd._unsafe_set_version_counter((tensor,), (self.version,))


class SavedTensors:
    """All tensors and arrays that a cell can change."""

    def __init__(self, reached: Reached, room_for_a_run_bytes: int = 0) -> None:
        """Copy them.

        Args:
            reached: what the cell can change.
            room_for_a_run_bytes: what a run needs on the GPU beside them.

        Raises:
            NoRoom: the copies don't fit.
        """
        storages = _storages(reached.tensors)
        arrays = [entry for entry in reached.arrays if entry[1].flags.writeable]
        on_host = _places(storages.values(), arrays, room_for_a_run_bytes)
        self._storages = [
            _SavedStorage(path, now, now.to("cpu") if on_host else now.clone())
            for path, now in storages.values()
        ]
        self._tensors = [_saved(*entry) for entry in reached.tensors]
        self._arrays = [(path, array, array.copy()) for path, array in arrays]
        self.size_bytes = _size(storages.values(), arrays)

    def restore(self) -> None:
        # places first: a tensor may hold its elements elsewhere now
        for tensor in self._tensors:
            tensor.restore()
        for storage in self._storages:
            storage.restore()
        for _, array, then in self._arrays:
            if array.shape != then.shape:
                array.resize(then.shape, refcheck=False)
            if not _is_equal(array, then):
                np.copyto(array, then)

    def places(self) -> list[tuple[str, torch.Tensor | np.ndarray[Any, Any]]]:
        """Give all of them, each with the way that leads to it."""
        arrays = ((path, array) for path, array, _ in self._arrays)
        return [*((one.path, one.tensor) for one in self._tensors), *arrays]

    def changed(
        self, written: bool = False
    ) -> list[tuple[str, torch.Tensor | np.ndarray[Any, Any]]]:
        """Give those that hold something else now.

        Args:
            written: also tensors that torch has written, and hold what they held.
        """
        changed = {
            storage.bytes_now.untyped_storage().data_ptr()
            for storage in self._storages
            if not storage.is_same()
        }
        results: list[tuple[str, Any]] = []
        for saved in self._tensors:
            is_moved = _place(saved.tensor) != _place(saved.place)
            # a tensor that was laid out anew may hold the same
            is_changed = (
                not _is_equal_tensor(saved.tensor, saved.place)
                if is_moved
                else saved.place.untyped_storage().data_ptr() in changed
            )
            if is_changed or (written and saved.is_written()):
                results.append((saved.path, saved.tensor))
            if saved.has_grad and saved.tensor.grad is not saved.grad:
                if saved.tensor.grad is not None:
                    results.append((f"{saved.path}.grad", saved.tensor.grad))
        for path, array, then in self._arrays:
            if not _is_equal(array, then):
                results.append((path, array))
        return results

    def differences(self) -> list[str]:
        """Name those that are not as they were; none after `restore`."""
        return [
            *(saved.path for saved in self._tensors if not saved.is_same()),
            *(saved.path for saved in self._storages if not saved.is_same()),
            *(path for path, now, then in self._arrays if not _is_equal(now, then)),
        ]


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Give all bytes of the memory in which a tensor lies."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)


def _storages(
    tensors: Iterable[tuple[str, torch.Tensor]],
) -> dict[tuple[str, int], tuple[str, torch.Tensor]]:
    by_place: dict[tuple[str, int], tuple[str, torch.Tensor]] = {}
    for path, tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.nbytes():
            key = (str(tensor.device), storage.data_ptr())
            known = by_place.get(key)
            # of memory that several share, one may see more
            if known is None or known[1].nbytes < storage.nbytes():
                by_place[key] = (path, bytes_of(tensor))
    return by_place


def _saved(path: str, tensor: torch.Tensor) -> _SavedTensor:
    # what autograd keeps of a result has no gradient of its own
    has_grad = tensor.is_leaf or tensor.retains_grad
    return _SavedTensor(
        path,
        tensor,
        tensor.detach(),
        tensor.requires_grad,
        tensor.grad if has_grad else None,
        has_grad,
        None if tensor.is_inference() else tensor._version,
    )


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tensor.device,
        tensor.dtype,
        tensor.untyped_storage().data_ptr(),
        tensor.storage_offset(),
        tensor.size(),
        tensor.stride(),
    )


def _is_equal_tensor(now: torch.Tensor, then: torch.Tensor) -> bool:
    return bool(now.device == then.device and torch.equal(now, then))


def _is_equal(now: np.ndarray[Any, Any], then: np.ndarray[Any, Any]) -> bool:
    # NaN is no change
    return now.shape == then.shape and now.tobytes() == then.tobytes()


def _size(
    storages: Iterable[tuple[str, torch.Tensor]],
    arrays: Iterable[tuple[str, np.ndarray[Any, Any]]],
) -> int:
    sizes = (now.numel() for _, now in storages)
    return int(sum(sizes) + sum(array.nbytes for _, array in arrays))


def _places(
    storages: Iterable[tuple[str, torch.Tensor]],
    arrays: Iterable[tuple[str, np.ndarray[Any, Any]]],
    room_for_a_run_bytes: int,
) -> bool:
    """Tell whether copies of what is on GPUs have to lie in the host's memory.

    Raises:
        NoRoom: there is none in either.
    """
    storages = list(storages)
    on_gpu: dict[torch.device, int] = {}
    host_bytes = sum(array.nbytes for _, array in arrays)
    for _, now in storages:
        if now.is_cuda:
            on_gpu[now.device] = on_gpu.get(now.device, 0) + now.numel()
        else:
            host_bytes += now.numel()
    fits = all(
        wanted + room_for_a_run_bytes <= _MOST_SHARE * free_gpu_bytes(device)
        for device, wanted in on_gpu.items()
    )
    on_host = not fits
    wanted_on_host = host_bytes + (sum(on_gpu.values()) if on_host else 0)
    free_bytes = free_host_bytes()
    if wanted_on_host > _MOST_SHARE * free_bytes:
        gpus = ", ".join(
            f"{units.size(free_gpu_bytes(device))} are free on {device}"
            for device in on_gpu
        )
        raise NoRoom(
            f"a copy of the cell's state takes "
            f"{units.size(host_bytes + sum(on_gpu.values()))}; "
            f"{units.size(free_bytes)} of the host's memory are free"
            f"{', ' + gpus if gpus else ''}."
        )
    return on_host


def free_gpu_bytes(device: torch.device) -> int:
    """Give what torch can allocate: free on the GPU, or kept by torch and unused."""
    free_bytes, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free_bytes + kept)


def free_host_bytes() -> int:
    """Give the memory of this machine that is available."""
    return int(psutil.virtual_memory().available)


@contextlib.contextmanager
def counted_writes() -> Iterator[None]:
    """Have torch count what functions over lists of tensors write.

    On a GPU `_foreach_lerp_`, and everywhere fused optimizers, leave the versions of
    tensors as they are. A compiler would compile anew within.
    """
    with _CountingWrites():
        yield


class _CountingWrites(TorchFunctionMode):  # type: ignore[misc]
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name.endswith("_") and name.startswith(("_foreach_", "_fused_")):
            # a fused step has averages behind the parameters' gradients
            averages = args[2:5] if name.startswith("_fused_") else ()
            for written in (args[0], *averages):
                torch.autograd.graph.increment_version(written)
        return result
