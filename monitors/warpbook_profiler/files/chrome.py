"""Reads the Chrome-trace files that torch.profiler writes, `.json` or `.json.gz`.

A file may come from anyone: whatever is wrong with it becomes a TraceFileError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from warpbook_profiler.events.columns import NONE, ON_GPU, Category, Columns, distinct
from warpbook_profiler.events.own_marks import marked_ns, of_the_cell
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.facts.calls import named
from warpbook_profiler.files.chrome_events import Gathered
from warpbook_profiler.files.chrome_file import read_pieces
from warpbook_profiler.files.chrome_links import owned
from warpbook_profiler.files.chrome_parts import gather
from warpbook_profiler.files.chrome_processes import MOST_MERGED
from warpbook_profiler.files.chrome_records import Gpu
from warpbook_profiler.files.stalls import read_stalls
from warpbook_profiler.model.errors import NotATrace
from warpbook_profiler.model.limits import Limits

#: of the work on a GPU that is left, what has a call if calls were recorded
_MOSTLY = 0.5
_NEVER_NS = np.iinfo(np.int64).max


def within_recorded(
    events: Columns, recorded_ns: tuple[int, int] | None
) -> tuple[Columns, str]:
    """Leave out what is outside the recorded time; say so in words, if it is anything.

    Args:
        events: of one process.
        recorded_ns: when the profiler says that it recorded; without, that begins with
            the first event of the host.
    """
    is_gpu = events.is_in(*ON_GPU, Category.GPU_ANNOTATION)
    is_call = events.is_in(Category.API)
    is_host = events.is_in(Category.OPERATOR) | is_call
    if not is_host.any() or not is_gpu.any():
        return events, ""
    start_ns, end_ns = events.start_ns, events.end_ns
    begin_ns, over_ns = recorded_ns or (int(start_ns[is_host][0]), _NEVER_NS)
    outside = (end_ns <= begin_ns) | (start_ns >= over_ns)
    if not outside.any():
        return events, ""
    if not (is_host & ~outside).any():
        # the profiler's own time is another clock's
        return events, ""
    linked = np.isin(events.correlation, events.correlation[is_call & ~outside]) & (
        events.correlation > 0
    )
    gone = outside & (is_host | (is_gpu & ~linked))
    kept_gpu = is_gpu & ~gone
    if not gone.any() or not kept_gpu.any():
        return events, ""
    if recorded_ns is None and linked[kept_gpu].mean() < _MOSTLY:
        return events, ""
    span = "the profiler's own span" if recorded_ns else "the first event of the host"
    return events.where(~gone), (
        f"Outside the recorded window ({span}) are {int((gone & is_gpu).sum()):,} "
        f"pieces of work on the GPU and {int((gone & is_host).sum()):,} events of the "
        "host, as of a warm-up step: they are left out."
    )


#: a GPU that did work, in a file without the properties of any
_UNNAMED = "unnamed GPU"
#: torch's and Kineto's last waits are closer, so between others the code worked
_BETWEEN_WAITS_NS = 1_000_000
#: of a merged file's events, whose process is known if it can be taken apart
_LEAST_KNOWN = 0.95
_PROTON = (
    "A trace of Triton's Proton, as it seems: it holds kernels and no host, "
    "so why the GPU idled is not known. torch.profiler records both."
)
_COUNTED = (
    "The trace holds counters of {:,} kernels (CUPTI's range profiler) and not when "
    "each ran, so nothing can be concluded. Profile again without counters."
)
#: processes that are named
_MOST_NAMED = 5
_DEVICE_WAIT = re.compile(r"(cuda|hip)DeviceSynchronize")


class Trace(NamedTuple):
    """What one process recorded."""

    #: what the file calls the process; empty where it holds one alone
    process: str
    events: Columns
    run: Run


def read_chrome_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file; of a merged one the process with most GPU work.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    traces = read_chrome_traces(path)
    most = max(traces, key=lambda trace: len(trace.events.only(*ON_GPU)))
    if len(traces) == 1:
        return most.events, most.run
    note = "It is the one with most work on a GPU; the others are left out."
    return most.events, replace(most.run, notes=(*most.run.notes, note))


def read_chrome_traces(path: str) -> list[Trace]:
    """Read a trace file, each process that it holds by itself.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    gathered = gather(path)
    names, owner = gathered.processes_in()
    known = owner != NONE
    if not names or len(names) > MOST_MERGED or known.mean() < _LEAST_KNOWN:
        events, run = _read(path, gathered, gathered.columns(read_pieces(path)))
        refusal = _inseparable(names) or run.refusal
        return [Trace("", events, replace(run, refusal=refusal))]
    gathered.rank, gathered.cpu, gathered.limits = None, None, b""
    gathered.collections, gathered.stalls = (), b""
    traces = []
    for at, name in enumerate(names):
        events, run = _read(
            path, gathered, gathered.columns(read_pieces(path), owner == at)
        )
        note = f"The file holds traces of {len(names):,} processes; this is {name!r}."
        traces.append(Trace(name, events, replace(run, notes=(note, *run.notes))))
    return traces


def _inseparable(names: Sequence[str]) -> str:
    if not names:
        return ""
    some = ", ".join(names[:_MOST_NAMED])
    return (
        f"The file holds traces of {len(names):,} processes ({some}"
        f"{', ...' if len(names) > _MOST_NAMED else ''}), and ids of launches are "
        "unique within one of them only: which call put which work on the GPU is not "
        "known. Give each process a file of its own."
    )


