"""Events as columns: one NumPy array per property, sorted by start.

Whatever recorded the events (a profiler's memory, a trace file), analysis sees
only this. Names are interned, because a million launches share a few dozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
_Ints = TypeVar("_Ints", Int32s, Int64s)

#: Longer names (C++ templates reach kilobytes) are cut here.
MAX_NAME_LENGTH = 1000
#: In `size_bytes`, `device` and `correlation`: there is none.
NONE = -1
#: No GPU has as much memory: a larger size is none.
_MOST_BYTES = 2**50


class Category(IntEnum):
    """What an event is, as far as the analysis cares."""

    OTHER = 0
    KERNEL = 1
    COPY = 2
    MEMSET = 3
    #: a call of the CUDA runtime or driver
    API = 4
    OPERATOR = 5
    #: the profiler's own work
    OVERHEAD = 6
    #: a Python function; it says who called whom, and nothing else looks at it
    PYTHON = 7
    #: what a GPU did for a part of the program that the program names itself
    GPU_ANNOTATION = 8
    #: which stream a call of the same correlation waits for
    SYNC = 9


#: Kineto's activity types, in its memory and in its files.
KINETO_CATEGORIES = {
    "kernel": Category.KERNEL,
    "gpu_memcpy": Category.COPY,
    "gpu_memset": Category.MEMSET,
    "cuda_runtime": Category.API,
    "cuda_driver": Category.API,
    "cpu_op": Category.OPERATOR,
    "user_annotation": Category.OPERATOR,
    "gpu_user_annotation": Category.GPU_ANNOTATION,
    "overhead": Category.OVERHEAD,
    "python_function": Category.PYTHON,
}


@dataclass(frozen=True)
class KernelShape:
    """How a kernel was launched: what decides how much of the chip it can fill."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers_per_thread: int
    shared_memory_bytes: int

    @property
    def blocks(self) -> int:
        """Blocks of the whole grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True)
class Message:
    """What a collective moves."""

    collective: str
    #: as torch names it
    dtype: str
    #: the larger of what a rank gives and what it gets, in numbers of this dtype
    numbers: int
    ranks: int


@dataclass(frozen=True)
class Operands:
    """What an operator was called with, as far as the profiler wrote it down."""

    #: sizes of each tensor argument; empty for what is no tensor
    dims: tuple[tuple[int, ...], ...]
    #: dtype of each argument as torch names it, "c10::BFloat16", "float", ...
    dtypes: tuple[str, ...]
    #: scalar arguments as text, "" for a tensor
    scalars: tuple[str, ...] = ()
    #: of each argument that is a list of tensors, the sizes of each of these; empty for
    #: any other argument, and as a whole where there is no list
    lists: tuple[tuple[tuple[int, ...], ...], ...] = ()
    message: Message | None = None


def lists_of(
    arguments: Sequence[Sequence[int | Sequence[int]]],
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Take from arguments' sizes, as torch nests them, those of lists of tensors."""
    lists = tuple(
        tuple(tuple(sizes) for sizes in argument if not isinstance(sizes, int))
        for argument in arguments
    )
    return lists if any(lists) else ()


