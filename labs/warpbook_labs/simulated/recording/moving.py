"""Copies, between host and GPU and within each, split as PyTorch splits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpbook_labs.simulated.program import Place
from warpbook_labs.simulated.recording import layout
from warpbook_labs.simulated.recording.devices import CPU, CUDA, Device, device_of
from warpbook_labs.simulated.recording.dtypes import ALL, DType
from warpbook_labs.simulated.recording.elementwise import (
    broadcast,
    expanded,
    fill_,
    masked_fill_,
)
from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.streams import Stream
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    dense_strides,
    is_same,
    launch,
    new,
    new_like,
    of_array,
    place_of,
    view_of,
)


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Write what another tensor holds into this one."""
    if isinstance(other, (bool, int, float)):
        return fill_(self, other)
    if not isinstance(other, Tensor):
        raise TypeError(
            "copy_(): argument 'other' (position 1) must be Tensor, not "
            f"{type(other).__name__}"
        )
    if self.dtype is other.dtype and is_same(self, other):
        return self
    shape = self.array.shape
    if broadcast([shape, other.array.shape]) != shape:
        raise RuntimeError(
            f"The expanded size of the tensor ({list(shape)}) must match the existing "
            f"size ({list(other.shape)})"
        )
    source = expanded(other, shape)
    if self.device == source.device:
        launch("copy", [source], [self])
    else:
        _between(self, source, bool(non_blocking))
    return self


def foreach_copy_(
    self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
) -> Sequence[Tensor]:
    """`copy_` of each: on the GPU by one kernel, if their types are the same."""
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if len(self) != len(src):
        raise RuntimeError(
            "Tensor lists must have the same number of tensors, got "
            f"{len(self)} and {len(src)}"
        )
    pairs = list(zip(self, src, strict=True))
    kinds = {(target.dtype, source.dtype) for target, source in pairs}
    is_alike = all(
        target.is_cuda and source.is_cuda and target.shape == source.shape
        for target, source in pairs
    )
    if is_alike and len(kinds) == 1:
        launch("copy", src, self)
    else:
        for target, source in pairs:
            copy_(target, source, non_blocking)
    return self


def _between(target: Tensor, source: Tensor, non_blocking: bool) -> None:
    """Between host and GPU, by way of memory that is contiguous and of one type."""
    is_same_type = source.dtype is target.dtype
    order = _common_order(source, target)
    if is_same_type and order is not None:
        target = of_array(target, target.array.transpose(order))
        source = of_array(source, source.array.transpose(order))
        _transfer(target, source, non_blocking)
        return
    # types are converted on the GPU if the host is not to wait, else on the host
    converting = CUDA if non_blocking else CPU
    if is_same_type or source.device == converting:
        whole_source = contiguous(to(source, source.device, target.dtype))
        near = _whole(target, target.dtype)
    else:
        whole_source = contiguous(source)
        near = _whole(target, source.dtype)
    _transfer(near, whole_source, non_blocking)
    if near is not target:
        launch("copy", [near], [target])


def _common_order(left: Tensor, right: Tensor) -> list[int] | None:
    """In which order of their sides both are contiguous, or None."""
    rows = list(range(left.ndim))
    by_step = sorted(rows, key=lambda side: -left.array.strides[side])
    for order in (rows, by_step):
        both = (tensor.array.transpose(order) for tensor in (left, right))
        if all(array.flags.c_contiguous for array in both):
            return order
    return None


def _whole(target: Tensor, dtype: DType) -> Tensor:
    """The target itself if bytes can be copied into it, else memory beside it."""
    if target.dtype is dtype and target.array.flags.c_contiguous:
        return target
    return new(target.shape, dtype, place_of(target.device))


def _transfer(target: Tensor, source: Tensor, non_blocking: bool) -> None:
    recorder = current()
    for tensor in (source, target):
        if tensor.memory.recorder is not recorder:
            raise RuntimeError("A tensor is of another case: it was kept somewhere.")
        if tensor.memory.shown is not None:
            refuse(
                "copies between the host and memory of its own that the GPU sees",
                "Copy the tensor of the host that it was made of. ",
            )
    recorder.copy(
        (view_of(source), source.array),
        (view_of(target), target.array),
        non_blocking,
        "pageable" in (source.memory.place, target.memory.place),
    )


