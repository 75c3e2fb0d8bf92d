"""Memory of one case: which tensors have which, and when nobody holds it any more."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import _disable_current_modes

from warpbook_labs.engines.simulated.program import (
    HOST,
    Allocate,
    Launch,
    Place,
    Release,
    View,
)
from warpbook_labs.engines.simulated.pytorch import accelerator
from warpbook_labs.engines.simulated.pytorch.current import Record, refuse

_ALIGNMENT = 512
#: of one allocation
_MOST_BYTES = 4 << 30
_MOST_CONSTANTS = 10_000
_GONE = (
    "The page-locked tensor that the GPU sees here is gone, and its memory may be "
    "another's: have what names its address keep the tensor."
)
#: as it is before `looking` puts another in its place
_from_numpy, _tolist = torch.from_numpy, torch.Tensor.tolist


class Memory:
    """One allocation."""

    def __init__(self, number: int, place: Place, size_bytes: int) -> None:
        self.number, self.place, self.size_bytes = number, place, size_bytes
        #: of the GPU's: a tensor of the CPU's that has the same bytes
        self.cpu: Any = None
        #: of page-locked memory, as kernels may use it when no tensor has it any more
        self.bytes: NDArray[np.uint8] | None = None
        #: the page-locked memory that this is, as a kernel reaches it by its address
        self.shown: Memory | None = None
        self.address = 0
        self.is_released = False
        #: how often it was written
        self.writes = 0
        #: calls back when the storage's last owner lets go, which may be one in C++
        self.watch: weakref.ref[Any] | None = None

    def as_tensor(self, dtype: Any, offset: int, shape: Any, strides: Any) -> Any:
        """Give page-locked memory as a tensor of the CPU's that keeps it."""
        storage = _from_numpy(self.bytes).untyped_storage()
        return torch.empty(0, dtype=dtype).set_(storage, offset, shape, strides)


