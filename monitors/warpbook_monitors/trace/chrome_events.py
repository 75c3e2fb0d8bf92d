"""What is kept of a trace file's events: columns that grow piece by piece."""

from __future__ import annotations

import contextlib
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from warpbook_monitors.trace.chrome_records import (
    CATEGORIES,
    NOTHING,
    Args,
    Event,
    Gpu,
    OddPiece,
    Piece,
)
from warpbook_monitors.trace.chrome_times import far_away, make_sense, nanoseconds
from warpbook_monitors.trace.columns import (
    NONE,
    Category,
    Columns,
    Int32s,
    Int64s,
    KernelShape,
    Operands,
    lists_of,
    make_columns,
)
from warpbook_monitors.trace.cpu.use import CpuUse
from warpbook_monitors.trace.errors import TraceTooLarge

#: More events are refused: they would take some two GB.
MAX_EVENTS = 10_000_000
#: and so are more different names, launches and operands, in letters.
MAX_TEXT = 500_000_000
_OPERATORS = {name for name, at in CATEGORIES.items() if at == Category.OPERATOR}
_CALLS = CATEGORIES.keys() - _OPERATORS
_ANNOTATION = "user_annotation"
#: whose GPU is where others have a process
_GPU_ANNOTATION = "gpu_user_annotation"
#: of accelerators that are none of NVIDIA's or AMD's
_OF_A_DEVICE = re.compile(r"(?!cuda|hip)\w+_(runtime|driver|ccp_events|insight)$")
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Triple = tuple[_Count, _Count, _Count]
#: above all numbers of threads
_WORDS = 1 << 62
#: no program has more; they would take memory
_MOST_THREADS = 1_000_000


class _Places(dict[Any, int]):
    """Numbers whatever text is looked up by order of appearance."""

    #: of all texts together
    size = 0

    def __missing__(self, key: Any) -> int:
        self.size += len(key)
        self[key] = place = len(self)
        return place


class _Threads(dict[Any, int]):
    """A thread's number as it is, and one that no thread has for words in its place."""

    #: of all words together
    size = 0

    def __missing__(self, tid: int | str) -> int:
        # some versions wrote all numbers of threads as texts
        if isinstance(tid, int) or (tid.isascii() and tid.isdigit() and len(tid) < 19):
            number = int(tid)
        else:
            number = _WORDS + zlib.crc32(tid.encode("utf-8", "replace"))
        if len(self) < _MOST_THREADS:
            self.size += len(str(tid))
            self[tid] = number
        return number


class _Table:
    """Columns that grow, without Python's objects."""

    def __init__(self, **letters: str) -> None:
        """Take for each column the letter of its type, as `struct` and NumPy do."""
        self._letters = letters
        self._values = {name: bytearray() for name in letters}

    def __len__(self) -> int:
        return len(self._values["text"]) // 4

    def add(self, **columns: list[Any]) -> None:
        for name, values in columns.items():
            form = f"{len(values)}{self._letters[name]}"
            self._values[name] += struct.pack(form, *values)

    def join(self, later: _Table, **places: Int32s) -> None:
        """Append another's values; of some columns they are looked up in `places`."""
        for name, values in later.whole().items():
            values = places[name][values] if name in places else values
            self._values[name] += values.tobytes()

    def whole(self) -> dict[str, npt.NDArray[Any]]:
        return {
            name: np.frombuffer(values, self._letters[name])
            for name, values in self._values.items()
        }


_NO_ARGS = Args()
#: between parts of a text; JSON never holds this byte as it is
_JOIN = b"\0".join
_COMMON = {
    "name": "i",
    "start_us": "d",
    "duration_us": "d",
    "thread": "q",
    "external": "q",
    # of an operator what it was called with, of a kernel how it was launched
    "text": "i",
}
_OF_OPERATORS = {"annotates": "b", "sequence": "q"}
_OF_CALLS = {
    "category": "b",
    "device": "q",
    "stream": "q",
    "correlation": "q",
    "size_bytes": "q",
}


