"""What a cell's events add up to: a function of columns, nothing else.

Nothing here walks events one by one in Python: 100,000 of them take some ten
milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import structs

from warpbook_monitors.trace.calls import Calls, find_calls, launch_of
from warpbook_monitors.trace.cell_profile import (
    CellProfile,
    CopyRow,
    KernelRow,
    OperatorRow,
    PathRow,
)
from warpbook_monitors.trace.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
)
from warpbook_monitors.trace.completeness import examine, saw_nothing
from warpbook_monitors.trace.figures import CellVerdict, Finding, Metrics
from warpbook_monitors.trace.findings import find, judge
from warpbook_monitors.trace.intervals import nesting, union_ns
from warpbook_monitors.trace.lanes import LaneEvents, make_lanes
from warpbook_monitors.trace.memory_curves import memory_curves
from warpbook_monitors.trace.metrics import measure
from warpbook_monitors.trace.paths import Paths
from warpbook_monitors.trace.roofline import roofline, roofs
from warpbook_monitors.trace.run import Run

#: Rows of a table beyond these are added up into one.
MAX_ROWS = 50
_PATH_STEP = " > "
#: deep recursion is cut
_MAX_PATH_LENGTH = 600


def analyse(events: Columns, run: Run) -> CellProfile:
    """Add up the events of one run of a cell."""
    on_gpu = events.where(events.is_in(Category.KERNEL, Category.COPY, Category.MEMSET))
    kernels = on_gpu.where(on_gpu.is_in(Category.KERNEL))
    copies = on_gpu.where(~on_gpu.is_in(Category.KERNEL))
    calls = find_calls(events, on_gpu, run)
    launches = int(calls.launches.sum())
    blind = saw_nothing(events, on_gpu, run)
    whole = examine(events, on_gpu, calls, run)
    seen = _gpu_was_recorded(events, on_gpu, launches, run)
    paths = Paths(events)
    metrics = measure(events, run, paths) if seen else None
    findings = find(metrics) if metrics is not None and not whole.refusal else ()
    operators, outermost = _operators(events, run)
    names, lanes, omitted = make_lanes(
        LaneEvents(on_gpu, calls.api.where(calls.launches | calls.waits), outermost),
        run.start_ns,
    )
    return CellProfile(
        verdict=_verdict(metrics, findings, whole.refusal, run),
        findings=findings,
        metrics=metrics,
        wall_ms=_ms(run.end_ns - run.start_ns),
        profiler_ms=run.profiler_ms,
        first_start_ms=run.set_up and run.set_up.cuda_ms + run.set_up.profiler_ms,
        set_up=run.set_up,
        gpu_name=run.gpu_name,
        gpu_busy_ms=_ms(union_ns(on_gpu.start_ns, on_gpu.end_ns)) if seen else None,
        kernel_calls=len(kernels) if seen else None,
        kernel_time_ms=_ms(int(kernels.duration_ns.sum())) if seen else None,
        copy_time_ms=_ms(int(copies.duration_ns.sum())) if seen else None,
        launches=None if blind else launches,
        launch_api_ms=None
        if blind
        else _total_ms(calls.api, calls.launches & ~calls.waits),
        synchronizations=None if blind else int(calls.waits.sum()),
        synchronization_ms=None if blind else _total_ms(calls.api, calls.waits),
        peak_allocated_bytes=run.peak_allocated_bytes,
        peak_reserved_bytes=run.peak_reserved_bytes,
        kernels=_kernel_rows(kernels),
        copies=_copy_rows(copies),
        operators=operators,
        names=names,
        lanes=lanes,
        completeness=structs.replace(whole, lanes_omitted=omitted),
        memory=run.memory,
        paths=_path_rows(paths, on_gpu, calls),
        roofline=roofline(events, run),
        roofs=roofs(events, run),
        memory_curves=memory_curves(run),
    )


def _verdict(
    metrics: Metrics | None, findings: tuple[Finding, ...], refusal: str, run: Run
) -> CellVerdict | None:
    if run.gpu_name is None:
        return None
    if metrics is None:
        return CellVerdict(
            "unknown", "The profiler recorded nothing of the GPU: no conclusion."
        )
    return CellVerdict("unknown", refusal) if refusal else judge(metrics, findings)


def _ms(nanoseconds: int) -> float:
    return nanoseconds / 1e6


def _total_ms(events: Columns, chosen: Bools) -> float:
    return _ms(int(events.duration_ns[chosen].sum()))


def _gpu_was_recorded(
    events: Columns, on_gpu: Columns, launches: int, run: Run
) -> bool:
    """Tell "the GPU did nothing" from "the profiler saw nothing of it"."""
    if run.gpu_name is None:
        return False
    if len(on_gpu):
        return True
    traced = bool(events.is_in(Category.API).any())
    return launches == 0 and (traced or not run.cuda_used)


@dataclass(frozen=True)
class _Group:
    """All events of one name."""

    name: str
    calls: int
    time_ms: float
    size_bytes: int | None


def _groups(events: Columns, time_ns: Int64s) -> list[_Group]:
    """Add up by name, the longest first; the rest beyond MAX_ROWS becomes one."""
    count = len(events.names)
    calls = np.bincount(events.name, minlength=count)
    # float64 sums of nanoseconds are exact up to 104 days
    time = np.bincount(events.name, time_ns, minlength=count)
    sizes = np.bincount(events.name, np.maximum(events.size_bytes, 0), minlength=count)
    unsized = np.bincount(events.name, events.size_bytes == NONE, minlength=count) > 0
    order = np.argsort(-time, kind="stable")
    order = order[calls[order] > 0]

    def group(name: str, rows: Int64s) -> _Group:
        return _Group(
            name,
            int(calls[rows].sum()),
            float(time[rows].sum()) / 1e6,
            None if unsized[rows].any() else int(sizes[rows].sum()),
        )

    if len(order) <= MAX_ROWS:
        return [group(events.names[row], order[[n]]) for n, row in enumerate(order)]
    kept, rest = order[: MAX_ROWS - 1], order[MAX_ROWS - 1 :]
    return [group(events.names[row], kept[[n]]) for n, row in enumerate(kept)] + [
        group(f"({len(rest):,} others)", rest)
    ]


def _kernel_rows(kernels: Columns) -> tuple[KernelRow, ...]:
    total_ms = _ms(int(kernels.duration_ns.sum()))
    return tuple(
        KernelRow(
            group.name,
            group.calls,
            group.time_ms,
            group.time_ms / total_ms if total_ms else 0.0,
        )
        for group in _groups(kernels, kernels.duration_ns)
    )


def _copy_rows(copies: Columns) -> tuple[CopyRow, ...]:
    return tuple(
        CopyRow(
            group.name.removeprefix("Memcpy "),
            group.calls,
            group.size_bytes,
            group.time_ms,
        )
        for group in _groups(copies, copies.duration_ns)
    )


def _path_rows(paths: Paths, on_gpu: Columns, calls: Calls) -> tuple[PathRow, ...]:
    launch = launch_of(on_gpu, calls)
    known = np.flatnonzero(launch != NONE)
    row = launch[known]
    path = paths.at(calls.api.track[row], calls.api.start_ns[row])
    found, group = np.unique(path, return_inverse=True)
    count = np.bincount(group, minlength=len(found))
    time_ms = np.bincount(group, on_gpu.duration_ns[known], minlength=len(found)) / 1e6
    names = [_PATH_STEP.join(paths.names(int(each))) for each in found]
    rows = [
        PathRow(name[:_MAX_PATH_LENGTH] or "(no operator)", int(calls), float(time))
        for name, calls, time in zip(names, count, time_ms, strict=True)
    ]
    rows.sort(key=lambda each: (-each.time_ms, each.path))
    if len(rows) > MAX_ROWS:
        rest = rows[MAX_ROWS - 1 :]
        rows[MAX_ROWS - 1 :] = [
            PathRow(
                f"({len(rest):,} others)",
                sum(each.calls for each in rest),
                sum(each.time_ms for each in rest),
            )
        ]
    return tuple(rows)


def _operators(events: Columns, run: Run) -> tuple[tuple[OperatorRow, ...], Columns]:
    """Give the operators' rows, and those operators that no other encloses."""
    in_code = events.start_ns < run.code_end_ns
    host = events.where(events.is_in(Category.OPERATOR, Category.OVERHEAD) & in_code)
    is_operator = host.is_in(Category.OPERATOR)
    thread = np.where(is_operator, host.track, _threads_of_overhead(events, host))
    self_ns = np.zeros(len(host), np.int64)
    outermost = np.zeros(len(host), np.bool_)
    for one in np.unique(thread):
        on_thread = thread == one
        self_ns[on_thread], outermost[on_thread] = nesting(
            host.start_ns[on_thread], host.end_ns[on_thread]
        )
    rows = tuple(
        OperatorRow(group.name, group.calls, group.time_ms)
        for group in _groups(host.where(is_operator), self_ns[is_operator])
    )
    return rows, host.where(is_operator & outermost)


def _threads_of_overhead(events: Columns, host: Columns) -> Int64s:
    """Say whose time the profiler took: the thread that makes the next CUDA call.

    The profiler works inside that call's callback and doesn't name the thread.
    """
    api = events.where(events.is_in(Category.API))
    if not len(api):
        return host.track
    following = np.searchsorted(api.start_ns, host.end_ns)
    return api.track[np.minimum(following, len(api) - 1)]