class Memories:
    """All memory of one case, by the storages of PyTorch's tensors."""

    def __init__(self, record: Record) -> None:
        #: bytes of the GPU that tensors hold, and the most that they held
        self.allocated = self.most_allocated = 0
        self._record = record
        self._by_storage: dict[int, Memory] = {}

    def adopt(self, cpu: Any, place: Place) -> Any:
        """Take in a new tensor of the CPU's; give it as the learner gets it."""
        tensor, memory = self._enter(cpu, place)
        stream = self._record.stream if place == "device" else HOST
        line = self._record.line() if self._record.is_kept else 0
        self._record.add(
            Allocate(memory.number, memory.size_bytes, place, stream, line)
        )
        if place == "device":
            self.allocated += _rounded_up(memory.size_bytes)
            self.most_allocated = max(self.most_allocated, self.allocated)
        return tensor

    def lend(self, cpu: Any, place: Place) -> Any:
        """Take in a buffer of the lab, which nobody allocates or releases."""
        return self._enter(cpu, place, is_lent=True)[0]

    def show(self, pinned: Memory, asker: Any, cpu: Any) -> Any:
        """Give page-locked memory as kernels see it by its address.

        Args:
            asker: who named the address, which the tensor keeps.
        """
        tensor = accelerator.as_cuda(cpu)
        storage = tensor.untyped_storage()
        memory = Memory(pinned.number, "pinned", pinned.size_bytes)
        memory.shown, memory.cpu, memory.address = pinned, cpu, pinned.address
        key, by_storage = storage._cdata, self._by_storage

        def let_go(_: object, asker: Any = asker) -> None:
            by_storage.pop(key, None)

        memory.watch = weakref.ref(storage, let_go)
        by_storage[key] = memory
        return tensor

    def pinned_at(self, address: int) -> Memory | None:
        """Find the page-locked memory that has an address."""
        for memory in self._by_storage.values():
            is_host = memory.place == "pinned" and memory.shown is None
            if is_host and 0 <= address - memory.address < memory.size_bytes:
                return memory
        return None

    def reset_peak(self) -> None:
        """Count the most memory from now on."""
        self.most_allocated = self.allocated

    def of(self, tensor: Any) -> Memory:
        if tensor.layout != torch.strided:
            refuse(f"tensors of the layout {tensor.layout}")
        memory = self._by_storage.get(tensor.untyped_storage()._cdata)
        if memory is not None:
            if memory.shown is not None and memory.shown.is_released:
                raise RuntimeError(_GONE)
            return memory
        if tensor.is_cuda:
            refuse("memory that came by DLPack or pickle, or was kept of another case")
        # made where nothing is seen, as by from_numpy: its numbers are constants
        self.adopt(tensor, "pageable")
        with _disable_current_modes():
            flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
            count = flat.numel()
            numbers = _tolist(flat.double()) if count <= _MOST_CONSTANTS else []
        if count > _MOST_CONSTANTS:
            refuse(
                f"room for more than {_MOST_CONSTANTS:,} numbers of Python",
                "Large inputs come in the buffers of the case.",
            )
        if count:
            line = self._record.line()
            views = (self.view(flat),)
            self._record.add(Launch("constant", HOST, (), views, tuple(numbers), line))
        return self.of(tensor)

    def view(self, tensor: Any) -> View:
        """Say which elements of which memory a tensor is."""
        memory = self.of(tensor)
        offset = tensor.storage_offset()
        is_mapped = memory.shown is not None
        if is_mapped:
            offset += (tensor.untyped_storage().data_ptr() - memory.address) // (
                tensor.element_size()
            )
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape, strides = tuple(tensor.shape), tensor.stride()
        return View(memory.number, dtype, shape, strides, offset, is_mapped)

    def alias(self, tensor: Any) -> Any:
        """Give the CPU's tensor of the same elements; anything else as it is."""
        if not (isinstance(tensor, torch.Tensor) and tensor.is_cuda):
            return tensor
        cpu = self.of(tensor).cpu
        return accelerator.cpu_view(cpu, tensor)

    def _enter(
        self, cpu: Any, place: Place, is_lent: bool = False
    ) -> tuple[Any, Memory]:
        look_at_size(cpu.untyped_storage().nbytes())
        held = None
        if place == "pinned":
            cpu, held = _apart(cpu)
        tensor = accelerator.as_cuda(cpu) if place == "device" else cpu
        storage = tensor.untyped_storage()
        number = self._record.number_of("storage")
        memory = Memory(number, place, storage.nbytes())
        memory.address, memory.bytes = storage.data_ptr(), held
        # a tensor of the host must not keep itself
        memory.cpu = cpu if tensor is not cpu else None
        key, owner = storage._cdata, weakref.ref(self)

        def let_go(_: object) -> None:
            memories = owner()
            if memories is not None:
                memories._let_go(key, is_lent)

        # the storage's Python object lives as long as the storage
        memory.watch = weakref.ref(storage, let_go)
        self._by_storage[key] = memory
        return tensor, memory

    def _let_go(self, key: int, is_lent: bool) -> None:
        memory = self._by_storage.pop(key, None)
        if memory is None or is_lent:
            return
        memory.is_released = True
        if memory.place == "device":
            self.allocated -= _rounded_up(memory.size_bytes)
        self._record.add_anyhow(Release(memory.number))


def _apart(cpu: Any) -> tuple[Any, NDArray[np.uint8]]:
    """Move a new tensor into memory that may outlive it."""
    with _disable_current_modes(), torch.no_grad():
        held = np.empty(cpu.untyped_storage().nbytes(), np.uint8)
        moved = torch.empty(0, dtype=cpu.dtype).set_(
            _from_numpy(held).untyped_storage(),
            cpu.storage_offset(),
            cpu.shape,
            cpu.stride(),
        )
        return moved.copy_(cpu), held


def look_at_size(size_bytes: int) -> None:
    """Refuse an allocation that no case needs, before there is memory for it.

    Raises:
        OutOfMemoryError: as PyTorch says it.
    """
    if size_bytes > _MOST_BYTES:
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {size_bytes / 2**30:.2f} GiB; the "
            f"simulated GPU gives {_MOST_BYTES >> 30} GiB at once."
        )


def _rounded_up(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
