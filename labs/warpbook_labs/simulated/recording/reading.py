"""Where Python looks at numbers, and so waits for those of the GPU."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import Tensor, of_array, view_of


def look(tensor: Tensor, what: str) -> NDArray[Any]:
    """Its numbers, which Python wants to see."""
    recorder = current()
    if tensor.memory.recorder is not recorder:
        raise RuntimeError("A tensor is of another case: it was kept somewhere.")
    recorder.read(view_of(tensor), what, is_on_device=tensor.is_cuda)
    return tensor.array


def item(self: Tensor) -> Any:
    """Its only number."""
    return _only(self, "item")


def _only(tensor: Tensor, what: str) -> Any:
    if tensor.array.size != 1:
        raise RuntimeError(
            f"a Tensor with {tensor.array.size} elements cannot be converted to Scalar"
        )
    return look(tensor, what).item()


def tolist(self: Tensor) -> Any:
    """Its numbers as lists."""
    return look(self, "tolist").tolist()


def numpy(self: Tensor, *, force: bool = False) -> NDArray[Any]:
    """Its numbers as NumPy's array, to look at; of host memory only."""
    if self.is_cuda and not force:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to "
            "copy the tensor to host memory first."
        )
    array: Looked = look(self, "numpy").copy().view(Looked)
    array.flags.writeable = False
    array.tensor = self
    return array


class Looked(np.ndarray[Any, Any]):
    """What a tensor held: writing here would be seen by nobody, nor recorded."""

    #: whose whole array it is
    tensor: Tensor | None = None

    def __setitem__(self, index: Any, value: Any) -> None:
        """Say how to write."""
        if not self.flags.writeable:
            _refuse_writing()
        super().__setitem__(index, value)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: Any, *given: Any, **options: Any
    ) -> Any:
        """Compute as with any array, but not into it."""
        if any(isinstance(each, Looked) for each in options.get("out", ())):
            _refuse_writing()
        plain = [
            each.view(np.ndarray) if isinstance(each, Looked) else each
            for each in given
        ]
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        """Show it as any array."""
        return repr(self.view(np.ndarray))


def _refuse_writing() -> NoReturn:
    raise ValueError(
        "assignment destination is read-only: without a GPU `.numpy()` is to look at; "
        "write with `x.copy_(...)` or `x[...] = ...`"
    )


def from_numpy(ndarray: Any) -> Tensor:
    """The tensor whose memory an array of `x.numpy()` has."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not isinstance(ndarray, Looked) or ndarray.tensor is None:
        refuse(
            "torch.from_numpy, which shares memory, but of a whole `x.numpy()`",
            "Use `torch.tensor`, which copies. ",
        )
    return of_array(ndarray.tensor, ndarray.tensor.array)


def as_bool(self: Tensor) -> bool:
    """`if x:`."""
    if self.array.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if self.array.size > 1:
        raise RuntimeError(
            "Boolean value of Tensor with more than one value is ambiguous"
        )
    return bool(_only(self, "bool"))


def as_float(self: Tensor) -> float:
    """`float(x)`."""
    return float(_only(self, "float"))


def as_int(self: Tensor) -> int:
    """`int(x)`."""
    return int(_only(self, "int"))


def as_index(self: Tensor) -> int:
    """Where a number of Python is needed, such as in `range(x)`."""
    if self.dtype.is_floating_point:
        raise TypeError(
            "only integer tensors of a single element can be converted to an index"
        )
    return int(_only(self, "index"))


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """What NumPy's functions take."""
    del copy
    array = numpy(self)
    return array if dtype is None else array.astype(dtype)