@dataclass(frozen=True)
class Columns:
    """Events in ascending order of start."""

    #: the distinct names, at most `MAX_NAME_LENGTH` long
    names: tuple[str, ...]
    #: the distinct launch shapes and operands
    shapes: tuple[KernelShape, ...]
    operands: tuple[Operands, ...]
    #: positions in `names`
    name: Int64s
    #: values of `Category`
    category: Int8s
    start_ns: Int64s
    duration_ns: Int64s
    #: the GPU's index, or NONE for an event on the host
    device: Int64s
    #: the stream of a GPU event, the thread of one on the host
    track: Int64s
    #: shared by a call on the host and the work that it put on the GPU
    correlation: Int64s
    #: of copies and memsets, where known
    size_bytes: Int64s
    #: shared by an operator and the calls and GPU work within it, or NONE
    external: Int64s
    #: of kernels: positions in `shapes`, or NONE
    shape: Int32s
    #: of operators: positions in `operands`, or NONE
    operand: Int32s
    #: of operators: a part of the program that the program names itself
    annotates: Bools
    #: of operators: the number that autograd's next node takes, or NONE where it is off
    sequence: Int64s
    _only: dict[tuple[Category, ...], Columns] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    # otherwise any name would be a column to a type checker
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> np.ndarray:
            """Take a column of chosen rows; most are never read."""
            if name not in _COLUMNS or "_taken" not in vars(self):
                raise AttributeError(name)
            source, rows = self._taken
            column = vars(self)[name] = getattr(source, name).take(rows)
            return column

    def __getstate__(self) -> dict[str, object]:
        """Send every column, and not what they were taken from."""
        sent = [one.name for one in fields(self) if one.init]
        return {"_only": {}} | {name: getattr(self, name) for name in sent}

    def __len__(self) -> int:
        """Count the events."""
        return len(self.start_ns)

    @cached_property
    def end_ns(self) -> Int64s:
        """Give the end of each event."""
        return self.start_ns + self.duration_ns

    def where(self, chosen: Bools) -> Columns:
        """Keep the chosen events; a column of them is taken when it is first read."""
        rows = np.flatnonzero(chosen)
        return self if len(rows) == len(self) else self.rows(rows)

    def rows(self, rows: Int64s, **others: object) -> Columns:
        """Take these events in this order, and `others` in the place of columns."""
        chosen = object.__new__(Columns)
        alike = {"names": self.names, "shapes": self.shapes, "operands": self.operands}
        vars(chosen).update(_only={}, _taken=(self, rows), **(alike | others))
        return chosen

    def only(self, *categories: Category) -> Columns:
        """Keep the events of these categories; asked again, gives the same ones."""
        if categories not in self._only:
            self._only[categories] = self.where(self.is_in(*categories))
        return self._only[categories]

    def is_in(self, *categories: Category) -> Bools:
        """Choose the events of these categories."""
        chosen = np.zeros(len(Category), np.bool_)
        chosen[list(categories)] = True
        return chosen.take(self.category)


_COLUMNS = [
    column_field.name
    for column_field in fields(Columns)
    if column_field.init and column_field.name not in ("names", "shapes", "operands")
]
#: what is done on a GPU
ON_GPU = (Category.KERNEL, Category.COPY, Category.MEMSET)


def make_columns(
    *,
    names: tuple[tuple[str, ...], Int32s | Int64s],
    categories: Sequence[Category] | Int8s,
    start_ns: Int64s,
    duration_ns: Int64s,
    device: Int64s,
    track: Int64s,
    correlation: Int64s,
    size_bytes: Int64s,
    external: Int64s | None = None,
    shapes: tuple[tuple[KernelShape, ...], Int32s] | None = None,
    operands: tuple[tuple[Operands, ...], Int32s] | None = None,
    annotates: Bools | None = None,
    sequence: Int64s | None = None,
) -> Columns:
    """Sort the events, a longer one before those within it.

    Args:
        names: the distinct ones, and for each event its position; see `interned`.
        shapes: the distinct ones, and for each event its position or NONE.
        operands: the same of the operators' operands.
        annotates: which operators are parts of the program that it names itself.
        sequence: of operators, the number that autograd's next node takes, or NONE.
    """
    unknown = np.full(len(start_ns), NONE, np.int32)
    distinct_shapes, shape = shapes or ((), unknown)
    distinct_operands, operand = operands or ((), unknown)
    if external is None:
        external = unknown.astype(np.int64)
    if sequence is None:
        sequence = unknown.astype(np.int64)
    category = np.array(categories, np.int8)
    cut, place = _cut(names[0])
    name = place.take(names[1])
    order = _order(start_ns, duration_ns, category, track, device, correlation, name)
    return Columns(
        names=cut,
        name=name[order],
        category=category[order],
        start_ns=start_ns[order],
        duration_ns=duration_ns[order],
        device=device[order],
        track=track[order],
        correlation=correlation[order],
        size_bytes=np.where(size_bytes > _MOST_BYTES, NONE, size_bytes)[order],
        external=external[order],
        shapes=distinct_shapes,
        shape=shape[order],
        operands=distinct_operands,
        operand=operand[order],
        annotates=np.zeros(len(order), np.bool_)
        if annotates is None
        else annotates[order],
        sequence=sequence[order],
    )


