"""How a tensor is printed: as PyTorch prints it, with its usual settings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.recording.dtypes import BOOL, FLOAT, LONG
from warpbook_labs.simulated.recording.reading import look
from warpbook_labs.simulated.recording.tensor import Tensor

#: more are shown by the first and last of each side
_MOST_SHOWN, _OF_EACH_END = 1000, 3
_DIGITS, _LINE = 4, 80
_BEGIN = "tensor("


class _Numbers:
    """One form for all numbers of a tensor."""

    def __init__(self, shown: NDArray[Any]) -> None:
        self._is_float = shown.dtype.kind == "f"
        self._form = f".{_DIGITS}f"
        self._is_whole = True
        self.width = 1
        if not self._is_float:
            texts = (len(str(number)) for number in shown.reshape(-1).tolist())
            self.width = max(texts, default=1)
            return
        wide = shown.astype(np.float64).reshape(-1)
        finite = wide[np.isfinite(wide) & (wide != 0)]
        if not finite.size:
            return
        self._is_whole = bool((finite == np.ceil(finite)).all())
        least, most = np.abs(finite).min(), np.abs(finite).max()
        if most / least > 1000 or most > 1e8 or (not self._is_whole and least < 1e-4):
            self._form, self._is_whole = f".{_DIGITS}e", False
        self.width = max(len(self._text(number)) for number in finite.tolist())

    def _text(self, number: Any) -> str:
        if not self._is_float:
            return str(number)
        if not self._is_whole:
            return format(number, self._form)
        return f"{number:.0f}" + ("." if math.isfinite(number) else "")

    def text(self, number: Any) -> str:
        """One number, as wide as the others."""
        return self._text(number).rjust(self.width)


def _ends(array: NDArray[Any]) -> NDArray[Any]:
    """What is shown of a large one."""
    for axis, side in enumerate(array.shape):
        if side > 2 * _OF_EACH_END:
            both = [*range(_OF_EACH_END), *range(side - _OF_EACH_END, side)]
            array = np.take(array, both, axis)
    return array


def _row(array: NDArray[Any], numbers: _Numbers, indent: int, is_short: bool) -> str:
    texts = [numbers.text(number) for number in array.tolist()]
    if is_short and len(texts) > 2 * _OF_EACH_END:
        texts[_OF_EACH_END:-_OF_EACH_END] = [" ..."]
    in_line = max(1, (_LINE - indent) // (numbers.width + 2))
    lines = [texts[at : at + in_line] for at in range(0, len(texts), in_line)]
    apart = ",\n" + " " * (indent + 1)
    return "[" + apart.join(", ".join(line) for line in lines) + "]"


def _elements(
    array: NDArray[Any], numbers: _Numbers, indent: int, is_short: bool
) -> str:
    if not array.ndim:
        return numbers.text(array.item())
    if array.ndim == 1:
        return _row(array, numbers, indent, is_short)
    cut = is_short and len(array) > 2 * _OF_EACH_END
    shown = [*range(len(array))]
    if cut:
        shown[_OF_EACH_END:-_OF_EACH_END] = []
    parts = [_elements(array[at], numbers, indent + 1, is_short) for at in shown]
    if cut:
        parts.insert(_OF_EACH_END, "...")
    apart = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + apart.join(parts) + "]"


def as_text(self: Tensor) -> str:
    """`print(x)`, which waits, too."""
    array = look(self, "print")
    notes = [f"device='{self.device}'"] if self.is_cuda else []
    if array.size:
        is_short = array.size > _MOST_SHOWN
        numbers = _Numbers(_ends(array) if is_short else array)
        text = _BEGIN + _elements(array, numbers, len(_BEGIN), is_short)
    else:
        text = _BEGIN + "[]"
        notes += [f"size={tuple(self.shape)}"] if self.ndim != 1 else []
    usual = (FLOAT, LONG, BOOL) if array.size else (FLOAT,)
    notes += [f"dtype={self.dtype}"] if self.dtype not in usual else []
    length = len(text) - text.rfind("\n") + 1
    for note in notes:
        if length + len(note) + 2 > _LINE:
            text += ",\n" + " " * len(_BEGIN) + note
            length = len(_BEGIN) + len(note)
        else:
            text += ", " + note
            length += len(note) + 2
    return text + ")"


def in_format(self: Tensor, spec: str) -> str:
    """`f"{x:.3f}"`: a tensor of no dimensions is its number."""
    if not self.ndim:
        return format(look(self, "print").item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to Tensor.__format__")
    return as_text(self)
