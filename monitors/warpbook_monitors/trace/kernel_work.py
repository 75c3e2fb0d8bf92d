"""What limits the kernels themselves: memory, a compute unit, or their own smallness.

Where an operator's shapes were recorded, its arithmetic and least traffic are held
against the GPU's datasheet (a roofline for each kernel). Where they were not, only
what the launch and torch's own kernels tell is used; a kernel of somebody's own is
"unknown" then.
"""

from __future__ import annotations

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
from warpbook_monitors.trace.flops import model
from warpbook_monitors.trace.kernels import is_communication, uses_tensor_cores
from warpbook_monitors.trace.run import GpuLimits, Run
from warpbook_monitors.trace.traffic import least_bytes

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
    #: at the datasheet's ceiling, and at the one that was measured here
    least_ns: float | None
    measured_ns: float | None = None


class _Sums:
    """All kernels with the same limit."""

    def __init__(self) -> None:
        self.time_ns, self.kernels = 0.0, 0
        self._least = [0.0, 0.0]
        self._known = [0.0, 0.0]

    def add(self, found: _Modelled, time_ns: float, kernels: int) -> None:
        """Add kernels that are alike."""
        self.time_ns += time_ns
        self.kernels += kernels
        for at, least_ns in enumerate((found.least_ns, found.measured_ns)):
            if least_ns is not None:
                self._least[at] += least_ns * kernels
                self._known[at] += time_ns

    def ratios(self) -> list[float | None]:
        """Time at the ceiling over time taken: the datasheet's, and the measured."""
        return [
            least / known if known else None
            for least, known in zip(self._least, self._known, strict=True)
        ]


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
    limits: dict[str, _Sums] = {}
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
            float(times[number] / counts[number]),
        )
        limits.setdefault(found.bound, _Sums()).add(
            found, float(times[number]), int(counts[number])
        )
    total = sum(sums.time_ns for sums in limits.values())
    work = [
        KernelWork(
            bound,
            round(sums.time_ns * compute_ns / total),
            sums.kernels,
            *sums.ratios(),
        )
        for bound, sums in limits.items()
        if total
    ]
    return tuple(sorted(work, key=lambda each: -each.time_ns))


def _operands_of(events: Columns, kernels: Columns) -> tuple[Int64s, Int64s]:
    """Give for each kernel the name and the operands of its operator, or NONE."""
    operators = events.only(Category.OPERATOR)
    operators = operators.where(
        (operators.operand != NONE) & (operators.external != NONE)
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


class _Need(NamedTuple):
    """What a kernel's operator has to do at least."""

    size_bytes: int
    flops: int = 0
    #: in `Ceilings.flops_per_s`, and the unit's name
    peak: str = ""
    unit: str = ""

    def memory_ns(self, best: Ceilings) -> float:
        """Time that its traffic takes at the ceiling."""
        return self.size_bytes / best.memory_bytes_per_s * 1e9

    def compute_ns(self, best: Ceilings) -> float | None:
        """Time that its arithmetic takes; None where the ceiling is not known."""
        peak = best.flops_per_s.get(self.peak)
        return None if peak is None else self.flops / peak * 1e9


def _limit(
    name: str,
    shape: KernelShape | None,
    gpu: GpuLimits | None,
    called: tuple[str, Operands] | None,
    time_ns: float,
) -> _Modelled:
    if called is not None and gpu is not None:
        found = _by_roofline(name, called, gpu, time_ns)
        if found is not None:
            return found
    if shape is not None and gpu is not None and gpu.sm_count:
        if shape.blocks < _SMALL_BLOCKS_PER_SM * gpu.sm_count:
            return _Modelled(SMALL, None)
    return _Modelled(_by_name(name), None)


def _by_roofline(
    name: str, called: tuple[str, Operands], gpu: GpuLimits, time_ns: float
) -> _Modelled | None:
    sheet, measured = ceilings(gpu.name), gpu.measured
    # a chip that no datasheet here is of may have been measured
    best = sheet or measured
    need = _need(name, called)
    if best is None or need is None:
        return None
    in_memory_ns = need.memory_ns(best)
    if not need.unit and (
        in_memory_ns < _MOVING_SHARE * time_ns or uses_tensor_cores(name)
    ):
        return None
    moves = in_memory_ns > (need.compute_ns(best) or 0.0)
    least = [
        None if of is None else need.memory_ns(of) if moves else need.compute_ns(of)
        for of in (sheet, measured)
    ]
    return _Modelled(
        MEMORY if moves else need.unit,
        *(None if each is None else min(each, time_ns) for each in least),
    )


def _need(name: str, called: tuple[str, Operands]) -> _Need | None:
    operator, operands = called
    work = model(operator, operands)
    if work is None:
        moved = least_bytes(operator, operands)
        return _Need(moved) if moved else None
    on_tensor = bool(uses_tensor_cores(name))
    return _Need(
        work.size_bytes or 0,
        work.flops,
        "tf32" if work.dtype == "float" and on_tensor else work.dtype,
        TENSOR if on_tensor else FP64 if work.dtype == "double" else FP32,
    )


def _by_name(name: str) -> str:
    if _FP32_GEMM.search(name):
        return FP32
    if uses_tensor_cores(name):
        return TENSOR
    if re.search(r"gemm|conv", name, re.I) and _FP64.search(name):
        return FP64
    # torch's own pointwise and reducing kernels do little with each number they read
    return MEMORY if _POINTWISE.search(name) else UNKNOWN
