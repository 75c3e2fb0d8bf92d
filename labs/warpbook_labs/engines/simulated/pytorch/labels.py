"""CPU memory as tensors that say `cuda:0`, and back."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
#: DLPack's number of CUDA, and where a capsule names kind and number of the device
_DLPACK_CUDA, _DEVICE_AT = 2, 8
_PROCESSORS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_as_strided = torch.ops.aten.as_strided.default
_set = torch.ops.aten.set_.source_Storage_storage_offset

_address = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype = ctypes.c_void_p
_address.argtypes = [ctypes.py_object, ctypes.c_char_p]


def as_cuda(cpu: Any) -> Any:
    """Give the same memory as a tensor of the GPU, of which the CPU's keeps hold.

    It is handed over by DLPack, and one field of the capsule is changed on the way, so
    that tensor, storage and dispatch keys say CUDA.
    """
    capsule = torch._C._to_dlpack(cpu)
    device = (ctypes.c_int32 * 2).from_address(
        _address(capsule, b"dltensor") + _DEVICE_AT
    )
    device[:] = [_DLPACK_CUDA, 0]
    made = torch._C._from_dlpack(capsule)
    # DLPack says 1 of sides that have one element
    return made if made.stride() == cpu.stride() else cuda_view(made, cpu)


def cuda_view(of: Any, like: Any) -> Any:
    """Give the view of a GPU's tensor that another is of the same memory.

    The CPU's kernel only looks at the storage, which both then share.
    """
    where = like.stride(), like.storage_offset()
    return _as_strided.redispatch(_PROCESSORS, of, like.shape, *where)


def cpu_view(of: Any, like: Any) -> Any:
    """Give the view of a CPU's tensor that one of the GPU is of the same."""
    where = like.storage_offset(), like.shape, like.stride()
    return torch.empty(0, dtype=like.dtype).set_(of.untyped_storage(), *where)


def give_memory(tensor: Any, storage: Any, like: Any) -> None:
    """Let a tensor of the GPU have other memory, or another shape."""
    where = like.storage_offset(), like.shape, like.stride()
    _set.redispatch(_PROCESSORS, tensor, storage, *where)
