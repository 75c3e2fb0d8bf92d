"""Reads the Chrome-trace files that torch.profiler writes, `.json` or `.json.gz`.

A file may come from anyone: whatever is wrong with it becomes a TraceFileError.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from warpbook_monitors.trace.calls import named
from warpbook_monitors.trace.chrome_events import Gathered
from warpbook_monitors.trace.chrome_parts import gather
from warpbook_monitors.trace.chrome_records import Gpu
from warpbook_monitors.trace.chrome_times import nanoseconds
from warpbook_monitors.trace.columns import ON_GPU, Category, Columns, distinct
from warpbook_monitors.trace.errors import NotATrace
from warpbook_monitors.trace.limits import measured_ceilings
from warpbook_monitors.trace.own_marks import marked_ns, of_the_cell
from warpbook_monitors.trace.run import GpuLimits, Run

#: a GPU that did work, in a file without the properties of any
_UNNAMED = "unnamed GPU"
#: torch's and Kineto's last waits are closer, so between others the code worked
_BETWEEN_WAITS_NS = 1_000_000
_DEVICE_WAIT = re.compile(r"(cuda|hip)DeviceSynchronize")


def read_chrome_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    gathered = gather(path)
    columns = gathered.columns()
    if not len(columns):
        raise NotATrace(
            path, "no events of torch.profiler in it; another tool wrote it."
        )
    run, begun_ns = _run(columns, gathered), marked_ns(columns)
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
    work = ~columns.is_in(Category.OVERHEAD, Category.PYTHON)
    if not work.any():
        work = ~work
    start_ns, end_ns = int(columns.start_ns[work][0]), int(end[work].max())
    on_gpu = columns.is_in(Category.KERNEL, Category.COPY, Category.MEMSET)
    code_end_ns = _code_end_ns(columns, end_ns)
    end_ns = max(code_end_ns, int(end[on_gpu].max(initial=start_ns)))
    if gathered.recorded:
        first_us, length_us = min(gathered.recorded)
        recorded_ns = gathered.base_ns + int(nanoseconds(np.array(first_us)))
        start_ns = min(start_ns, recorded_ns)
        end_ns = max(end_ns, recorded_ns + round(length_us * 1000))
    gpus = _by_index(gathered.gpus)
    names = [gpu.name for gpu in gpus]
    used = [
        names[at]
        for at in distinct(columns.device[on_gpu])
        if 0 <= at < len(names) and names[at]
    ]
    first = next(filter(None, names), _UNNAMED if on_gpu.any() else None)
    return Run(
        start_ns=start_ns,
        code_end_ns=code_end_ns,
        end_ns=end_ns,
        gpu_name=", ".join(used) or first,
        rank=gathered.rank,
        gpus=tuple(map(_limits, gpus)),
        cuda_used=any(names),
        senseless_events=gathered.senseless,
        odd_fields=gathered.odd_fields,
        versions=gathered.versions,
        cpu=gathered.cpu,
        other_device=gathered.other_device,
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


def _limits(gpu: Gpu) -> GpuLimits:
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
        measured_ceilings(gpu.name),
    )
