"""The types of numbers that the simulated machine has, and how memory shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

#: those that NumPy has not, by the whole numbers that have the same bytes
_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_OF_NUMPY = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64"),
)
#: NumPy's, by PyTorch's name
DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in _OF_NUMPY},
    **{name: np.dtype(carrier) for name, carrier in _CARRIERS.items()},
}


def item_bytes(dtype: str) -> int:
    """Say how many bytes an element has.

    Raises:
        KeyError: there is no such type.
    """
    return DTYPES[dtype].itemsize
