"""All figures of one trace. Times are in ns, sizes in bytes; None is "not known"."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from msgspec import structs

from warpbook_profiler.events.columns import (
    NONE,
    Category,
    Columns,
    groups,
    rows_by,
)
from warpbook_profiler.events.intervals import intersection_ns, union_ns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import named
from warpbook_profiler.facts.flops import model
from warpbook_profiler.facts.idle import (
    Gaps,
    HostWait,
    StreamGaps,
    stream_gaps,
)
from warpbook_profiler.facts.kernel_work import kernel_work
from warpbook_profiler.facts.kernels import (
    communicates,
    occupancy_ratio,
    uses_tensor_cores,
)
from warpbook_profiler.facts.launch_times import launch_times
from warpbook_profiler.facts.parts import BETWEEN_GPUS, WITH_HOST
from warpbook_profiler.facts.roofline import Called
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.model.figures import (
    CollectiveTotal,
    CopyTotal,
    IdleSplit,
    KernelWork,
    Metrics,
    StreamIdle,
)

#: of a name without its underscores: how often all but its own part of the size
#: crosses the bus of a rank; of the others all of it does
_PARTS = {"reducescatter": 1, "allreduce": 2, "allgather": 1, "alltoall": 1}
_WHOLE = ("broadcast", "reduce", "send", "recv")
_MOST_RANKS, _MOST_ROWS = 1_000_000, 20


def collective_totals(operators: list[Called]) -> tuple[CollectiveTotal, ...]:
    """Add up by collective and ranks, the longest first.

    Args:
        operators: what called the kernels.
    """
    groups: dict[tuple[str, int], list[Called]] = {}
    for operator in operators:
        told = operator.operands.message
        if told is not None and 0 < told.ranks <= _MOST_RANKS:
            groups.setdefault((told.collective, told.ranks), []).append(operator)
    totals = [_total(*key, rows) for key, rows in groups.items()]
    totals.sort(key=lambda total: (-total.time_ns, total.name))
    return tuple(totals[:_MOST_ROWS])


def _total(name: str, ranks: int, rows: list[Called]) -> CollectiveTotal:
    time_ns = round(sum(row.time_ns for row in rows))
    sizes = [_size_bytes(row) for row in rows]
    known = [size for size in sizes if size is not None]
    size_bytes = sum(known) if len(known) == len(sizes) else None
    share = _share(name.replace("_", "").lower(), ranks)
    bus_bytes = None
    if size_bytes is not None and share is not None:
        bus_bytes = round(size_bytes * share)
    calls = sum(row.calls for row in rows)
    return CollectiveTotal(name, ranks, calls, time_ns, size_bytes, bus_bytes)


def _share(name: str, ranks: int) -> float | None:
    for kind, times in _PARTS.items():
        if kind in name:
            return times * (ranks - 1) / ranks
    return 1.0 if any(kind in name for kind in _WHOLE) else None


def _size_bytes(row: Called) -> int | None:
    told = row.operands.message
    if told is None or told.numbers < 0 or told.dtype not in ITEM_BYTES:
        return None
    return told.numbers * ITEM_BYTES[told.dtype] * row.calls


_COPY = re.compile(r"(?:Memcpy )?(\w+) \((\w+) -> (\w+)\)")
_HIP_COPY = re.compile(r"Copy(Host|Device)To(Host|Device)$")


def measure(
    trace: Trace, like: Metrics | None = None, in_detail: bool = True
) -> Metrics:
    """Compute every figure of a trace.

    Args:
        trace: the events and their window.
        like: figures of the same work at other times: what does not depend on when
            it ran is taken from there.
        in_detail: else places, streams and launches are taken from there, too.
    """
    events, run, calls, on_gpu = trace.events, trace.run, trace.calls, trace.on_gpu
    is_kernel = on_gpu.is_in(Category.KERNEL)
    between = named(on_gpu, BETWEEN_GPUS)
    is_communication = (communicates(events, on_gpu) & is_kernel) | between
    compute = on_gpu.where(is_kernel & ~is_communication)
    communication = on_gpu.where(is_communication)
    copies = on_gpu.where(on_gpu.is_in(Category.COPY) & ~between)
    gaps = trace.gaps
    window_ns = run.end_ns - run.start_ns
    in_compute = (compute.start_ns, compute.end_ns)
    both_comm = intersection_ns(
        in_compute, (communication.start_ns, communication.end_ns)
    )
    # what runs beside communication is its time, and counts once
    hiding = on_gpu.where(is_kernel | is_communication)
    in_kernels = (hiding.start_ns, hiding.end_ns)
    both_copy = intersection_ns(in_kernels, (copies.start_ns, copies.end_ns))
    with_host = copies.where(named(copies, WITH_HOST))
    in_host_copies = (with_host.start_ns, with_host.end_ns)
    communication_ns = union_ns(communication.start_ns, communication.end_ns)
    copy_ns = union_ns(copies.start_ns, copies.end_ns)
    detail = None if in_detail else like
    if detail is None:
        sync_points = trace.places.sync_points()
        idle_places = trace.places.idle_places()
        streams = _streams(stream_gaps(on_gpu, calls))
        launch_figures = launch_times(on_gpu, calls)
    else:
        sync_points, idle_places = detail.sync_points, detail.idle_places
        streams, launch_figures = detail.streams, detail.launch
    compute_ns = union_ns(*in_compute)
    if like is None:
        kernel_figures = _of_kernels(trace, compute_ns)
    else:
        kernel_figures = _of_same_kernels(like, compute_ns)
    plain_waits = calls.waits & ~calls.blocking_copies
    return Metrics(
        exposed_host_copy_ns=union_ns(*in_host_copies)
        - intersection_ns(in_kernels, in_host_copies),
        window_ns=window_ns,
        gpu_span_ns=_span(on_gpu),
        gpu_busy_ns=union_ns(on_gpu.start_ns, on_gpu.end_ns),
        compute_ns=compute_ns,
        copy_ns=copy_ns,
        communication_ns=communication_ns,
        communication_compute_overlap_ns=both_comm,
        copy_compute_overlap_ns=both_copy,
        exposed_communication_ns=communication_ns - both_comm,
        exposed_copy_ns=copy_ns - both_copy,
        idle=_idle(gaps, trace.gap_causes.total),
        streams=streams,
        launches=int(calls.launches.sum()),
        launch=launch_figures,
        kernels=len(trace.kernels),
        kernel_time_ns=kernel_figures.time_ns,
        tensor_core_ns=kernel_figures.tensor_ns,
        tensor_core_unknown_ns=kernel_figures.unknown_ns,
        tensor_core_share=kernel_figures.tensor_ns / kernel_figures.time_ns
        if kernel_figures.time_ns
        else None,
        occupancy_share=kernel_figures.occupancy_share,
        synchronizations=int(plain_waits.sum()),
        synchronization_ns=int(calls.api.duration_ns[plain_waits].sum()),
        sync_points=sync_points,
        idle_places=idle_places,
        copies=like.copies if like else _copies(events.only(Category.COPY)),
        kernel_work=kernel_figures.work,
        flops=kernel_figures.flops,
        modelled_bytes=kernel_figures.modelled_bytes,
        modelled_share=kernel_figures.modelled_share,
        collectives=like.collectives if like else collective_totals(trace.called[0]),
    )


class _OfKernels(NamedTuple):
    """What the kernels are, whenever they ran."""

    time_ns: int
    tensor_ns: int
    unknown_ns: int
    occupancy_share: float | None
    work: tuple[KernelWork, ...]
    flops: int | None
    modelled_bytes: int | None
    modelled_share: float | None


def _of_kernels(trace: Trace, compute_ns: int) -> _OfKernels:
    events, run, kernels = trace.events, trace.run, trace.kernels
    tensor_ns, unknown_ns = _tensor_core_time(kernels)
    flops, modelled_bytes, modelled_share = _modelled(events, kernels)
    return _OfKernels(
        int(kernels.duration_ns.sum()),
        tensor_ns,
        unknown_ns,
        _occupancy(kernels, run),
        kernel_work(trace.limited, compute_ns),
        flops,
        modelled_bytes,
        modelled_share,
    )


def _of_same_kernels(like: Metrics, compute_ns: int) -> _OfKernels:
    """Take over the figures; groups of kernels share the union by their time."""
    ratio = compute_ns / like.compute_ns if like.compute_ns else 1.0
    return _OfKernels(
        like.kernel_time_ns,
        like.tensor_core_ns,
        like.tensor_core_unknown_ns,
        like.occupancy_share,
        tuple(
            structs.replace(work, time_ns=round(work.time_ns * ratio))
            for work in like.kernel_work
        ),
        like.flops,
        like.modelled_bytes,
        like.modelled_share,
    )


def _streams(gaps: list[StreamGaps]) -> tuple[StreamIdle, ...]:
    return tuple(
        StreamIdle(
            gap.device,
            gap.stream,
            gap.host_wait_ns,
            gap.kernel_wait_ns,
            gap.other_ns,
        )
        for gap in gaps
    )


def _span(on_gpu: Columns) -> int:
    return int(on_gpu.end_ns.max() - on_gpu.start_ns[0]) if len(on_gpu) else 0


def _idle(gaps: Gaps, causes: HostWait) -> IdleSplit:
    waits = gaps.host_wait_ns()
    length = gaps.length_ns
    # the profiler's part of a gap is nobody's wait, whichever kind the gap is
    kernel_wait = np.where(gaps.kernel_wait, length - gaps.profiler_ns, 0)
    host_wait_ns, kernel_wait_ns = int(waits.sum()), int(kernel_wait.sum())
    return IdleSplit(
        host_wait_ns=host_wait_ns,
        kernel_wait_ns=kernel_wait_ns,
        other_ns=int(length.sum()) - host_wait_ns - kernel_wait_ns,
        profiler_ns=int(gaps.profiler_ns.sum()),
        host_synchronize_ns=causes.synchronize_ns,
        host_launching_ns=causes.launching_ns,
        host_operator_ns=causes.operator_ns,
        host_api_ns=causes.api_ns,
        host_python_ns=causes.python_ns,
    )


def _tensor_core_time(kernels: Columns) -> tuple[int, int]:
    by_name = np.bincount(
        kernels.name, kernels.duration_ns, minlength=len(kernels.names)
    )
    tensor = unknown = 0.0
    for name, time_ns in zip(kernels.names, by_name, strict=True):
        if time_ns:
            uses_cores = uses_tensor_cores(name)
            tensor += time_ns if uses_cores else 0
            unknown += time_ns if uses_cores is None else 0
    return int(tensor), int(unknown)


def _occupancy(kernels: Columns, run: Run) -> float | None:
    known = kernels.where(kernels.shape != NONE)
    weighted = total = 0.0
    first, group = groups(known.device, known.shape)
    times = np.bincount(group, known.duration_ns, minlength=len(first))
    for row, time_ns in zip(first, times, strict=True):
        device = known.device[row]
        if not 0 <= device < len(run.gpus):
            continue
        ratio = occupancy_ratio(known.shapes[known.shape[row]], run.gpus[device])
        if ratio is not None:
            weighted += ratio * time_ns
            total += time_ns
    return float(weighted / total) if total else None


def _copies(copies: Columns) -> tuple[CopyTotal, ...]:
    totals = []
    for rows in rows_by(copies.name):
        name = copies.names[copies.name[rows[0]]]
        parts = _COPY.match(name)
        of_hip = _HIP_COPY.match(name)
        if of_hip:
            direction = f"{of_hip[1][0]}to{of_hip[2][0]}"
        else:
            direction = parts[1] if parts else name
        sides = {parts[2].lower(), parts[3].lower()} if parts else set()
        memory = next((kind for kind in ("pinned", "pageable") if kind in sides), "")
        time_ns = int(copies.duration_ns[rows].sum())
        sizes = copies.size_bytes[rows]
        # of millions of copies no sum of 64 bits can be trusted
        size_bytes = int(sizes.sum(dtype=float)) if (sizes != NONE).all() else None
        totals.append(
            CopyTotal(
                direction,
                memory,
                len(rows),
                time_ns,
                size_bytes,
                size_bytes / time_ns if size_bytes is not None and time_ns else None,
            )
        )
    totals.sort(key=lambda total: -total.time_ns)
    return tuple(totals)


def _modelled(
    events: Columns, kernels: Columns
) -> tuple[int | None, int | None, float | None]:
    """Add up the operators that put kernels on the GPU: FLOPs, bytes, their share."""
    operators = events.only(Category.OPERATOR)
    # of a collective no more may be told than what it moves
    has_shapes = np.array([*(bool(one.dims) for one in operators.operands), False])
    linked = operators.where(
        has_shapes[operators.operand]
        & (operators.external != NONE)
        & np.isin(operators.external, kernels.external)
    )
    if not len(linked):
        return None, None, None
    flops, size_bytes, modelled = 0, 0, []
    first, group = groups(linked.name, linked.operand)
    calls = np.bincount(group, minlength=len(first))
    for number, row in enumerate(first):
        name, operand = linked.name[row], linked.operand[row]
        work = model(linked.names[name], linked.operands[operand])
        if work is None:
            continue
        flops += int(calls[number]) * work.flops
        size_bytes += int(calls[number]) * (work.size_bytes or 0)
        modelled.append(number)
    if not modelled:
        return None, None, 0.0
    chosen = linked.external[np.isin(group, modelled)]
    covered = int(kernels.duration_ns[np.isin(kernels.external, chosen)].sum())
    return flops, size_bytes, covered / max(int(kernels.duration_ns.sum()), 1)