@dataclass
class Gathered:
    """What the pieces so far hold."""

    base_ns: int = 0
    gpus: tuple[Gpu, ...] = ()
    rank: int | None = None
    #: of torch, CUDA and HIP, as far as the file tells
    versions: dict[str, str] = field(default_factory=dict)
    #: what the process took of the CPU, where warpbook saved the trace
    cpu: CpuUse | None = None
    #: there are events of a device that is not read
    other_device: bool = False
    #: when the profiler says that it first recorded: start and duration in µs
    recorded: list[tuple[float, float]] = field(default_factory=list)
    #: events whose times make no sense
    senseless: int = 0
    #: other fields that make none, each left out by itself
    odd_fields: int = 0
    operators: _Table = field(
        default_factory=lambda: _Table(**_COMMON, **_OF_OPERATORS)
    )
    #: CUDA calls and what they put on the GPU
    calls: _Table = field(default_factory=lambda: _Table(**_COMMON, **_OF_CALLS))
    names: _Places = field(default_factory=_Places)
    shapes: _Places = field(default_factory=_Places)
    operands: _Places = field(default_factory=_Places)
    threads: _Threads = field(default_factory=_Threads)

    def join(self, later: Gathered) -> None:
        """Take what a later part of the same file holds."""
        self.base_ns = later.base_ns or self.base_ns
        self.gpus = later.gpus or self.gpus
        self.rank = self.rank if later.rank is None else later.rank
        self.cpu = later.cpu or self.cpu
        self.other_device = self.other_device or later.other_device
        self.recorded = sorted(self.recorded + later.recorded)[:1]
        self.odd_fields += later.odd_fields
        self.versions |= later.versions
        name = _in_order(later.names, self.names)
        operand = _in_order(later.operands, self.operands)
        shape = _in_order(later.shapes, self.shapes)
        self.operators.join(later.operators, name=name, text=operand)
        self.calls.join(later.calls, name=name, text=shape)

    def check(self, path: str) -> None:
        """Refuse what would take too much memory."""
        if len(self.operators) + len(self.calls) > MAX_EVENTS:
            raise TraceTooLarge(path, f"more than {MAX_EVENTS:,} events.")
        if self.text_size > MAX_TEXT:
            raise TraceTooLarge(path, f"more than {MAX_TEXT:,} letters of names.")

    @property
    def text_size(self) -> int:
        """Count the letters of all different names, launches, operands, threads."""
        texts = (self.names, self.shapes, self.operands, self.threads)
        return sum(text.size for text in texts)

    def add(self, piece: Piece) -> None:
        """Take what is of use in a piece, and let go of the rest."""
        self.base_ns = piece.base_ns or self.base_ns
        self.gpus = piece.gpus or self.gpus
        if piece.distributed is not None:
            self.rank = piece.distributed.rank
        if isinstance(piece, OddPiece):
            self.odd_fields += piece.odd_fields
        self.versions |= piece.versions
        self.cpu = piece.cpu or self.cpu
        records = piece.events or []
        self.other_device = self.other_device or any(
            map(_OF_A_DEVICE.match, {record.cat for record in records})
        )
        recorded = [
            (record.ts, record.dur)
            for record in records
            if record.cat == "Trace"
            and record.dur
            and make_sense(record.ts, record.dur)
        ]
        self.recorded = sorted(self.recorded + recorded)[:1]
        self._add_operators(
            [
                record
                for record in records
                if record.cat in _OPERATORS and record.ph == "X"
            ]
        )
        self._add_calls(
            [record for record in records if record.cat in _CALLS and record.ph == "X"]
        )

    def _add_operators(self, events: list[Event]) -> None:
        args, places = self._add_common(self.operators, events), self.operands
        self.operators.add(
            annotates=[event.cat == _ANNOTATION for event in events],
            sequence=[a.sequence for a in args],
            text=[
                NONE
                if a.dims is NOTHING
                else places[_JOIN((a.dims, a.dtypes, a.scalars))]
                for a in args
            ],
        )

    def _add_calls(self, events: list[Event]) -> None:
        args, places = self._add_common(self.calls, events), self.shapes
        self.calls.add(
            category=[CATEGORIES[event.cat] for event in events],
            device=[
                event.pid
                if event.cat == _GPU_ANNOTATION and isinstance(event.pid, int)
                else a.device
                for event, a in zip(events, args, strict=True)
            ],
            stream=[a.stream for a in args],
            correlation=[a.correlation for a in args],
            size_bytes=[a.bytes for a in args],
            text=[
                NONE
                if a.grid is NOTHING
                else places[_JOIN((a.grid, a.block, a.registers, a.shared))]
                for a in args
            ],
        )

    def _add_common(self, to: _Table, events: list[Event]) -> list[Args]:
        names, threads = self.names, self.threads
        args = [event.args or _NO_ARGS for event in events]
        external = [a.external for a in args]
        if to is self.calls:
            # their links were written otherwise before torch 1.13
            external = [
                a.older_external if link == NONE else link
                for a, link in zip(args, external, strict=True)
            ]
        to.add(
            name=[names[event.name] for event in events],
            start_us=[event.ts for event in events],
            duration_us=[event.dur for event in events],
            thread=[threads[event.tid] for event in events],
            external=external,
        )
        return args

    def columns(self) -> Columns:
        """Put operators and calls together."""
        operators, calls = self.operators.whole(), self.calls.whole()

        def both(name: str) -> Any:
            return np.concatenate([operators[name], calls[name]])

        nothing = np.full(len(self.operators), NONE, np.int64)
        all_operators = np.full(len(self.operators), Category.OPERATOR, np.int8)

        def of_calls(name: str) -> Int64s:
            # there is no less than none
            return np.concatenate([nothing, np.maximum(calls[name], NONE)])

        start_us, duration_us = both("start_us"), both("duration_us")
        sensible = make_sense(start_us, duration_us)
        sensible[sensible] = ~far_away(
            start_us[sensible], duration_us[sensible], self.recorded
        )
        self.senseless = len(sensible) - int(np.count_nonzero(sensible))
        kept = sensible if self.senseless else slice(None)
        stream = of_calls("stream")
        is_kernel = calls["category"] == Category.KERNEL
        # where kernels are, only operators that put one on the GPU are ever modelled
        is_linked = np.isin(operators["external"], calls["external"][is_kernel])
        if not is_kernel.any():
            is_linked[:] = True
        no_number = np.full(len(self.calls), NONE, np.int64)
        no_shape = np.full(len(self.operators), NONE, np.int32)
        no_operand = np.full(len(self.calls), NONE, np.int32)
        shape = np.where(is_kernel, calls["text"], NONE)
        operand = np.where(is_linked, operators["text"], NONE)
        return make_columns(
            names=(tuple(self.names), both("name")[kept]),
            categories=np.concatenate([all_operators, calls["category"]])[kept],
            start_ns=self.base_ns + nanoseconds(start_us[kept]),
            duration_ns=nanoseconds(duration_us[kept]),
            device=of_calls("device")[kept],
            track=np.where(stream == NONE, both("thread"), stream)[kept],
            correlation=of_calls("correlation")[kept],
            size_bytes=of_calls("size_bytes")[kept],
            external=np.maximum(both("external"), NONE)[kept],
            annotates=np.concatenate(
                [operators["annotates"] != 0, np.zeros(len(self.calls), np.bool_)]
            )[kept],
            sequence=np.concatenate(
                [np.maximum(operators["sequence"], NONE), no_number]
            )[kept],
            shapes=_parsed(
                self.shapes, np.concatenate([no_shape, shape])[kept], _shape
            ),
            operands=_parsed(
                self.operands, np.concatenate([operand, no_operand])[kept], _operands
            ),
        )


