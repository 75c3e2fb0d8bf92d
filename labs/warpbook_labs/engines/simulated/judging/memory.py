"""The memory of the simulated machine, what views show of it, and who wrote it.

Beside each byte lies a stamp that tells where its value comes from: nothing (it was
never written), constants, or the inputs of a call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.program import (
    DTYPES,
    HOST,
    Place,
    ProgramRefused,
    View,
)
from warpbook_labs.sandbox.lines.objects import Lines, in_order, merge

_MOST_LINE = 2**16 - 1
#: of results, as `cases/execution.py` says
_WORD_BYTES = 4
#: from which a storage's values came, the nearest
_MOST_SOURCES = 16

#: of each byte; one number where all have the same, 0 where it is not known
_Lines = int | NDArray[np.uint16]


class Writers:
    """The lines of one storage."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._last: _Lines = 0
        self._computed: _Lines = 0
        #: the lines of the work from which the values came, with how far away each is
        self.sources: Lines = {}

    def forget(self) -> None:
        """Nothing of it is written any more."""
        self._last = self._computed = 0
        self.sources = {}

    def come_from(self, target: Span, lines: Lines) -> None:
        """Note from which lines what is written to a span came."""
        merged = dict(lines)
        if target.size_bytes < self._size_bytes:
            merge(merged, self.sources, 1)
        self.sources = {line: merged[line] for line in in_order(merged)[:_MOST_SOURCES]}

    def compute(self, target: Span, line: int) -> None:
        """Note that a line computes what a span of this storage holds."""
        line = _bounded(line)
        self._last = self._set(self._last, target, line)
        self._computed = self._set(self._computed, target, line)

    def copy(self, source: Span, target: Span, line: int) -> None:
        """Note that a line copies a span to one of this storage.

        Args:
            source: of any storage, in the shape of the target.
        """
        self._last = self._set(self._last, target, _bounded(line))
        computed = source.storage.writers._of_elements(source)
        self._computed = self._set(self._computed, target, computed)

    def words(self) -> tuple[bytes, bytes]:
        """Give for each 4 bytes the line that wrote them last, and that computed them.

        Returns:
            Both as uint16, in little endian.
        """
        return self._by_word(self._last), self._by_word(self._computed)

    def _of_elements(self, span: Span) -> _Lines:
        lines = self._computed
        if isinstance(lines, int):
            return lines
        return np.array(_by_byte(span, lines)[..., 0])

    def _set(self, lines: _Lines, span: Span, value: _Lines) -> _Lines:
        if not span.array.size:
            return lines
        is_whole = span.is_dense and span.end - span.begin == self._size_bytes
        if isinstance(value, int) and (is_whole or value is lines):
            return value
        if isinstance(lines, int):
            lines = np.full(self._size_bytes, lines, np.uint16)
        new = value if isinstance(value, int) else value[..., np.newaxis]
        _by_byte(span, lines)[...] = new
        return lines

    def _by_word(self, lines: _Lines) -> bytes:
        if isinstance(lines, int):
            count = -(-self._size_bytes // _WORD_BYTES)
            return np.full(count, lines, "<u2").tobytes()
        return lines[::_WORD_BYTES].astype("<u2").tobytes()


def _bounded(line: int) -> int:
    return min(max(line, 0), _MOST_LINE)


def _by_byte(span: Span, lines: NDArray[np.uint16]) -> NDArray[Any]:
    """Show the lines of a span's bytes: one more side, of an element's bytes."""
    item = lines.itemsize
    shown: NDArray[Any] = np.ndarray(
        (*span.array.shape, span.array.itemsize),
        lines.dtype,
        lines.data,
        item * span.begin,
        (*(item * stride for stride in span.array.strides), item),
    )
    return shown


Bytes = NDArray[np.uint8]

#: held at one time, and allocations of one program
MOST_BYTES = 256 << 20
MOST_STORAGES = 100_000
#: of one view; strides of 0 make many elements of few bytes
MOST_ELEMENTS = 64 << 20
MOST_DIMENSIONS = 16
_MOST_EXTENT = 1 << 40
#: never written
UNWRITTEN = 0
#: no call's inputs have a part in it
CONSTANT = 1
#: of the first call's inputs; each later call's is one more
FIRST_CALL = 2
#: which no stamp can tell apart
MOST_CALLS = 200
#: copied from where nobody had written
CARRIED = 254
#: made of what nobody had written
GARBAGE = 255
#: NaN in each type that has one
_POISON = 0xFF


@dataclass(frozen=True)
class Origin:
    """Where what nobody had written was used."""

    #: such as "`add`"
    what: str
    #: of what was read: a buffer's name, or else where it was allocated
    name: str | None
    allocated: int
    line: int
    #: none of it was written
    is_whole: bool = False
    #: the line that is to write it, in a capture that was not replayed
    captured: int | None = None


@dataclass(eq=False)
class Storage:
    """One allocation, or a buffer of the case."""

    number: int
    size_bytes: int
    place: Place
    #: for which the allocator gave it out
    stream: int = HOST
    #: the graph whose own memory it is
    graph: int | None = None
    line: int = 0
    #: of a buffer
    name: str | None = None
    is_read_only: bool = False
    is_released: bool = False
    #: streams of which the allocator was told
    used_on: set[int] = field(default_factory=set)
    #: of garbage that it holds, or held
    garbage: Origin | None = None
    #: of what was carried there, or was once
    carried: Origin | None = None
    #: the line that last wrote it in a capture, until that is replayed
    captured: int | None = None
    data: Bytes = field(init=False)
    stamps: Bytes = field(init=False)
    writers: Writers = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what nobody has written."""
        self.data = np.full(self.size_bytes, _POISON, np.uint8)
        self.stamps = np.zeros(self.size_bytes, np.uint8)
        self.writers = Writers(self.size_bytes)

    def forget(self) -> None:
        """Make it as if nobody had written it."""
        self.data[:] = _POISON
        self.stamps[:] = UNWRITTEN
        self.writers.forget()


@dataclass(frozen=True, eq=False)
class Span:
    """The elements of a storage that a view shows."""

    storage: Storage
    view: View
    array: NDArray[np.generic]
    #: of the first byte of each element
    stamps: Bytes
    #: the bytes from the first to behind the last
    begin: int
    end: int
    is_dense: bool

    @property
    def is_on_gpu(self) -> bool:
        """Tell whether kernels reach it: the GPU's memory, or the host's as mapped."""
        return self.storage.place == "device" or self.view.is_mapped

    @property
    def size_bytes(self) -> int:
        """Say how many bytes have to be moved to read or write it once."""
        return min(self.array.nbytes, self.end - self.begin)

    def overlaps(self, other: Span) -> bool | None:
        """Tell whether they have a byte in common; None if that is hard to say."""
        if self.end <= other.begin or other.end <= self.begin:
            return False
        if self.is_dense and other.is_dense:
            return True
        try:
            work: Any = 10_000
            return np.shares_memory(self.array, other.array, max_work=work)
        except np.exceptions.TooHardError:
            return None

    def holds(self, stamp: int) -> bool:
        """Tell whether some element has a stamp."""
        return bool((self.stamps == stamp).any())

    def unwritten(self, what: str, line: int) -> Origin | None:
        """Say what of it nobody has written, if so."""
        is_unwritten = self.stamps == UNWRITTEN
        if not is_unwritten.any():
            return None
        of, is_whole = self.storage, bool(is_unwritten.all())
        return Origin(what, of.name, of.line, line, is_whole, of.captured)

    def touches(self, other: Span) -> bool:
        """Tell the same by marking each byte."""
        marks = np.zeros(self.storage.size_bytes, np.bool_)
        _every_byte(self, marks)[...] = True
        return bool(_every_byte(other, marks).any())

    def stamp(self, stamp: int | Bytes) -> None:
        """Say where the values of its elements come from."""
        bytes_of = _every_byte(self, self.storage.stamps)
        bytes_of[...] = stamp if isinstance(stamp, int) else stamp[..., np.newaxis]


def _every_byte(span: Span, of: NDArray[Any]) -> NDArray[Any]:
    """Show, of one value a byte of the storage, those of the span's bytes."""
    size = span.array.itemsize
    shown: NDArray[Any] = np.ndarray(
        (*span.array.shape, size),
        of.dtype,
        of.data,
        span.begin,
        (*span.array.strides, 1),
    )
    return shown


class Memory:
    """All storages of one program."""

    def __init__(self) -> None:
        self._storages: dict[int, Storage] = {}
        self._seen = 0
        self._held_bytes = 0

    def add(self, storage_number: int, size_bytes: int) -> None:
        """Look whether there may be one more."""
        if storage_number in self._storages:
            raise ProgramRefused(f"Memory {storage_number} was allocated twice.")
        if size_bytes < 0:
            raise ProgramRefused("A negative number of bytes was requested.")
        self._seen += 1
        self._held_bytes += size_bytes
        if self._seen > MOST_STORAGES:
            raise ProgramRefused(
                f"More than {MOST_STORAGES:,} tensors were made: make them once, in "
                "`prepare`."
            )
        if self._held_bytes > MOST_BYTES:
            raise ProgramRefused(
                f"More than {MOST_BYTES >> 20} MiB are held at one time, which is all "
                "that the simulated machine has."
            )

    def keep(self, storage: Storage) -> Storage:
        self._storages[storage.number] = storage
        return storage

    def __getitem__(self, number: int) -> Storage:
        """Give a storage that is still held."""
        storage = self._storages.get(number)
        if storage is None or storage.is_released:
            raise ProgramRefused(f"Memory {number} is used, and is not there.")
        return storage

    def release(self, storage: Storage, is_kept: bool) -> None:
        """Let go of a storage; a graph may keep using what it holds."""
        storage.is_released = True
        if not is_kept:
            self._held_bytes -= storage.size_bytes
            storage.data = storage.stamps = np.empty(0, np.uint8)
            storage.writers.forget()

    def span(self, view: View) -> Span:
        return span_of(self[view.storage], view)


def span_of(storage: Storage, view: View) -> Span:
    """Look at a storage through a view that may say anything."""
    dtype = DTYPES.get(view.dtype)
    if dtype is None:
        raise ProgramRefused("The simulated GPU does not have the dtype of a tensor.")
    if view.is_mapped and storage.place != "pinned":
        raise ProgramRefused("The GPU sees no memory of the host that is not pinned.")
    item_bytes = dtype.itemsize
    pairs = tuple(zip(view.shape, view.strides, strict=False))
    if (
        len(view.shape) != len(view.strides)
        or len(pairs) > MOST_DIMENSIONS
        or not all(
            0 <= number <= _MOST_EXTENT
            for number in (*view.shape, *view.strides, view.offset)
        )
    ):
        raise ProgramRefused("The shape of a tensor is invalid.")
    count = math.prod(view.shape)
    if math.prod(extent for extent in view.shape if extent) > MOST_ELEMENTS:
        raise ProgramRefused(f"A tensor has more than {MOST_ELEMENTS:,} elements.")
    begin = view.offset * item_bytes
    last = sum((extent - 1) * stride for extent, stride in pairs) if count else -1
    end = begin + (last + 1) * item_bytes
    if end > storage.size_bytes or begin > storage.size_bytes:
        raise ProgramRefused("A tensor reaches beyond its memory.")
    if not count:
        empty = np.empty(view.shape, dtype)
        stamps = np.empty(view.shape, np.uint8)
        return Span(storage, view, empty, stamps, begin, begin, True)
    strides = tuple(stride * item_bytes for stride in view.strides)
    array: NDArray[np.generic] = np.ndarray(
        view.shape, dtype, storage.data.data, begin, strides
    )
    stamps = np.ndarray(view.shape, np.uint8, storage.stamps.data, begin, strides)
    is_dense = end - begin == _distinct(pairs) * item_bytes
    return Span(storage, view, array, stamps, begin, end, is_dense)


def _distinct(pairs: tuple[tuple[int, int], ...]) -> int:
    """Count elements, those that lie over each other once; 0 if they partly do."""
    count = reach = 1
    for stride, extent in sorted((s, e) for e, s in pairs if s and e > 1):
        if stride < reach:
            return 0
        count *= extent
        reach += (extent - 1) * stride
    return count


def can_be_written(view: View) -> bool:
    """Tell whether each element has a place of its own."""
    pairs = tuple(zip(view.shape, view.strides, strict=False))
    return _distinct(pairs) == math.prod(view.shape) or 0 in view.shape
