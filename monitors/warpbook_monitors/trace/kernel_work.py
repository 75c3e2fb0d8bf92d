"""What limits the kernels themselves: memory, a compute unit, or their own smallness.

Where an operator's shapes were recorded, its arithmetic and least traffic are held
against the GPU's datasheet (a roofline for each kernel). Where they were not, only
what the launch and torch's own kernels tell is used; a kernel of somebody's own is
"unknown" then.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from warpbook_monitors.trace.ceilings import Ceilings, ceilings
from warpbook_monitors.trace.columns import (
    NONE,
    Category,
    Columns,
    Int64s,
    KernelShape,
    Operands,
    groups,
)
from warpbook_monitors.trace.figures import KernelWork
from warpbook_monitors.trace.flops import least_bytes, model
from warpbook_monitors.trace.kernels import is_communication, uses_tensor_cores
from warpbook_monitors.trace.run import GpuLimits, Run

MEMORY, TENSOR, FP32, FP64, SMALL, UNKNOWN = (
    "memory",
    "tensor cores",
    "FP32 cores",
    "FP64 units",
    "too small",
    "unknown",
)
#: of the memory's bandwidth, from which an operator without a formula is its traffic
_MOVING_SHARE = 0.3
#: blocks for each multiprocessor, below which a kernel leaves most of the chip idle
_SMALL_BLOCKS_PER_SM = 0.25
_FP64 = re.compile(r"dgemm|dmma|f64|double", re.I)
_FP32_GEMM = re.compile(r"ffma|simt|sgemm|f32f32_f32f32", re.I)
_POINTWISE = re.compile(r"at::native::|triton_(poi|red|per)_|cub::|thrust::")


class _Modelled(NamedTuple):
    bound: str
    #: at the ceiling
    least_ns: float | None


def kernel_work(
    events: Columns, kernels: Columns, run: Run, compute_ns: int
) -> tuple[KernelWork, ...]:
    """Sort the kernels' time by what limits it, the longest first.

    Args:
        compute_ns: the union of these kernels; the groups share it by their time.
    """
    operator, operand = _operands_of(events, kernels)
    first, group = groups(
        kernels.name, kernels.shape, kernels.device, operator, operand
    )
    times = np.bincount(group, kernels.duration_ns, minlength=len(first))
    counts = np.bincount(group, minlength=len(first))
    limits: dict[str, list[float]] = {}
    for number, row in enumerate(first):
        name, shape, device = kernels.name[row], kernels.shape[row], kernels.device[row]
        op, called = operator[row], operand[row]
        if is_communication(kernels.names[name]):
            continue
        gpu = run.gpus[device] if 0 <= device < len(run.gpus) else None
        found = _limit(
            kernels.names[name],
            kernels.shapes[shape] if shape != NONE else None,
            gpu,
            (events.names[op], events.operands[called]) if called != NONE else None,
            times[number] / counts[number],
        )
        time_ns, count, least_ns, known_ns = limits.setdefault(
            found.bound, [0.0, 0, 0.0, 0.0]
        )
        known = found.least_ns is not None
        limits[found.bound] = [
            time_ns + times[number],
            count + counts[number],
            least_ns + (found.least_ns or 0.0) * counts[number],
            known_ns + (times[number] if known else 0.0),
        ]
    total = sum(time_ns for time_ns, *_ in limits.values())
    work = [
        KernelWork(
            bound,
            round(time_ns * compute_ns / total),
            int(count),
            float(least_ns / known_ns) if known_ns else None,
        )
        for bound, (time_ns, count, least_ns, known_ns) in limits.items()
        if total
    ]
    return tuple(sorted(work, key=lambda each: -each.time_ns))


def _operands_of(events: Columns, kernels: Columns) -> tuple[Int64s, Int64s]:
    """Give for each kernel the name and the operands of its operator, or NONE."""
    operators = events.where(
        events.is_in(Category.OPERATOR)
        & (events.operand != NONE)
        & (events.external != NONE)
    )
    nothing = np.full(len(kernels), NONE, np.int64)
    if not len(operators):
        return nothing, nothing
    order = np.argsort(operators.external, kind="stable")
    known = operators.external[order]
    place = np.searchsorted(known, kernels.external)
    row = order[np.minimum(place, len(order) - 1)]
    same = operators.external[row] == kernels.external
    return (
        np.where(same, operators.name[row], NONE).astype(np.int64),
        np.where(same, operators.operand[row], NONE).astype(np.int64),
    )


def _limit(
    name: str,
    shape: KernelShape | None,
    gpu: GpuLimits | None,
    called: tuple[str, Operands] | None,
    time_ns: float,
) -> _Modelled:
    sheet = ceilings(gpu.name) if gpu is not None else None
    if called is not None and sheet is not None:
        found = _by_roofline(name, called, sheet, time_ns)
        if found is not None:
            return found
    if shape is not None and gpu is not None and gpu.sm_count:
        if shape.blocks < _SMALL_BLOCKS_PER_SM * gpu.sm_count:
            return _Modelled(SMALL, None)
    return _Modelled(_by_name(name), None)


def _by_roofline(
    name: str, called: tuple[str, Operands], sheet: Ceilings, time_ns: float
) -> _Modelled | None:
    operator, operands = called
    work = model(operator, operands)
    if work is None:
        moved = least_bytes(operands)
        at_least_ns = moved / sheet.memory_bytes_per_s * 1e9 if moved else 0.0
        if at_least_ns >= _MOVING_SHARE * time_ns and not uses_tensor_cores(name):
            return _Modelled(MEMORY, min(at_least_ns, time_ns))
        return None
    on_tensor = bool(uses_tensor_cores(name))
    dtype = work.dtype
    peak = sheet.flops_per_s.get(dtype, math.inf)
    if dtype == "float" and on_tensor:
        # TF32 does half of what bf16 does
        peak = sheet.flops_per_s["c10::BFloat16"] / 2
    compute_ns = work.flops / peak * 1e9
    memory_ns = (work.size_bytes or 0) / sheet.memory_bytes_per_s * 1e9
    if memory_ns > compute_ns:
        return _Modelled(MEMORY, min(memory_ns, time_ns))
    unit = TENSOR if on_tensor else FP64 if dtype == "double" else FP32
    return _Modelled(unit, min(compute_ns, time_ns))


def _by_name(name: str) -> str:
    if _FP32_GEMM.search(name):
        return FP32
    if uses_tensor_cores(name):
        return TENSOR
    if re.search(r"gemm|conv", name, re.I) and _FP64.search(name):
        return FP64
    # torch's own pointwise and reducing kernels do little with each number they read
    return MEMORY if _POINTWISE.search(name) else UNKNOWN
