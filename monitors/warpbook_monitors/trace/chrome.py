"""Reads the Chrome-trace files that torch.profiler writes, `.json` or `.json.gz`.

A file may come from anyone: whatever is wrong with it becomes a TraceFileError.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from warpbook_monitors.trace.columns import (
    KINETO_CATEGORIES,
    NONE,
    Category,
    Columns,
    Int64s,
    make_columns,
)
from warpbook_monitors.trace.errors import TraceFileError
from warpbook_monitors.trace.run import Run

#: A decompressed trace is refused beyond this size; a million events take 0.4 GB.
MAX_TRACE_BYTES = 2_000_000_000

_Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
# bounds within which start + duration in ns fits 64 bits: base and start reach to
# the year 2096, a duration to 30 years
_Base = Annotated[int, Meta(ge=0, le=4 * 10**18)]
_Microseconds = Annotated[float, Meta(ge=-4e15, le=4e15)]
_Duration = Annotated[float, Meta(ge=0, le=1e15)]


class _Args(Struct, gc=False):
    correlation: _Int = NONE
    device: _Int = NONE
    stream: _Int = NONE
    bytes: _Int = NONE


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


class _File(Struct):
    events: list[_Event] = field(name="traceEvents")
    base_ns: _Base = field(name="baseTimeNanoseconds", default=0)
    gpus: tuple[_Gpu, ...] = field(name="deviceProperties", default=())


def read_chrome_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    try:
        trace = msgspec.json.decode(_read(path), type=_File)
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
    return columns, _run(columns, trace.gpus)


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


def _columns(events: list[_Event], base_ns: int) -> Columns:
    count = len(events)
    none = _Args()
    args = [event.args or none for event in events]
    thread = np.fromiter(
        (event.tid if isinstance(event.tid, int) else NONE for event in events),
        np.int64,
        count,
    )
    stream = np.fromiter((arg.stream for arg in args), np.int64, count)
    return make_columns(
        names=(event.name for event in events),
        categories=[KINETO_CATEGORIES[event.cat] for event in events],
        start_ns=base_ns + _nanoseconds([event.ts for event in events]),
        duration_ns=_nanoseconds([event.dur for event in events]),
        device=np.fromiter((arg.device for arg in args), np.int64, count),
        track=np.where(stream == NONE, thread, stream),
        correlation=np.fromiter((arg.correlation for arg in args), np.int64, count),
        size_bytes=np.fromiter((arg.bytes for arg in args), np.int64, count),
    )


def _nanoseconds(microseconds: list[float]) -> Int64s:
    # a file gives microseconds with three decimals
    nanoseconds: Int64s = np.rint(np.array(microseconds) * 1000).astype(np.int64)
    return nanoseconds


def _run(columns: Columns, gpus: tuple[_Gpu, ...]) -> Run:
    """Find the window of the profiled code, which a file does not say."""
    work = columns.where(~columns.is_in(Category.OVERHEAD))
    if len(work) == 0:
        work = columns
    start_ns, end_ns = int(work.start_ns[0]), int(work.end_ns.max())
    code_end_ns = end_ns
    api = columns.where(columns.is_in(Category.API))
    # torch and Kineto each wait for the device when the profiler stops
    for index in range(len(api) - 1, max(len(api) - 3, -1), -1):
        if columns.names[api.name[index]] != "cudaDeviceSynchronize":
            break
        code_end_ns = int(api.start_ns[index])
    on_gpu = columns.is_in(Category.KERNEL, Category.COPY, Category.MEMSET)
    gpu_end_ns = int(columns.end_ns[on_gpu].max(initial=start_ns))
    names = [gpu.name for gpu in gpus if gpu.name]
    used = np.unique(columns.device[on_gpu])
    return Run(
        start_ns=start_ns,
        code_end_ns=code_end_ns,
        end_ns=max(code_end_ns, gpu_end_ns),
        gpu_name=", ".join(gpus[index].name for index in used if 0 <= index < len(gpus))
        or (names[0] if names else None),
        cuda_used=bool(names),
    )
