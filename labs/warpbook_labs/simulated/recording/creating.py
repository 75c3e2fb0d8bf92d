"""New tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpbook_labs.simulated.program import Place
from warpbook_labs.simulated.recording.devices import CPU, Device, device_of
from warpbook_labs.simulated.recording.dtypes import (
    FLOAT,
    LONG,
    DType,
    dtype_of,
    of_number,
)
from warpbook_labs.simulated.recording.moving import ordered, to
from warpbook_labs.simulated.recording.reading import Looked
from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
)

_MOST_CONSTANTS = 10_000
#: the attribute that says where memory of the GPU is
_INTERFACE = "__cuda_array_interface__"

Where = Device | str | int | None


def sides(given: Sequence[Any]) -> tuple[int, ...]:
    """A shape that is given as numbers or as one sequence."""
    if len(given) == 1 and not isinstance(given[0], (int, np.integer)):
        given = tuple(given[0])
    for side in given:
        if not isinstance(side, (int, np.integer)):
            raise TypeError(
                f"size must be a tuple of ints, but found element of type "
                f"{type(side).__name__}"
            )
    return tuple(int(side) for side in given)


def _place(device: Where, pin_memory: bool) -> Place:
    if device_of(device) == CPU:
        return "pinned" if pin_memory else "pageable"
    if pin_memory:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    return "device"


def _no_gradients(requires_grad: bool) -> None:
    if requires_grad:
        refuse("gradients (requires_grad=True)")


def empty(
    *size: Any,
    dtype: DType | None = None,
    device: Where = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    layout: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Memory that nobody has written."""
    _no_gradients(requires_grad)
    _strided(layout)
    shape = sides(size)
    if out is None:
        return new(shape, dtype or FLOAT, _place(device, pin_memory))
    if dtype not in (None, out.dtype):
        raise RuntimeError(
            f"dtype {dtype.letter_name} does not match dtype of out parameter "
            f"({out.dtype.letter_name})"
        )
    if device is not None and device_of(device) != out.device:
        raise RuntimeError(
            f"device {device} does not match device of out parameter ({out.device})"
        )
    if out.shape != shape:
        # PyTorch would make it fit, with a warning
        refuse("`out` of another shape")
    return out


def _strided(layout: str | None) -> None:
    if layout not in (None, Tensor.layout):
        refuse(f"tensors of layout {layout}")


def _filled(
    number: float, size: Sequence[Any], dtype: DType | None, options: dict[str, Any]
) -> Tensor:
    tensor = empty(*size, dtype=dtype, **options)
    launch("fill", [], [tensor], [float(number)])
    return tensor


def _usual(options: dict[str, Any], dtype: DType) -> DType | None:
    """A type that numbers have unless `out` has another."""
    return dtype if options.get("out") is None else None