def groups(*keys: Int32s | Int64s) -> tuple[Int64s, Int64s]:
    """Group events that are equal in all keys.

    Returns:
        the position of one event of each group, and each event's group; groups are
        in ascending order of their keys.
    """
    packed, size = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        least = int(key.min(initial=0))
        span = int(key.max(initial=0)) - least + 1
        if size * span > _LARGEST_TABLE:
            first, packed = _ranked(packed, size)
            size = max(len(first), 1)
            values, key = np.unique(key, return_inverse=True)
            least, span = 0, max(len(values), 1)
        if span > 1:
            packed, size = packed * span + (key - least), size * span
    return _ranked(packed, size)


def distinct(values: _Ints) -> _Ints:
    """Give each value once, in ascending order.

    `numpy.unique` does it too, but then takes 15 ms to import masked arrays.
    """
    return values[groups(values)[0]]


def median(values: Int64s | npt.NDArray[np.float64]) -> float:
    """Give the middle of one value or more; `numpy.median` imports as much, too."""
    middle = [(len(values) - 1) // 2, len(values) // 2]
    low, high = np.partition(values, middle)[middle].tolist()
    return float((low + high) / 2)


def rows_by(*keys: Int32s | Int64s) -> list[Int64s]:
    """Give the rows of each group of events that are equal in all keys."""
    if not len(keys[0]):
        return []
    _, group = groups(*keys)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


#: of groups that could be, within which a table finds those that are
_LARGEST_TABLE = 1_000_000


def _ranked(values: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Give the first place of each distinct value below `size`, and all their ranks."""
    if size == 1:
        return np.zeros(min(len(values), 1), np.int64), values
    if size > _LARGEST_TABLE:
        _, first, rank = np.unique(values, return_index=True, return_inverse=True)
        return first.astype(np.int64), rank.astype(np.int64)
    first = np.full(size, NONE, np.int64)
    first[values[::-1]] = np.arange(len(values))[::-1]
    is_used = first != NONE
    return first[is_used], (np.cumsum(is_used) - 1)[values]


def interned(names: Iterable[str]) -> tuple[tuple[str, ...], Int32s]:
    """Give the distinct names, and for each name its position among them."""
    places: dict[str, int] = {}
    position = [places.setdefault(text, len(places)) for text in names]
    return tuple(places), np.array(position, np.int32)


def _order(
    start_ns: Int64s, duration_ns: Int64s, *others: Int8s | Int32s | Int64s
) -> Int64s:
    """Sort by start, the longer first; `others` decide, so the given order does not."""
    order = np.argsort(start_ns, kind="stable")
    start_ns = start_ns[order]
    same = start_ns[1:] == start_ns[:-1]
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = same
    tied[:-1] |= same
    rows = order[tied]
    keys = (*(other[rows] for other in others), -duration_ns[rows], start_ns[tied])
    order[tied] = rows[np.lexsort(keys)]
    return order


def _cut(names: Iterable[str]) -> tuple[tuple[str, ...], Int64s]:
    """Bound the names' length; give the distinct ones, sorted, and where each is."""
    # a lone surrogate could not be sent on as JSON
    sent = [
        text[:MAX_NAME_LENGTH].encode("utf-8", "replace").decode() for text in names
    ]
    place = {text: at for at, text in enumerate(sorted(set(sent)))}
    return tuple(place), np.array([place[text] for text in sent], np.int64)
