"""Reads the Chrome-trace files that torch.profiler writes, `.json` or `.json.gz`.

A file may come from anyone: whatever is wrong with it becomes a TraceFileError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import attrgetter
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from warpbook_monitors.trace.chrome_file import Args, Event, Gpu, Piece, read_pieces
from warpbook_monitors.trace.columns import (
    KINETO_CATEGORIES,
    NONE,
    Bools,
    Category,
    Columns,
    Int32s,
    Int64s,
    KernelShape,
    Operands,
    make_columns,
)
from warpbook_monitors.trace.errors import TraceFileError
from warpbook_monitors.trace.run import GpuLimits, Run

#: More events are refused: they would take some two GB.
MAX_EVENTS = 10_000_000
#: An event that begins or lasts beyond these is nonsense, and left out.
_MOST_US = 4e15
_LONGEST_US = 1e12

#: before torch 1.13 the categories were words of another kind
_CATEGORIES = {name: int(each) for name, each in KINETO_CATEGORIES.items()} | {
    "Kernel": int(Category.KERNEL),
    "Memcpy": int(Category.COPY),
    "Memset": int(Category.MEMSET),
    "Runtime": int(Category.API),
    "Operator": int(Category.OPERATOR),
}
#: between parts of a text; JSON never holds this byte as it is
_JOIN = b"\0".join
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Triple = tuple[_Count, _Count, _Count]


def read_chrome_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    found = _Gathered()
    for piece in read_pieces(path):
        found.add(piece)
        if found.count > MAX_EVENTS:
            raise TraceFileError(path, f"more than {MAX_EVENTS:,} events.")
    if not found.count:
        raise TraceFileError(
            path, "no events of torch.profiler in it; another tool wrote it."
        )
    columns = found.columns()
    return columns, _run(columns, found)


class _Places(dict[Any, int]):
    """Numbers whatever is looked up by order of appearance."""

    def __missing__(self, key: Any) -> int:
        self[key] = place = len(self)
        return place


class _Threads(dict[Any, int]):
    """A thread's number as it is; a word in its place tells nothing."""

    def __missing__(self, tid: int | str) -> int:
        self[tid] = number = tid if isinstance(tid, int) else NONE
        return number


_NUMBERS = attrgetter("correlation", "device", "stream", "bytes", "external")
_NO_ARGS = Args()