def zeros(*size: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    """Zeros."""
    return _filled(0, size, dtype, options)


def ones(*size: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    """Ones."""
    return _filled(1, size, dtype, options)


def full(
    size: Sequence[int],
    fill_value: float,
    *,
    dtype: DType | None = None,
    **options: Any,
) -> Tensor:
    """One number everywhere."""
    dtype = dtype or _usual(options, of_number(fill_value))
    return _filled(fill_value, [size], dtype, options)


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    **options: Any,
) -> Tensor:
    """Numbers in equal steps."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        is_whole = all(isinstance(n, int) for n in (start, end, step))
        dtype = _usual(options, LONG if is_whole else FLOAT)
    tensor = empty(math.ceil((end - start) / step), dtype=dtype, **options)
    launch("arange", [], [tensor], [start, step])
    return tensor


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Where = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers of Python, which the host writes, and copies if they belong elsewhere."""
    _no_gradients(requires_grad)
    if isinstance(data, Tensor):
        refuse("torch.tensor of a tensor", "Use x.clone(), or x.to('cuda'). ")
    if hasattr(data, _INTERFACE):
        refuse(f"torch.tensor of {_INTERFACE}: torch.as_tensor copies nothing")
    if isinstance(data, (bool, int, float)):
        kind = of_number(data)
    else:
        kind = dtype_of(np.asarray(data).dtype)
        if kind.name == "float64" and not isinstance(data, np.ndarray):
            kind = FLOAT
    values = np.asarray(data, kind.numpy if dtype is None else dtype.numpy)
    if values.size > _MOST_CONSTANTS:
        raise RuntimeError(
            f"The simulated GPU takes {_MOST_CONSTANTS:,} numbers of Python at most; "
            "large inputs come in the buffers of the case."
        )
    target = device_of(device)
    written = new(values.shape, dtype or kind, "pinned" if pin_memory else "pageable")
    launch("constant", [], [written], [float(v) for v in values.reshape(-1)])
    return to(written, target)


def as_tensor(data: Any, dtype: DType | None = None, device: Where = None) -> Tensor:
    """A tensor of what may be one, or of memory that the GPU can reach."""
    if hasattr(data, _INTERFACE):
        seen = _mapped(data)
        if device_of(device) == CPU:
            refuse(
                "torch.as_tensor that copies what the GPU sees to the host",
                "Say device='cuda', and nothing is copied. ",
            )
        return to(seen, device_of(device), dtype or seen.dtype)
    if isinstance(data, Looked) and data.tensor is not None:
        data = data.tensor
    if not isinstance(data, Tensor):
        return tensor(data, dtype=dtype, device=device)
    is_anywhere = device is None and current().default_devices[-1] is None
    target = data.device if is_anywhere else device_of(device)
    return to(data, target, dtype or data.dtype)


def _mapped(asker: Any) -> Tensor:
    """Page-locked memory as the GPU sees it, by its address.

    Raises:
        RuntimeError: there is no such memory, or not so much.
    """
    interface = _interface(asker)
    shape = tuple(int(side) for side in interface["shape"])
    dtype = dtype_of(np.dtype(interface["typestr"]))
    address = int(interface["data"][0])
    storage = current().pinned_at(address)
    if storage is None:
        raise RuntimeError(
            "The specified pointer resides on host memory and is not registered with "
            "any CUDA device. The simulated GPU knows page-locked memory by what a "
            "tensor's `data_ptr()` says."
        )
    begin = address - storage.address
    steps = _steps(interface.get("strides"), len(shape), dtype)
    try:
        memory = np.ndarray(shape, dtype.numpy, storage.data, begin, steps)
    except (TypeError, ValueError):
        memory = None
    if memory is None or begin % dtype.itemsize:
        raise RuntimeError("__cuda_array_interface__ reaches beyond its memory.")
    return Tensor(storage.as_mapped(asker), memory)


def _interface(asker: Any) -> dict[str, Any]:
    """What names an address, if PyTorch takes it."""
    interface = getattr(asker, _INTERFACE)
    if not isinstance(interface, dict):
        raise TypeError(f"`{_INTERFACE}` must be a dict")
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


def _steps(strides: Any, count: int, dtype: DType) -> list[int] | None:
    """Strides in bytes, if they are given."""
    if strides is None:
        return None
    steps = [int(step) for step in strides]
    if len(steps) != count:
        raise TypeError("strides must be a sequence of the same length as shape")
    if any(step % dtype.itemsize for step in steps):
        raise ValueError(
            "given array strides not a multiple of the element byte size. Make a copy "
            "of the array to reallocate the memory."
        )
    if any(step < 0 for step in steps):
        refuse(f"strides in {_INTERFACE} that go back")
    return steps


def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Where = None,
    pin_memory: bool = False,
    memory_format: object = None,
    layout: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Memory for as much, that nobody has written."""
    _strided(layout)
    _no_gradients(requires_grad)
    where = input.device if device is None else device
    place = _place(where, pin_memory)
    return ordered(input, dtype or input.dtype, place, memory_format)


def _like(number: float, input: Tensor, options: dict[str, Any]) -> Tensor:
    result = empty_like(input, **options)
    launch("fill", [], [result], [float(number)])
    return result


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros, as many."""
    return _like(0, input, options)


def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones, as many."""
    return _like(1, input, options)


def full_like(input: Tensor, fill_value: float, **options: Any) -> Tensor:
    """One number, as often."""
    return _like(fill_value, input, options)


def _with_defaults(self: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    return {"dtype": self.dtype, "device": self.device, **options}


def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Memory of the same kind, that nobody has written."""
    return empty(*size, **_with_defaults(self, options))


def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of the same kind."""
    return zeros(*size, **_with_defaults(self, options))


def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of the same kind."""
    return ones(*size, **_with_defaults(self, options))


def new_full(
    self: Tensor, size: Sequence[int], fill_value: float, **options: Any
) -> Tensor:
    """One number everywhere, of the same kind."""
    return full(size, fill_value, **_with_defaults(self, options))


def new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """Numbers of Python, of the same kind."""
    return tensor(data, **_with_defaults(self, options))


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: DType | None = None,
    **options: Any,
) -> Tensor:
    """So many numbers in equal steps, both ends among them."""
    if dtype is not None and not dtype.is_floating_point:
        refuse("linspace of whole numbers: use torch.arange")
    result = empty(steps, dtype=dtype, **options)
    launch("arange", [], [result], [start, (end - start) / max(steps - 1, 1)])
    return result


def _drawn(tensor: Tensor, is_normal: bool) -> Tensor:
    seed = current().number_of("random")
    launch("random", [], [tensor], [seed, is_normal])
    return tensor


def rand(*size: Any, **options: Any) -> Tensor:
    """Chance numbers from 0 to 1."""
    return _drawn(empty(*size, **options), False)


def randn(*size: Any, **options: Any) -> Tensor:
    """Chance numbers around 0."""
    return _drawn(empty(*size, **options), True)


def rand_like(input: Tensor, **options: Any) -> Tensor:
    """Chance numbers from 0 to 1, as many."""
    return _drawn(empty_like(input, **options), False)


def randn_like(input: Tensor, **options: Any) -> Tensor:
    """Chance numbers around 0, as many."""
    return _drawn(empty_like(input, **options), True)


def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """Ones on the diagonal."""
    result = zeros(n, n if m is None else m, **options)
    side = min(result.shape)
    diagonal = of_array(result, np.einsum("ii->i", result.array[:side, :side]))
    launch("fill", [], [diagonal], [1])
    return result
