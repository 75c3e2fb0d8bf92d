"""Where each operator stands under the roofs of its GPU.

Only operators whose operands were recorded and whose work can be modelled are here.
An operator's time is that of its own kernels, so what it is called within has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from warpbook_monitors.trace.ceilings import Ceilings, ceilings
from warpbook_monitors.trace.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    Operands,
    groups,
)
from warpbook_monitors.trace.flops import model
from warpbook_monitors.trace.kernels import uses_tensor_cores
from warpbook_monitors.trace.pictures import Roof, RooflinePoint
from warpbook_monitors.trace.run import GpuLimits, Run
from warpbook_monitors.trace.traffic import least_bytes

#: the longest; a picture of more can't be read
MAX_POINTS = 40
_MAX_TEXT = 120
#: how CUPTI names a copy within one GPU
_WITHIN = "Memcpy DtoD"


def roofs(events: Columns, run: Run) -> tuple[Roof, ...]:
    """Give the ceilings of each kind of GPU that computed."""
    used = np.unique(events.device[events.is_in(Category.KERNEL, Category.COPY)])
    kinds = {gpu.name: gpu for gpu in (_gpu(run, int(at)) for at in used) if gpu}
    return tuple(
        Roof(name, basis, of.memory_bytes_per_s, dict(of.flops_per_s))
        for name, gpu in kinds.items()
        for basis, of in _bases(gpu)
        if of is not None
    )


def _bases(
    gpu: GpuLimits,
) -> Iterator[tuple[Literal["datasheet", "measured"], Ceilings | None]]:
    yield "datasheet", ceilings(gpu.name)
    yield "measured", gpu.measured


def roofline(events: Columns, run: Run) -> tuple[RooflinePoint, ...]:
    """Give a point for each operator and its operands, the longest first."""
    kernels = events.only(Category.KERNEL)
    copies = events.where(_within_gpu(events))
    total_ns = int(kernels.duration_ns.sum()) + int(copies.duration_ns.sum())
    points = [
        *_of_operators(events, kernels, run, total_ns),
        *_of_copies(copies, run, total_ns),
    ]
    points.sort(key=lambda each: -each.time_ms)
    return tuple(points[:MAX_POINTS])


def _gpu(run: Run, device: int) -> GpuLimits | None:
    return run.gpus[device] if 0 <= device < len(run.gpus) else None


def _of_operators(
    events: Columns, kernels: Columns, run: Run, total_ns: int
) -> Iterator[RooflinePoint]:
    operators = events.where(
        events.is_in(Category.OPERATOR)
        & (events.operand != NONE)
        & (events.external != NONE)
    )
    row = _rows_of(operators, kernels)
    kernels, row = kernels.where(row != NONE), row[row != NONE]
    first, group = groups(kernels.device, operators.name[row], operators.operand[row])
    times = np.bincount(group, kernels.duration_ns, minlength=len(first))
    # each call once, however many kernels it has
    calls = np.bincount(group[np.unique(row, return_index=True)[1]])
    longest = _longest_kernels(kernels, group)
    for at, one in enumerate(first):
        gpu = _gpu(run, int(kernels.device[one]))
        if gpu is None:
            continue
        name = operators.names[operators.name[row[one]]]
        operands = operators.operands[operators.operand[row[one]]]
        found = _needs(name, operands, longest[at])
        if found is None:
            continue
        flops, size_bytes, dtype = found
        yield _point(
            gpu,
            (name, _text(operands)),
            int(calls[at]),
            (float(times[at]), total_ns),
            None if flops is None else flops * int(calls[at]),
            None if size_bytes is None else size_bytes * int(calls[at]),
            dtype,
        )


def _rows_of(operators: Columns, kernels: Columns) -> Int64s:
    """Give for each kernel the row of the operator that launched it, or NONE."""
    if not len(operators):
        return np.full(len(kernels), NONE, np.int64)
    order = np.argsort(operators.external, kind="stable")
    known = operators.external[order]
    place = np.searchsorted(known, kernels.external)
    row = order[np.minimum(place, len(order) - 1)]
    return np.where(operators.external[row] == kernels.external, row, NONE)


def _longest_kernels(kernels: Columns, group: Int64s) -> list[str]:
    """Name for each group the kernel with most of its time."""
    first, pair = groups(group, kernels.name)
    times = np.bincount(pair, kernels.duration_ns, minlength=len(first))
    found: dict[int, str] = {}
    for at in np.argsort(times, kind="stable"):
        found[int(group[first[at]])] = kernels.names[kernels.name[first[at]]]
    return [found[at] for at in range(len(found))]


def _needs(
    name: str, operands: Operands, kernel: str
) -> tuple[int | None, int | None, str | None] | None:
    """Give FLOPs, least bytes and the ceiling's name of one call, as far as known."""
    work = model(name, operands)
    if work is None:
        moved = least_bytes(name, operands)
        return None if moved is None else (None, moved, None)
    dtype: str | None = work.dtype
    if dtype == "float":
        on_tensor = uses_tensor_cores(kernel)
        dtype = None if on_tensor is None else "tf32" if on_tensor else "float"
    return work.flops, work.size_bytes, dtype


def _within_gpu(events: Columns) -> Bools:
    named = [name.startswith(_WITHIN) for name in events.names]
    is_within: Bools = np.array(named or [False], np.bool_)[events.name]
    is_within &= events.is_in(Category.COPY)
    is_within &= events.size_bytes != NONE
    return is_within


def _of_copies(copies: Columns, run: Run, total_ns: int) -> Iterator[RooflinePoint]:
    for device in np.unique(copies.device):
        gpu = _gpu(run, int(device))
        mine = copies.where(copies.device == device)
        if gpu is not None:
            # it is read and written
            size_bytes = 2 * int(mine.size_bytes.sum())
            time_ns = float(mine.duration_ns.sum())
            yield _point(
                gpu,
                (_WITHIN, ""),
                len(mine),
                (time_ns, total_ns),
                None,
                size_bytes,
                None,
            )


def _point(
    gpu: GpuLimits,
    named: tuple[str, str],
    calls: int,
    times_ns: tuple[float, int],
    flops: int | None,
    size_bytes: int | None,
    dtype: str | None,
) -> RooflinePoint:
    time_ns, total_ns = times_ns

    def share(of: Ceilings | None) -> float | None:
        least_ns = None if of is None else _least_ns(of, flops, size_bytes, dtype)
        return None if least_ns is None or not time_ns else least_ns / time_ns

    return RooflinePoint(
        *named,
        gpu.name,
        dtype,
        calls,
        time_ns / 1e6,
        time_ns / total_ns if total_ns else 0.0,
        flops,
        size_bytes,
        share(ceilings(gpu.name)),
        share(gpu.measured),
    )


def _least_ns(
    of: Ceilings, flops: int | None, size_bytes: int | None, dtype: str | None
) -> float | None:
    """Give the least time under a roof; None where a part of the need is not known."""
    if size_bytes is None:
        return None
    memory_ns = size_bytes / of.memory_bytes_per_s * 1e9
    if flops is None:
        return memory_ns
    peak = of.flops_per_s.get(dtype or "")
    return None if peak is None else max(memory_ns, flops / peak * 1e9)


def _text(operands: Operands) -> str:
    text = ", ".join(_sizes(operands.dims))
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _sizes(dims: Iterable[tuple[int, ...]]) -> Iterator[str]:
    for each in dims:
        if each:
            yield "×".join(map(str, each))