def to(
    self: Tensor,
    device: Device,
    dtype: DType | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: object = None,
) -> Tensor:
    """It on a device, in a type; itself if it is so already."""
    dtype = dtype or self.dtype
    is_ordered = layout.is_ordered(self, memory_format)
    if self.device == device and self.dtype is dtype and is_ordered and not copy:
        return self
    place = place_of(device)
    if non_blocking and self.is_cuda and place == "pageable":
        # PyTorch gives page-locked memory then, so that nobody need wait
        place = "pinned"
    result = ordered(self, dtype, place, memory_format)
    return copy_(result, self, non_blocking)


def ordered(like: Tensor, dtype: DType, place: Place, memory_format: object) -> Tensor:
    """New memory in an order that is asked for, or in the tensor's own."""
    if memory_format in (None, layout.PRESERVE):
        return new_like(like, dtype, place)
    return new(like.shape, dtype, place, layout.strides(like.shape, memory_format))


def tensor_to(self: Tensor, *wanted: Any, **options: Any) -> Tensor:
    """`x.to(...)`: a device, a type, both, or another tensor to be like."""
    device, dtype = self.device, self.dtype
    flags = ["non_blocking", "copy"]
    for what in wanted:
        if isinstance(what, Tensor):
            device, dtype = what.device, what.dtype
        elif isinstance(what, DType):
            dtype = what
        elif isinstance(what, bool):
            options[flags.pop(0)] = what
        elif what is not None:
            device = device_of(what)
    if options.get("device") is not None:
        device = device_of(options["device"])
    dtype = options.get("dtype") or dtype
    rest = {k: v for k, v in options.items() if k not in ("device", "dtype")}
    return to(self, device, dtype, **rest)


def cpu(self: Tensor, memory_format: object = None) -> Tensor:
    """It in memory of the host."""
    return to(self, CPU, memory_format=memory_format)


def cuda(
    self: Tensor, device: Device | str | int | None = None, non_blocking: bool = False
) -> Tensor:
    """It in memory of the GPU."""
    device_of("cuda" if device is None else device)
    return to(self, CUDA, None, non_blocking)


def pin_memory(self: Tensor, device: Device | str | int | None = None) -> Tensor:
    """A copy in page-locked memory."""
    if device is not None and device_of(device) == CPU:
        raise RuntimeError("CPU device type not an accelerator.")
    if self.is_cuda:
        raise RuntimeError(
            f"cannot pin 'torch.cuda.{self.dtype.letter_name}Tensor' only dense CPU "
            "tensors can be pinned"
        )
    if self.memory.place == "pinned":
        return self
    result = new(self.shape, self.dtype, "pinned", dense_strides(self.array))
    return copy_(result, self)


def is_pinned(self: Tensor, device: object = None) -> bool:
    """Whether it is in page-locked memory."""
    del device
    return self.memory.place == "pinned"


def contiguous(self: Tensor, memory_format: object = None) -> Tensor:
    """Its elements in the order of rows; itself if they are."""
    order = layout.CONTIGUOUS if memory_format is None else memory_format
    if layout.is_ordered(self, order):
        return self
    return copy_(ordered(self, self.dtype, place_of(self.device), order), self)


def clone(self: Tensor, *, memory_format: object = None) -> Tensor:
    """A copy in memory of its own."""
    place = place_of(self.device)
    return copy_(ordered(self, self.dtype, place, memory_format), self)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where the mask holds."""
    return masked_fill_(clone(input), mask, value)


def record_stream(self: Tensor, stream: Stream) -> None:
    """Tell the allocator that a stream uses it."""
    if not self.is_cuda:
        raise RuntimeError("record_stream is not supported by tensors of the host")
    current().use_on(self.memory, stream.stream_id)


def converter(name: str) -> Any:
    """The method that makes it a type, such as `x.half()`."""

    def convert(self: Tensor, *, memory_format: object = None) -> Tensor:
        return to(self, self.device, ALL[name], memory_format=memory_format)

    return convert


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """It in another's type, where that is."""
    return to(self, other.device, other.dtype)
