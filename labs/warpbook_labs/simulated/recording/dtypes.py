"""Types of elements, and in which type two operands meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from warpbook_labs.simulated.pointwise import promoted


class DType:
    """What `torch.float32` and its like are."""

    def __init__(self, name: str, letter_name: str) -> None:
        """Name a type of NumPy."""
        self.name = name
        #: what PyTorch's messages call it
        self.letter_name = letter_name
        self.numpy = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.numpy.kind == "f"
        self.is_complex = False
        self.is_signed = self.numpy.kind in "if"

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Stay the same object when copied."""
        return dtype_of, (self.name,)


ALL = {
    name: DType(name, spoken)
    for name, spoken in {
        "float16": "Half",
        "float32": "Float",
        "float64": "Double",
        "uint8": "Byte",
        "int8": "Char",
        "int16": "Short",
        "int32": "Int",
        "int64": "Long",
        "bool": "Bool",
    }.items()
}
_OF_NUMPY: dict[object, DType] = {dtype.numpy: dtype for dtype in ALL.values()}
#: PyTorch's other names
ALIASES = {
    "half": ALL["float16"],
    "float": ALL["float32"],
    "double": ALL["float64"],
    "short": ALL["int16"],
    "int": ALL["int32"],
    "long": ALL["int64"],
}
FLOAT = ALL["float32"]
LONG = ALL["int64"]
BOOL = ALL["bool"]


class finfo:
    """`torch.finfo`: what numbers a float type has."""

    def __init__(self, type: DType = FLOAT) -> None:
        """Look them up."""
        if not type.is_floating_point:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo "
                f"to handle '{type}'"
            )
        found = np.finfo(type.numpy)
        self.bits, self.dtype = found.bits, type.name
        self.eps, self.resolution = float(found.eps), float(found.resolution)
        self.max, self.min = float(found.max), float(found.min)
        self.tiny = self.smallest_normal = float(found.tiny)


class iinfo:
    """`torch.iinfo`: what numbers a type of whole numbers has."""

    def __init__(self, type: DType) -> None:
        """Look them up."""
        if type.numpy.kind not in "ui":
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to "
                f"handle '{type}'"
            )
        found = np.iinfo(type.numpy)
        self.bits, self.dtype = found.bits, type.name
        self.max, self.min = int(found.max), int(found.min)


def dtype_of(kind: object) -> DType:
    """The type of NumPy's name or type."""
    found = _OF_NUMPY.get(kind)
    if found is None:
        name = np.dtype(kind).name  # type: ignore[call-overload]
        if name not in ALL:
            raise TypeError(f"can't convert np.ndarray of type numpy.{name}.")
        found = ALL[name]
    return found


def of_number(number: complex) -> DType:
    """The type that a number of Python has as a tensor."""
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        return LONG
    if isinstance(number, float):
        return FLOAT
    raise TypeError(f"The simulated GPU computes with no {type(number).__name__}.")


def _together(types: Iterable[DType]) -> DType | None:
    result: DType | None = None
    for one in types:
        if result is None:
            result = one
        elif result is not one:
            result = dtype_of(promoted(result.numpy, one.numpy))
    return result


def _category(dtype: DType) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2}[dtype.numpy.kind]


def result_type(
    dimensioned: Iterable[DType], single: Iterable[DType], numbers: Iterable[DType]
) -> DType:
    """The type of a result: tensors with dimensions decide before those without.

    A number of Python, or a tensor of no dimensions, matters only where it is of a
    higher kind: a float among whole numbers.
    """
    result: DType | None = None
    for group in (dimensioned, single, numbers):
        other = _together(group)
        if other is None:
            continue
        if result is None:
            result = other
        elif _category(other) > _category(result):
            result = dtype_of(promoted(result.numpy, other.numpy))
    assert result is not None
    return result
