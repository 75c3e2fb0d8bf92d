"""Tensors and arrays as they were: contents, place, gradient and version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import psutil
import torch

from warpbook.kernel.trying.kept import Kept
from warpbook.kernel.trying.refusals import Refused
from warpbook_monitors import units

#: of what is free, the most that copies take
_MOST_SHARE = 0.9

Array = np.ndarray[Any, Any]


class SavedTensor:
    """Where one tensor's elements are, and what belongs to it."""

    def __init__(self, path: str, tensor: torch.Tensor) -> None:
        self.path = path
        self._tensor = tensor
        #: another tensor on the same elements
        self._place = tensor.detach()
        self._requires_grad = tensor.requires_grad
        # what autograd keeps of a result has no gradient of its own
        self._has_grad = tensor.is_leaf or tensor.retains_grad
        self._grad = tensor.grad if self._has_grad else None
        self._version = None if tensor.is_inference() else tensor._version

    def differs(self) -> bool:
        """Return whether anything but the elements is not as it was."""
        return (
            self._is_moved()
            or self._tensor.requires_grad != self._requires_grad
            or self._has_other_grad()
            or self._has_other_version()
        )

    def restore(self) -> None:
        """Put all of it back, but for the elements."""
        tensor = self._tensor
        if self._is_moved():
            tensor.data = self._place
        if tensor.is_leaf and tensor.requires_grad != self._requires_grad:
            tensor.requires_grad_(self._requires_grad)
        if self._has_other_grad():
            tensor.grad = self._grad
        if self._has_other_version():
            # else a graph of the person's own would refuse its backward pass
            torch._C._autograd._unsafe_set_version_counter((tensor,), (self._version,))

    def changed(self, changed_memory: set[int]) -> dict[str, torch.Tensor]:
        """Return the tensor and its gradient where they hold something else now.

        Args:
            changed_memory: addresses of memory that holds something else.
        """
        now, then, results = self._tensor, self._place, {}
        # a tensor that was laid out anew may hold the same
        is_same = (
            now.device == then.device and torch.equal(now, then)
            if self._is_moved()
            else then.untyped_storage().data_ptr() not in changed_memory
        )
        if not is_same:
            results[self.path] = now
        if self._has_other_grad() and now.grad is not None:
            results[f"{self.path}.grad"] = now.grad
        return results

    def _is_moved(self) -> bool:
        return _place(self._tensor) != _place(self._place)

    def _has_other_grad(self) -> bool:
        return self._has_grad and self._tensor.grad is not self._grad

    def _has_other_version(self) -> bool:
        return self._version is not None and self._tensor._version != self._version


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        *(tensor.device, tensor.dtype, tensor.untyped_storage().data_ptr()),
        *(tensor.storage_offset(), tensor.size(), tensor.stride()),
    )


def keep_memory(
    tensors: Iterable[tuple[str, torch.Tensor]],
    arrays: Iterable[tuple[str, Array]],
    run_bytes: int,
) -> tuple[dict[int, Kept], list[tuple[Array, Kept]]]:
    """Copy the memory of tensors, which several may share, by address; and arrays.

    Args:
        tensors: each with the way that leads to it.
        arrays: the same of NumPy's.
        run_bytes: what a run needs on the GPU beside them.

    Raises:
        Refused: the copies don't fit.
    """
    memory: dict[int, tuple[str, torch.Tensor]] = {}
    for path, tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.nbytes():
            empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
            memory.setdefault(storage.data_ptr(), (path, empty.set_(storage)))
    arrays = [(path, array) for path, array in arrays if array.flags.writeable]
    sizes = Counter({torch.device("cpu"): sum(array.nbytes for _, array in arrays)})
    for _, now in memory.values():
        sizes[now.device] += now.numel()
    on_host = _has_to_lie_on_host(sizes, run_bytes)
    return {
        address: _keep_bytes(path, now, now.to("cpu") if on_host else now.clone())
        for address, (path, now) in memory.items()
    }, [(array, _keep_array(path, array)) for path, array in arrays]


def _keep_bytes(path: str, now: torch.Tensor, then: torch.Tensor) -> Kept:
    return Kept(path, lambda: now, now.copy_, _is_same_memory, then)


def _is_same_memory(now: torch.Tensor, then: torch.Tensor) -> bool:
    return bool(torch.equal(now, then.to(now.device)))


def _keep_array(path: str, array: Array) -> Kept:
    write = partial(np.copyto, array)
    return Kept(path, lambda: array, write, _is_same_array, array.copy())


def _is_same_array(now: Array, then: Array) -> bool:
    # NaN is no change
    return now.shape == then.shape and now.tobytes() == then.tobytes()


def _has_to_lie_on_host(sizes: dict[torch.device, int], run_bytes: int) -> bool:
    """Return whether copies of what is on GPUs have to lie in the host's memory.

    Raises:
        Refused: there is no room in either.
    """
    free = {gpu: free_gpu_bytes(gpu) for gpu in sizes if gpu.type == "cuda"}
    on_host = any(
        sizes[gpu] + run_bytes > _MOST_SHARE * free_bytes
        for gpu, free_bytes in free.items()
    )
    host_bytes = sum(sizes.values()) - (
        0 if on_host else sum(sizes[gpu] for gpu in free)
    )
    free_bytes = free_host_bytes()
    if host_bytes > _MOST_SHARE * free_bytes:
        gpus = (f", {units.size(size)} are free on {gpu}" for gpu, size in free.items())
        raise Refused(
            f"a copy of the cell's state takes {units.size(sum(sizes.values()))}; "
            f"{units.size(free_bytes)} of the host's memory are free{''.join(gpus)}."
        )
    return on_host


def free_gpu_bytes(device: torch.device) -> int:
    """Return what torch can allocate: free on the GPU, or kept by torch and unused."""
    free_bytes, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free_bytes + kept)


def free_host_bytes() -> int:
    """Return the memory of this machine that is available."""
    return int(psutil.virtual_memory().available)