def _in_order(later: _Places, places: _Places) -> Int32s:
    """Give for each place in the one its place in the other; NONE's is the last."""
    return np.array([*(places[text] for text in later), NONE], np.int32)


_T = TypeVar("_T")


def _parsed(
    texts: Iterable[bytes], position: Int32s, parse: Callable[[list[bytes]], _T]
) -> tuple[tuple[_T, ...], Int32s]:
    """Parse each text that is in use; what can't be parsed is not known."""
    used = np.bincount(position[position != NONE])
    place = np.full(len(used) + 1, NONE, np.int32)  # NONE is the last
    parsed: list[_T] = []
    wanted = [
        (text, at) for at, text in enumerate(texts) if at < len(used) and used[at]
    ]
    # sorted, so that the order of the file's events decides nothing
    for text, at in sorted(wanted):
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            parsed.append(parse(text.split(b"\0")))
            place[at] = len(parsed) - 1
    return tuple(parsed), place[position]


def _shape(text: list[bytes]) -> KernelShape:
    grid, block, registers, shared = text
    return KernelShape(
        msgspec.json.decode(grid, type=_Triple),
        msgspec.json.decode(block, type=_Triple),
        msgspec.json.decode(registers or b"0", type=_Count),
        msgspec.json.decode(shared or b"0", type=_Count),
    )


def _operands(text: list[bytes]) -> Operands:
    dims, dtypes, scalars = text
    # a list of tensors (as of aten::cat) nests one level deeper
    operands = msgspec.json.decode(
        dims, type=tuple[tuple[_Count | tuple[_Count, ...], ...], ...]
    )
    return Operands(
        tuple(
            tuple(size for size in operand if isinstance(size, int))
            if all(isinstance(size, int) for size in operand)
            else ()
            for operand in operands
        ),
        msgspec.json.decode(dtypes or b"[]", type=tuple[str, ...]),
        msgspec.json.decode(scalars or b"[]", type=tuple[str, ...]),
        lists_of(operands),
    )