def _read(path: str, gathered: Gathered, columns: Columns) -> tuple[Columns, Run]:
    if not len(columns):
        raise NotATrace(
            path, "no events of torch.profiler in it; another tool wrote it."
        )
    columns, outside = within_recorded(owned(columns), gathered.recorded_ns)
    run, begun_ns = _run(columns, gathered), marked_ns(columns)
    if any(str(thread).startswith("Stream: ") for thread in gathered.kinds.threads):
        run = replace(run, notes=(*run.notes, _PROTON))
    if outside:
        run = replace(run, notes=(*run.notes, outside))
    if begun_ns is None:
        return columns, run
    # where no GPU worked, what warpbook saved tells how long the code went on
    on_gpu = columns.is_in(*ON_GPU).any()
    ended_ns = begun_ns if run.cpu is None or on_gpu else begun_ns + run.cpu.wall_ns
    run = replace(
        run,
        start_ns=begun_ns,
        code_end_ns=max(ended_ns, run.code_end_ns),
        end_ns=max(ended_ns, run.end_ns),
    )
    return of_the_cell(columns, begun_ns), run


def _run(columns: Columns, gathered: Gathered) -> Run:
    """Find the window of the profiled code."""
    end = columns.end_ns
    # of a Python function that began before, or goes on after, nothing is profiled
    work = ~columns.is_in(Category.OVERHEAD, Category.PYTHON, Category.SYNC)
    if not work.any():
        work = ~work
    start_ns, end_ns = int(columns.start_ns[work][0]), int(end[work].max())
    on_gpu = columns.is_in(Category.KERNEL, Category.COPY, Category.MEMSET)
    code_end_ns = _code_end_ns(columns, end_ns)
    end_ns = max(code_end_ns, int(end[on_gpu].max(initial=start_ns)))
    if gathered.recorded_ns is not None:
        start_ns = min(start_ns, gathered.recorded_ns[0])
        end_ns = max(end_ns, gathered.recorded_ns[1])
    gpus = _by_index(gathered.gpus)
    names = [gpu.name for gpu in gpus]
    used = [
        names[at]
        for at in distinct(columns.device[on_gpu])
        if 0 <= at < len(names) and names[at]
    ]
    unnamed = (gathered.kinds.other_device or _UNNAMED) if on_gpu.any() else None
    first = next(filter(None, names), unnamed)
    measured, notes = _measured(gathered.limits)
    sampled, of_stalls = read_stalls(gathered.stalls)
    return Run(
        start_ns=start_ns,
        code_end_ns=code_end_ns,
        end_ns=end_ns,
        gpu_name=", ".join(used) or first,
        rank=gathered.rank,
        gpus=tuple(_limits(gpu, measured) for gpu in gpus),
        cuda_used=any(names),
        senseless_events=gathered.senseless,
        odd_fields=gathered.odd_fields,
        versions=gathered.versions,
        cpu=gathered.cpu,
        collections=gathered.collections,
        stalls=sampled,
        other_device=gathered.kinds.other_device,
        linked_by=gathered.linked_by,
        is_torch=gathered.is_torch,
        notes=(*notes, *of_stalls),
        refusal=_COUNTED.format(gathered.ranges) if gathered.ranges else "",
    )


def _code_end_ns(columns: Columns, end_ns: int) -> int:
    """Find where the code ended: torch and Kineto each wait for the GPU after it."""
    api = columns.only(Category.API)
    waits = named(api, _DEVICE_WAIT)
    if not waits.any():
        return end_ns
    # other threads, such as NCCL's, may call on
    thread = api.track[np.flatnonzero(waits)[-1]]
    operators_ns = columns.only(Category.OPERATOR).start_ns
    for number, row in enumerate(np.flatnonzero(api.track == thread)[:-3:-1]):
        until_ns = int(api.end_ns[row])
        worked = (operators_ns >= until_ns) & (operators_ns < end_ns)
        late = end_ns - until_ns > _BETWEEN_WAITS_NS
        if not waits[row] or (number and (late or worked.any())):
            break
        end_ns = int(api.start_ns[row])
    return end_ns


def _by_index(gpus: tuple[Gpu, ...]) -> list[Gpu]:
    """Put each at the place that its events name; one that is not told is blank."""
    placed = {at if gpu.id is None else gpu.id: gpu for at, gpu in enumerate(gpus)}
    return [placed.get(at, Gpu()) for at in range(max(placed, default=-1) + 1)]


def _measured(text: bytes) -> tuple[Limits | None, tuple[str, ...]]:
    """Read the limits that warpbook saved with a trace; say what is wrong with them."""
    if not text:
        return None, ()
    try:
        return msgspec.json.decode(text, type=Limits), ()
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        return None, (
            f"What was measured of its GPU can't be used ({problem}): times after a "
            "change rest on defaults. Record the trace again to have them.",
        )


def _limits(gpu: Gpu, measured: Limits | None) -> GpuLimits:
    known = gpu.major is not None and gpu.minor is not None
    if gpu.warp_size not in (None, 32):
        # of AMD: its multiprocessors are filled by other rules
        return GpuLimits(gpu.name)
    return GpuLimits(
        gpu.name,
        (gpu.major or 0, gpu.minor or 0) if known else None,
        gpu.sm_count,
        gpu.threads,
        gpu.registers,
        gpu.shared,
        measured if measured is not None and measured.gpu == gpu.name else None,
        gpu.memory,
    )
