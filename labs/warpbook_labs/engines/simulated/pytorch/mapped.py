"""Page-locked memory as the GPU sees it, by an address that an object names."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from warpbook_labs.engines.simulated.pytorch.accelerator import CPU
from warpbook_labs.engines.simulated.pytorch.current import refuse

INTERFACE = "__cuda_array_interface__"


def seen_by_gpu(machine: Any, asker: Any, device: Any) -> Any:
    """Give a tensor of the GPU whose numbers stay in the host's page-locked memory.

    Raises:
        RuntimeError: there is no such memory, or not so much.
    """
    if torch.device(torch.get_default_device() if device is None else device) == CPU:
        refuse(
            "torch.as_tensor that copies what the GPU sees to the host",
            "Say device='cuda', and nothing is copied.",
        )
    interface = _interface(asker)
    shape = tuple(int(side) for side in interface["shape"])
    kind = np.dtype(interface["typestr"])
    address = int(interface["data"][0])
    memory = machine.memories.pinned_at(address)
    if memory is None:
        raise RuntimeError(
            "The specified pointer resides on host memory and is not registered with "
            "any CUDA device. The simulated GPU knows page-locked memory by what a "
            "tensor's `data_ptr()` says."
        )
    begin = address - memory.address
    steps = _steps(interface.get("strides"), shape, kind.itemsize)
    last = sum((side - 1) * step for side, step in zip(shape, steps, strict=True))
    end = begin + (last + 1) * kind.itemsize if 0 not in shape else begin
    if min(shape, default=0) < 0 or end > memory.size_bytes or begin % kind.itemsize:
        raise RuntimeError(f"{INTERFACE} reaches beyond its memory.")
    with _disable_current_modes():
        dtype = torch.from_numpy(np.empty(0, kind)).dtype
        cpu = memory.as_tensor(dtype, begin // kind.itemsize, shape, steps)
    return machine.memories.show(memory, asker, cpu)


def _interface(asker: Any) -> dict[str, Any]:
    """Give what names an address, if PyTorch takes it."""
    interface = getattr(asker, INTERFACE)
    if not isinstance(interface, dict):
        raise TypeError(f"`{INTERFACE}` must be a dict")
    for name in ("shape", "typestr", "data"):
        if interface.get(name) is None:
            raise TypeError(f"attribute `{name}` must exist")
    if not isinstance(interface["typestr"], str):
        raise TypeError("`typestr` must be a string")
    data = interface["data"]
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError("`data` must be a 2-tuple of (int, bool)")
    if data[1]:
        raise TypeError("the read only flag is not supported, should always be False")
    return interface


def _steps(strides: Any, shape: tuple[int, ...], item_bytes: int) -> list[int]:
    if strides is None:
        steps, step = [], 1
        for side in reversed(shape):
            steps.append(step)
            step *= side
        return steps[::-1]
    if len(strides) != len(shape):
        raise TypeError("strides must be a sequence of the same length as shape")
    if any(step % item_bytes for step in strides):
        raise ValueError(
            "given array strides not a multiple of the element byte size. Make a copy "
            "of the array to reallocate the memory."
        )
    if any(step < 0 for step in strides):
        refuse(f"strides in {INTERFACE} that go back")
    return [step // item_bytes for step in strides]
