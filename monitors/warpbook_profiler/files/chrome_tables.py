"""Columns that grow piece by piece, and the numbers of what stands in them."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import NONE, Int32s

#: above all numbers of threads
_WORDS = 1 << 62
#: no program has more; they would take memory
_MOST_THREADS = 1_000_000
#: what a number that is looked up counts as, in letters
_NUMBER_SIZE = 100


class Places(dict[Any, int]):
    """Numbers whatever text or number is looked up by order of appearance."""

    #: of all texts together
    size = 0

    def __missing__(self, key: Any) -> int:
        """Give it the next number."""
        self.size += _NUMBER_SIZE if isinstance(key, int) else len(key)
        self[key] = place = len(self)
        return place


class Threads(dict[Any, int]):
    """A thread's number as it is, and one that no thread has for words in its place."""

    #: of all words together
    size = 0

    def __missing__(self, tid: int | str) -> int:
        """Give its number."""
        # some versions wrote all numbers of threads as texts
        if isinstance(tid, int) or (tid.isascii() and tid.isdigit() and len(tid) < 19):
            number = int(tid)
        else:
            number = _WORDS + zlib.crc32(tid.encode("utf-8", "replace"))
        if len(self) < _MOST_THREADS:
            self.size += len(str(tid))
            self[tid] = number
        return number


class Table:
    """Columns that grow, without Python's objects."""

    def __init__(self, **letters: str) -> None:
        """Take for each column the letter of its type, as `struct` and NumPy do."""
        self._letters = letters
        self._values = {name: bytearray() for name in letters}

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._values["text"]) // 4

    def add(self, **columns: list[Any]) -> None:
        """Append rows."""
        for name, values in columns.items():
            form = f"{len(values)}{self._letters[name]}"
            self._values[name] += struct.pack(form, *values)

    def join(self, later: Table, **places: Int32s) -> None:
        """Append another's values; of some columns they are looked up in `places`."""
        for name, values in later.whole().items():
            values = places[name][values] if name in places else values
            self._values[name] += values.tobytes()

    def whole(self) -> dict[str, npt.NDArray[Any]]:
        """Give all rows."""
        return {
            name: np.frombuffer(values, self._letters[name])
            for name, values in self._values.items()
        }


def in_order(later: Places, places: Places) -> Int32s:
    """Give for each place in the one its place in the other; NONE's is the last."""
    return np.array([*(places[text] for text in later), NONE], np.int32)
