"""Columns that grow piece by piece, and the numbers of what stands in them."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import NONE, Category, Int32s
from warpbook_profiler.files.chrome_records import category_of, device_of

#: above all numbers of threads
_WORDS = 1 << 62
#: no program has more; they would take memory
_MOST_THREADS = 1_000_000
#: what a number that is looked up counts as, in letters
_NUMBER_SIZE = 100
_ANNOTATION = "user_annotation"
#: whose GPU is where others have a process
_GPU_ANNOTATION = "gpu_user_annotation"
OF_KINDS = {
    "name": "i",
    "process": "i",
    "thread": "q",
    "category": "b",
    "gpu": "q",
    "annotates": "?",
}


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


class Kinds(dict[tuple[str, str, int | str, int | str], int]):
    """Numbers what many events have in common: category, name, process and thread.

    What is of no use has the number 0, and is not kept.
    """

    def __init__(self) -> None:
        self.names, self.threads = Places(), Threads()
        #: by what the file calls them; of work on a GPU most files name the GPU instead
        self.processes = Places()
        #: whose device the events are of, where it is none of NVIDIA's or AMD's
        self.other_device = ""
        #: by number
        self.are_operators, self.are_calls = [False], [False]
        self._rows: list[tuple[int, ...]] = [(NONE,) * len(OF_KINDS)]
        self._categories: dict[str, Category | None] = {}

    def __missing__(self, key: tuple[str, str, int | str, int | str]) -> int:
        """Give it the next number."""
        cat, name, pid, tid = key
        if cat not in self._categories:
            self._categories[cat] = category_of(cat)
            self.other_device = self.other_device or device_of(cat)
        category = self._categories[cat]
        if category is None:
            return 0
        self.are_operators.append(category is Category.OPERATOR)
        self.are_calls.append(category is not Category.OPERATOR)
        gpu = pid if cat == _GPU_ANNOTATION and isinstance(pid, int) else NONE
        places = self.names[name], self.processes[pid], self.threads[tid]
        self[key] = number = len(self._rows)
        self._rows.append((*places, category, gpu, cat == _ANNOTATION))
        return number

    @property
    def size(self) -> int:
        """Count letters, and as some what is a number."""
        texts = self.names, self.threads, self.processes
        return _NUMBER_SIZE * len(self) + sum(text.size for text in texts)

    def join(self, later: Kinds) -> Int32s:
        """Take another's; give for each of its numbers that of the same kind here."""
        numbers = np.array([0, *(self[key] for key in later)], np.int32)
        self.other_device = self.other_device or later.other_device
        return numbers

    def column(self, name: str, kind: Int32s) -> npt.NDArray[Any]:
        """Give one of what they have in common for events of these kinds."""
        at = list(OF_KINDS).index(name)
        return np.array([row[at] for row in self._rows], OF_KINDS[name]).take(kind)


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
            values = places[name].take(values) if name in places else values
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
