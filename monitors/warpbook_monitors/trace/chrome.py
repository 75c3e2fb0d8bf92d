"""Reads the Chrome-trace files that torch.profiler writes, `.json` or `.json.gz`.

A file may come from anyone: whatever is wrong with it becomes a TraceFileError.
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from warpbook_monitors.trace.columns import (
    KINETO_CATEGORIES,
    NONE,
    Bools,
    Category,
    Columns,
    Int32s,
    KernelShape,
    Operands,
    make_columns,
)
from warpbook_monitors.trace.errors import TraceFileError
from warpbook_monitors.trace.run import GpuLimits, Run

#: A decompressed trace is refused beyond this size; a million events take 0.4 GB.
MAX_TRACE_BYTES = 2_000_000_000

_Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
# bounds within which start + duration in ns fits 64 bits: base and start reach to
# the year 2096, a duration to 30 years
_Base = Annotated[int, Meta(ge=0, le=4 * 10**18)]
_Microseconds = Annotated[float, Meta(ge=-4e15, le=4e15)]
_Duration = Annotated[float, Meta(ge=0, le=1e15)]
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Triple = tuple[_Count, _Count, _Count]
_Dims = tuple[tuple[_Count | tuple[_Count, ...], ...], ...]


_NOTHING = msgspec.Raw(b"")


class _Args(Struct, gc=False):
    correlation: _Int = NONE
    device: _Int = NONE
    stream: _Int = NONE
    bytes: _Int = NONE
    external: _Int = field(name="External id", default=NONE)
    grid: msgspec.Raw = _NOTHING
    block: msgspec.Raw = _NOTHING
    registers: msgspec.Raw = field(name="registers per thread", default=_NOTHING)
    shared: msgspec.Raw = field(name="shared memory", default=_NOTHING)
    dims: msgspec.Raw = field(name="Input Dims", default=_NOTHING)
    dtypes: msgspec.Raw = field(name="Input type", default=_NOTHING)
    scalars: msgspec.Raw = field(name="Concrete Inputs", default=_NOTHING)


class _Event(Struct, gc=False):
    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: _Microseconds = 0.0
    dur: _Duration = 0.0
    tid: _Int | str = 0
    args: _Args | None = None


class _Gpu(Struct):
    name: str = ""
    major: int | None = field(name="computeMajor", default=None)
    minor: int | None = field(name="computeMinor", default=None)
    sm_count: int | None = field(name="numSms", default=None)
    threads: int | None = field(name="maxThreadsPerMultiprocessor", default=None)
    registers: int | None = field(name="regsPerMultiprocessor", default=None)
    shared: int | None = field(name="sharedMemPerMultiprocessor", default=None)


class _Distributed(Struct):
    rank: int | None = None


class _File(Struct):
    events: list[_Event] = field(name="traceEvents")
    base_ns: _Base = field(name="baseTimeNanoseconds", default=0)
    gpus: tuple[_Gpu, ...] = field(name="deviceProperties", default=())
    distributed: _Distributed | None = field(name="distributedInfo", default=None)


def read_chrome_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    try:
        # not strict: older versions wrote some numbers as strings
        trace = msgspec.json.decode(_read(path), type=_File, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise TraceFileError(path, f"no trace of torch.profiler: {problem}") from None
    events = [
        event
        for event in trace.events
        if event.ph == "X" and event.cat in KINETO_CATEGORIES
    ]
    if not events:
        raise TraceFileError(path, "no events of torch.profiler in it.")
    columns = _columns(events, trace.base_ns)
    return columns, _run(columns, trace)


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as plain:
            is_gzip = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_gzip else Path(path).open("rb") as file:
            content = file.read(MAX_TRACE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise TraceFileError(path, f"can't be read: {problem}") from problem
    if len(content) > MAX_TRACE_BYTES:
        raise TraceFileError(path, f"larger than {MAX_TRACE_BYTES:,} bytes.")
    return content


#: read in one pass each, in C: a million events have nine million fields
_NUMBERS = attrgetter("correlation", "device", "stream", "bytes", "external")
_TIMES = attrgetter("ts", "dur")


def _columns(events: list[_Event], base_ns: int) -> Columns:
    count = len(events)
    none = _Args()
    args = [event.args or none for event in events]
    numbers = np.fromiter(
        chain.from_iterable(map(_NUMBERS, args)), np.int64, 5 * count
    ).reshape(count, 5)
    correlation, device, stream, size_bytes, external = numbers.T
    # a file gives microseconds with three decimals
    times_us = np.fromiter(chain.from_iterable(map(_TIMES, events)), float, 2 * count)
    times_ns = np.rint(times_us * 1000).astype(np.int64).reshape(count, 2)
    categories = np.array([KINETO_CATEGORIES[event.cat] for event in events], np.int8)
    tids = [event.tid for event in events]
    thread = np.array([tid if isinstance(tid, int) else NONE for tid in tids], np.int64)
    is_kernel = categories == Category.KERNEL
    # only operators that put a kernel on the GPU are ever modelled
    is_linked = (categories == Category.OPERATOR) & np.isin(
        external, external[is_kernel]
    )
    return make_columns(
        names=[event.name for event in events],
        categories=categories,
        start_ns=base_ns + times_ns[:, 0],
        duration_ns=times_ns[:, 1],
        device=device,
        track=np.where(stream == NONE, thread, stream),
        correlation=correlation,
        size_bytes=size_bytes,
        external=external,
        shapes=_interned(args, is_kernel, _SHAPE, _shape),
        operands=_interned(args, is_linked, _OPERANDS, _operands),
    )


_T = TypeVar("_T")


#: what is written down of a launch, and of an operator's call
_SHAPE = attrgetter("grid", "block", "registers", "shared")
_OPERANDS = attrgetter("dims", "dtypes", "scalars")


def _interned(
    args: list[_Args],
    chosen: Bools,
    fields: Callable[[_Args], tuple[msgspec.Raw, ...]],
    parse: Callable[[list[bytes]], _T],
) -> tuple[tuple[_T, ...], Int32s]:
    """Parse each distinct text once; what can't be parsed is not known."""
    places: dict[bytes, int] = {}
    parsed: list[_T] = []
    position = np.full(len(args), NONE, np.int32)
    for index in np.flatnonzero(chosen).tolist():
        # JSON never holds this byte as it is
        text = b"\0".join(fields(args[index]))
        place = places.get(text)
        if place is None:
            place = NONE
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                parsed.append(parse(text.split(b"\0")))
                place = len(parsed) - 1
            places[text] = place
        position[index] = place
    return tuple(parsed), position


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