@dataclass
class _Gathered:
    """The pieces so far, each as a few arrays."""

    count: int = 0
    #: events whose times make no sense
    senseless: int = 0
    base_ns: int = 0
    gpus: tuple[Gpu, ...] = ()
    rank: int | None = None
    #: when the profiler says that it recorded: start and duration in µs
    recorded: list[tuple[float, float]] = field(default_factory=list)
    names: _Places = field(default_factory=_Places)
    shapes: _Places = field(default_factory=_Places)
    operands: _Places = field(default_factory=_Places)
    threads: _Threads = field(default_factory=_Threads)
    #: by column, the parts of it
    parts: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Take what is of use in a piece, and let go of the rest."""
        self.base_ns = piece.base_ns or self.base_ns
        self.gpus = piece.gpus or self.gpus
        if piece.distributed is not None:
            self.rank = piece.distributed.rank
        records = piece.events or ()
        self.recorded += [
            (each.ts, each.dur)
            for each in records
            if each.cat == "Trace" and each.dur and _make_sense(each.ts, each.dur)
        ]
        events = [
            each for each in records if each.cat in _CATEGORIES and each.ph == "X"
        ]
        if events:
            self.parts.append(self._part(events))
            self.count += len(self.parts[-1]["category"])

    def _part(self, events: list[Event]) -> dict[str, npt.NDArray[Any]]:
        args = [event.args or _NO_ARGS for event in events]
        category = _placed(_CATEGORIES, [event.cat for event in events], np.int8)
        thread = _placed(self.threads, [event.tid for event in events], np.int64)
        start_us = np.array([event.ts for event in events])
        duration_us = np.array([event.dur for event in events])
        is_kernel = category == Category.KERNEL
        is_operator = category == Category.OPERATOR
        of_kernels = list(compress(args, is_kernel.tolist()))
        of_operators = list(compress(args, is_operator.tolist()))
        # what is written down of a launch, and of an operator's call
        shapes = [_JOIN((a.grid, a.block, a.registers, a.shared)) for a in of_kernels]
        operands = [_JOIN((a.dims, a.dtypes, a.scalars)) for a in of_operators]
        numbers = np.full((len(events), 5), NONE, np.int64)
        numbers[is_operator, 4] = [each.external for each in of_operators]
        others = list(compress(args, (~is_operator).tolist()))
        numbers[~is_operator] = np.fromiter(
            chain.from_iterable(map(_NUMBERS, others)), np.int64, 5 * len(others)
        ).reshape(-1, 5)
        # there is no less than none
        correlation, device, stream, size_bytes, external = np.maximum(numbers, NONE).T
        part = {
            "name": _placed(self.names, [event.name for event in events], np.int32),
            "category": category,
            "start_us": start_us,
            "duration_us": duration_us,
            "device": device,
            "track": np.where(stream == NONE, thread, stream),
            "correlation": correlation,
            "size_bytes": size_bytes,
            "external": external,
            "shape": _numbered(self.shapes, shapes, is_kernel),
            "operand": _numbered(self.operands, operands, is_operator),
        }
        sensible = _make_sense(start_us, duration_us)
        if sensible.all():
            return part
        self.senseless += int((~sensible).sum())
        return {name: values[sensible] for name, values in part.items()}

    def columns(self) -> Columns:
        """Put the parts together."""
        whole = {
            name: np.concatenate([part[name] for part in self.parts])
            for name in self.parts[0]
        }
        self.parts.clear()
        is_kernel = whole["category"] == Category.KERNEL
        # only operators that put a kernel on the GPU are ever modelled
        is_linked = np.isin(whole["external"], whole["external"][is_kernel])
        operand = np.where(is_linked, whole["operand"], NONE)
        return make_columns(
            names=(tuple(self.names), whole["name"]),
            categories=whole["category"],
            start_ns=self.base_ns + _nanoseconds(whole["start_us"]),
            duration_ns=_nanoseconds(whole["duration_us"]),
            device=whole["device"],
            track=whole["track"],
            correlation=whole["correlation"],
            size_bytes=whole["size_bytes"],
            external=whole["external"],
            shapes=_parsed(self.shapes, whole["shape"], _shape),
            operands=_parsed(self.operands, operand, _operands),
        )


def _make_sense(start_us: Any, duration_us: Any) -> Any:
    """Tell events that were over before they began, or never; for numbers or arrays."""
    return (
        (start_us >= -_LONGEST_US)
        & (start_us <= _MOST_US)
        & (duration_us >= 0)
        & (duration_us <= _LONGEST_US)
    )


def _nanoseconds(us: npt.NDArray[np.float64]) -> Int64s:
    # a file gives microseconds with three decimals
    return np.rint(us * 1000).astype(np.int64)


def _placed(places: dict[Any, Any], keys: list[Any], kind: Any) -> Any:
    return np.fromiter(map(places.__getitem__, keys), kind, len(keys))


def _numbered(places: _Places, texts: list[bytes], chosen: Bools) -> Int32s:
    """Number the distinct texts of the chosen events."""
    position = np.full(len(chosen), NONE, np.int32)
    position[chosen] = _placed(places, texts, np.int32)
    return position


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
    # a list of tensors (as of aten::cat) nests one level deeper: not modelled
    found = msgspec.json.decode(
        dims, type=tuple[tuple[_Count | tuple[_Count, ...], ...], ...]
    )
    return Operands(
        tuple(
            tuple(size for size in each if isinstance(size, int))
            if all(isinstance(size, int) for size in each)
            else ()
            for each in found
        ),
        msgspec.json.decode(dtypes or b"[]", type=tuple[str, ...]),
        msgspec.json.decode(scalars or b"[]", type=tuple[str, ...]),
    )


def _run(columns: Columns, found: _Gathered) -> Run:
    """Find the window of the profiled code."""
    end = columns.end_ns
    work = ~columns.is_in(Category.OVERHEAD)
    if not work.any():
        work = ~work
    start_ns, end_ns = int(columns.start_ns[work][0]), int(end[work].max())
    on_gpu = columns.is_in(Category.KERNEL, Category.COPY, Category.MEMSET)
    code_end_ns = _code_end_ns(columns, end_ns)
    end_ns = max(code_end_ns, int(end[on_gpu].max(initial=start_ns)))
    if found.recorded:
        first_us, length_us = min(found.recorded)
        recorded_ns = found.base_ns + round(first_us * 1000)
        start_ns = min(start_ns, recorded_ns)
        end_ns = max(end_ns, recorded_ns + round(length_us * 1000))
    names = [gpu.name for gpu in found.gpus if gpu.name]
    used = [
        names[at] for at in np.unique(columns.device[on_gpu]) if 0 <= at < len(names)
    ]
    return Run(
        start_ns=start_ns,
        code_end_ns=code_end_ns,
        end_ns=end_ns,
        gpu_name=", ".join(used) or (names[0] if names else None),
        rank=found.rank,
        gpus=tuple(map(_limits, found.gpus)),
        cuda_used=bool(names),
        senseless_events=found.senseless,
    )


def _code_end_ns(columns: Columns, end_ns: int) -> int:
    """Find where the code ended: torch and Kineto each wait for the GPU after it."""
    for row in np.flatnonzero(columns.is_in(Category.API))[:-3:-1]:
        if columns.names[columns.name[row]] != "cudaDeviceSynchronize":
            break
        end_ns = int(columns.start_ns[row])
    return end_ns


def _limits(gpu: Gpu) -> GpuLimits:
    known = gpu.major is not None and gpu.minor is not None
    return GpuLimits(
        gpu.name,
        (gpu.major or 0, gpu.minor or 0) if known else None,
        gpu.sm_count,
        gpu.threads,
        gpu.registers,
        gpu.shared,
    )
