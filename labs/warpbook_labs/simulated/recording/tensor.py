"""A tensor: elements of memory, as NumPy's array of the same memory has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from warpbook_labs.simulated.pointwise import FUNCTIONS as POINTWISE
from warpbook_labs.simulated.program import HOST, Place, View
from warpbook_labs.simulated.recording.devices import CPU, CUDA, Device
from warpbook_labs.simulated.recording.dtypes import DType, dtype_of
from warpbook_labs.simulated.recording.recorder import Storage, current
from warpbook_labs.simulated.recording.refusing import refuse

#: candidates that are tried to find an element that two have in common
_MOST_WORK = 100_000


class Size(tuple[int, ...]):
    """What a shape is."""

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        return f"torch.Size({list(self)})"


class Tensor:
    """`torch.Tensor`; its methods are in `methods.py`."""

    __slots__ = ("__weakref__", "array", "memory")

    #: nothing is differentiated
    requires_grad = False
    is_leaf = True
    grad = None
    layout = "torch.strided"

    def __init__(self, memory: Storage, array: NDArray[Any]) -> None:
        """Take elements of memory."""
        self.memory = memory
        self.array = array

    def __new__(cls, *given: Any, **options: Any) -> Tensor:
        """Refuse what a learner would make so."""
        if options or not given or not isinstance(given[0], Storage):
            refuse("torch.Tensor(...)")
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        """Say what the simulated GPU has not."""
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"torch.Tensor.{name}")

    __hash__ = object.__hash__
    #: so that NumPy's numbers leave an operation with a tensor to the tensor
    __array_ufunc__ = None

    @property
    def shape(self) -> Size:
        """The length of each side."""
        return Size(self.array.shape)

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return dtype_of(self.array.dtype)

    @property
    def device(self) -> Device:
        """Where it is."""
        return CUDA if self.is_cuda else CPU

    @property
    def is_cuda(self) -> bool:
        """Whether it is on the GPU."""
        return self.memory.place == "device"

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.array.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.array.itemsize

    @property
    def data(self) -> Tensor:
        """The same, since nothing is differentiated."""
        return self

    def __len__(self) -> int:
        """Give the length of the first side."""
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self.array)


def view_of(tensor: Tensor) -> View:
    """Which elements of which memory it is."""
    array = tensor.array
    address = int(array.__array_interface__["data"][0])
    strides = (
        stride // array.itemsize if side != 1 else stride // array.itemsize or 1
        for side, stride in zip(array.shape, array.strides, strict=True)
    )
    storage = tensor.memory
    offset = (address - storage.address) // array.itemsize if array.size else 0
    return View(
        storage.number,
        tensor.dtype.name,
        array.shape,
        tuple(strides),
        offset,
        storage.shown is not None,
    )


def of_array(tensor: Tensor, array: NDArray[Any]) -> Tensor:
    """Other elements of the same memory."""
    return Tensor(tensor.memory, array)


def new(
    shape: Sequence[int],
    dtype: DType,
    place: Place,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """A tensor of new memory; the strides are in elements."""
    shape = tuple(int(side) for side in shape)
    if any(side < 0 for side in shape):
        raise RuntimeError(
            "Trying to create tensor with negative dimension "
            f"{min(shape)}: {list(shape)}"
        )
    storage = current().allocate(math.prod(shape) * dtype.itemsize, place)
    flat = storage.data.view(dtype.numpy)
    if strides is None or not flat.size:
        return Tensor(storage, flat.reshape(shape))
    in_bytes = [stride * dtype.itemsize for stride in strides]
    return Tensor(storage, np.ndarray(shape, dtype.numpy, flat, 0, in_bytes))


def place_of(device: Device) -> Place:
    """The memory that a device has unless another is asked for."""
    return "device" if device == CUDA else "pageable"


def dense_strides(array: NDArray[Any]) -> list[int] | None:
    """Its strides if it is whole in another order, else None: those of rows."""
    if array.flags.c_contiguous or array.size < 2 or 0 in array.strides:
        return None
    like = np.empty_like(array, order="K", subok=False)
    sides = range(array.ndim)
    if any(like.strides[at] != array.strides[at] for at in sides if like.shape[at] > 1):
        return None
    return [stride // like.itemsize for stride in like.strides]


def new_like(tensor: Tensor, dtype: DType, place: Place) -> Tensor:
    """New memory for as many elements, in the same order if they are dense."""
    return new(tensor.shape, dtype, place, dense_strides(tensor.array))


def stretched(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """It, broadcast to a shape that it fits."""
    missing = len(shape) - array.ndim
    strides = [0] * missing
    for side, wanted, stride in zip(
        array.shape, shape[missing:], array.strides, strict=True
    ):
        strides.append(stride if side == wanted else 0)
    return as_strided(array, shape, strides)


def one_device(tensors: Iterable[Tensor]) -> Device:
    """Where they all are; numbers of the host as tensors may come along.

    Raises:
        RuntimeError: they are not on one device.
    """
    given = list(tensors)
    deciding = [t for t in given if t.ndim or t.is_cuda] or given
    device = deciding[0].device
    for tensor in deciding:
        if tensor.device != device:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two "
                f"devices, {device} and {tensor.device}!"
            )
    return device


def launch(
    operation: str,
    reads: Sequence[Tensor],
    writes: Sequence[Tensor],
    numbers: Sequence[float] = (),
) -> None:
    """Work of the GPU on the current stream, or of the processor."""
    recorder = current()
    for tensor in (*reads, *writes):
        if tensor.memory.recorder is not recorder:
            raise RuntimeError("A tensor is of another case: it was kept somewhere.")
        if tensor.memory.is_gone:
            raise RuntimeError(
                "The page-locked tensor that the GPU sees here is gone, and its memory "
                "may be another's: have what names its address keep the tensor."
            )
    is_element_by_element = operation == "copy" or operation in POINTWISE
    for write in writes:
        _refuse_shared_elements(write)
        for place, read in enumerate(reads):
            if is_element_by_element:
                refuse_overlap(write, read)
            # each element of what is added is read once, where it is written
            elif not (operation == "addmm" and place == 0 and is_same(write, read)):
                refuse_read_again(operation, write, read)
    recorder.launch(
        operation,
        recorder.stream if writes[0].is_cuda else HOST,
        [(view_of(tensor), tensor.array) for tensor in reads],
        [(view_of(tensor), tensor.array) for tensor in writes],
        tuple(numbers),
    )


def _refuse_shared_elements(write: Tensor) -> None:
    sides = zip(write.array.shape, write.array.strides, strict=True)
    if any(side > 1 and stride == 0 for side, stride in sides):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )


def is_same(left: Tensor, right: Tensor) -> bool:
    """Whether both are the same elements in the same order."""

    def place(tensor: Tensor) -> tuple[Any, ...]:
        array = tensor.array
        pairs = zip(array.shape, array.strides, strict=True)
        steps = [step for side, step in pairs if side > 1]
        return array.__array_interface__["data"][0], array.shape, steps

    return left.memory.number == right.memory.number and place(left) == place(right)


def _overlap(write: Tensor, read: Tensor) -> bool:
    # by number: memory of the host may be seen by the GPU, too
    if write.memory.number != read.memory.number:
        return False
    if not np.may_share_memory(write.array, read.array):
        return False
    try:
        limit: Any = _MOST_WORK  # NumPy's stubs know none but 0 and -1
        return np.shares_memory(write.array, read.array, max_work=limit)
    except np.exceptions.TooHardError:
        return True


def refuse_overlap(write: Tensor, read: Tensor, may_be_same: bool = True) -> None:
    """Refuse to write elements that are read, but for each to itself.

    Raises:
        RuntimeError: they are, in PyTorch's words.
    """
    if may_be_same and is_same(write, read):
        return
    if _overlap(write, read):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the "
            "written-to tensor refer to a single memory location. Please clone() the "
            "tensor before performing the operation."
        )


def refuse_read_again(name: str, write: Tensor, *reads: Tensor) -> None:
    """Refuse to write what is read more than once: PyTorch computes something else.

    Raises:
        RuntimeError: so it would be.
    """
    if any(_overlap(write, read) for read in reads):
        raise RuntimeError(
            f"`{name}` writes `out` while it still reads it: give it other memory."
        )