def _run(columns: Columns, trace: _File) -> Run:
    """Find the window of the profiled code."""
    work = columns.where(~columns.is_in(Category.OVERHEAD))
    if len(work) == 0:
        work = columns
    start_ns, end_ns = int(work.start_ns[0]), int(work.end_ns.max())
    on_gpu = columns.is_in(Category.KERNEL, Category.COPY, Category.MEMSET)
    code_end_ns = _code_end_ns(columns, end_ns)
    end_ns = max(code_end_ns, int(columns.end_ns[on_gpu].max(initial=start_ns)))
    recorded = next((e for e in trace.events if e.cat == "Trace" and e.dur), None)
    if recorded is not None:
        recorded_ns = trace.base_ns + round(recorded.ts * 1000)
        start_ns = min(start_ns, recorded_ns)
        end_ns = max(end_ns, recorded_ns + round(recorded.dur * 1000))
    names = [gpu.name for gpu in trace.gpus if gpu.name]
    used = [names[at] for at in np.unique(columns.device[on_gpu]) if at < len(names)]
    return Run(
        start_ns=start_ns,
        code_end_ns=code_end_ns,
        end_ns=end_ns,
        gpu_name=", ".join(used) or (names[0] if names else None),
        rank=trace.distributed.rank if trace.distributed else None,
        gpus=tuple(map(_limits, trace.gpus)),
        cuda_used=bool(names),
    )


def _code_end_ns(columns: Columns, end_ns: int) -> int:
    """Find where the code ended: torch and Kineto each wait for the GPU after it."""
    api = columns.where(columns.is_in(Category.API))
    for index in range(len(api) - 1, max(len(api) - 3, -1), -1):
        if columns.names[api.name[index]] != "cudaDeviceSynchronize":
            break
        end_ns = int(api.start_ns[index])
    return end_ns


def _limits(gpu: _Gpu) -> GpuLimits:
    known = gpu.major is not None and gpu.minor is not None
    return GpuLimits(
        gpu.name,
        (gpu.major or 0, gpu.minor or 0) if known else None,
        gpu.sm_count,
        gpu.threads,
        gpu.registers,
        gpu.shared,
    )
