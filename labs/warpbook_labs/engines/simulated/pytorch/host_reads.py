"""Where Python sees numbers without an ATen call, or names memory by its address."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from warpbook_labs.engines.simulated.pytorch import current
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


_tolist, _numpy = torch.Tensor.tolist, torch.Tensor.numpy
_array, _printed = torch.Tensor.__array__, torch._tensor_str._tensor_str
_as_tensor, _from_numpy, _tensor = torch.as_tensor, torch.from_numpy, torch.tensor


def tolist(self: Any) -> Any:
    machine = current.machine_or_none()
    if machine is None:
        return _tolist(self)
    plain = self.detach()
    machine.read(plain, "tolist")
    with _disable_current_modes():
        return _tolist(machine.memories.alias(plain))


def numpy(self: Any, *, force: bool = False) -> Any:
    """Its numbers as NumPy's array, to look at; of host memory only."""
    machine = current.machine_or_none()
    if machine is None or (self.is_cuda or self.requires_grad) and not force:
        return _numpy(self, force=force)
    plain = self.detach()
    machine.read(plain, "numpy")
    with _disable_current_modes():
        array = _numpy(machine.memories.alias(plain)).copy().view(Looked)
    array.flags.writeable = False
    array.tensor = self
    return array


class Looked(np.ndarray[Any, Any]):
    """What a tensor held: writing here would be seen by nobody, nor recorded."""

    #: whose whole array it is
    tensor: Any = None

    def __setitem__(self, index: Any, value: Any) -> None:
        """Say how to write."""
        if not self.flags.writeable:
            _refuse_writing()
        super().__setitem__(index, value)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: Any, *given: Any, **options: Any
    ) -> Any:
        """Compute as with any array, but not into it."""
        if any(isinstance(output, Looked) for output in options.get("out", ())):
            _refuse_writing()
        plain = [
            operand.view(np.ndarray) if isinstance(operand, Looked) else operand
            for operand in given
        ]
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        """Show it as any array."""
        return repr(self.view(np.ndarray))


def _refuse_writing() -> None:
    raise ValueError(
        "assignment destination is read-only: without a GPU `.numpy()` is to look at; "
        "write with `x.copy_(...)` or `x[...] = ...`"
    )


def array(self: Any, *args: Any, **kwargs: Any) -> Any:
    if current.machine_or_none() is None:
        return _array(self, *args, **kwargs)
    held = numpy(self).view(np.ndarray)
    return held.astype(args[0]) if args and args[0] is not None else held


def from_numpy(ndarray: Any) -> Any:
    """The tensor whose array it is; of other arrays their memory, as it is now."""
    if isinstance(ndarray, Looked) and ndarray.tensor is not None:
        return ndarray.tensor
    return _from_numpy(ndarray)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of what may be one, or of memory that the GPU can reach."""
    machine = current.machine_or_none()
    if machine is not None and hasattr(data, INTERFACE):
        seen = seen_by_gpu(machine, data, device)
        return seen if dtype is None else seen.to(dtype)
    if isinstance(data, Looked) and data.tensor is not None:
        data = data.tensor
    return _as_tensor(data, dtype=dtype, device=device)


def tensor(data: Any, **options: Any) -> Any:
    if hasattr(data, INTERFACE) and not isinstance(data, torch.Tensor):
        refuse(f"torch.tensor of {INTERFACE}: torch.as_tensor copies nothing")
    return _tensor(data, **options)


def _shown(self: Any, indent: int) -> Any:
    machine = current.machine_or_none()
    if machine is None:
        return _printed(self, indent)
    plain = self.detach()
    machine.read(plain, "print")
    with _disable_current_modes():
        like = machine.memories.alias(plain)
    with current.unrecorded(), _disable_current_modes():
        return _printed(like, indent)


def install() -> None:
    """Put all of it in the place of PyTorch's own."""
    torch.Tensor.tolist, torch.Tensor.numpy = tolist, numpy
    torch.Tensor.__array__ = array
    torch.as_tensor, torch.from_numpy, torch.tensor = as_tensor, from_numpy, tensor
    # no mode looks while PyTorch prints
    torch._tensor_str._tensor_str = _shown
