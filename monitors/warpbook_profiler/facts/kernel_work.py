"""What limits the kernels themselves: memory, a compute unit, or their own smallness.

Where an operator's shapes were recorded, its arithmetic and least traffic are held
against the GPU's datasheet (a roofline for each kernel). Where they were not, names of
libraries and compilers tell, and of a kernel of somebody's own samples of its warps or
its launch do; it is "unknown" only where none says anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from warpbook_profiler.events.columns import NONE, Columns, groups
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.facts.kernel_launch import (
    Launched,
    computes_tiles,
    passes_once,
    slowness,
)
from warpbook_profiler.facts.kernels import communicates, only_moves, uses_tensor_cores
from warpbook_profiler.facts.library_names import has_few_rows, multiplies
from warpbook_profiler.facts.roofline import Called, Need, called, on_tensor
from warpbook_profiler.facts.solver_flops import SOLVERS
from warpbook_profiler.facts.traffic import FP4
from warpbook_profiler.model.ceilings import IN_8_BITS, Ceilings, ceilings, ridges
from warpbook_profiler.model.figures import KernelWork, Slowness, Wait
from warpbook_profiler.model.stalls import SELECTED, Stalls

MEMORY, TENSOR, TENSOR_8_BIT, TENSOR_4_BIT, FP32, FP64, SMALL, UNKNOWN = (
    "memory",
    "tensor cores",
    "tensor cores in 8 bits",
    "tensor cores in 4 bits",
    "FP32 cores",
    "FP64 units",
    "too small",
    "unknown",
)
#: of the roof, from which it is what limits an operator, whatever else may
_NEAR_ROOF = 0.3
#: of it, below which the roof is not what limits an operator
_FAR_FROM_ROOF = 0.25
#: blocks for each multiprocessor, below which a kernel leaves most of the chip idle
_SMALL_BLOCKS_PER_SM = 0.25
#: a launch and the gap after it take as long; what is longer has work of its own
_SHORT_NS = 10_000
_FP64 = re.compile(r"(?<![a-z])d(gemm|884)|dmma|f64|\bdouble\b", re.I)
_8_BIT = re.compile(r"(?<![a-z0-9])[sui]8|e4m3|e5m2|i8816|i16832|imma|qmma", re.I)
_OF_NUMBERS = {"8 bits": TENSOR_8_BIT, "half": TENSOR, "single": FP32, "double": FP64}
_FP32_GEMM = re.compile(r"ffma|simt|sgemm|f32f32_f32f32", re.I)

#: transforms: a few operations for each number of a pass, in whatever kernels
_LITTLE_ARITHMETIC = re.compile(r"aten::_fft_")
#: of the samples that wait, from which one kind of wait says what limits a kernel
_LEADS = 0.5
#: fewer samples say nothing of a kernel
_LEAST_SAMPLES = 100
_OF_REASONS: Mapping[Wait, str] = {
    "device memory": "long_scoreboard lg_throttle tex_throttle drain",
    "shared memory": "short_scoreboard mio_throttle",
    "barriers": "barrier membar",
    "arithmetic": "math_pipe_throttle gmma warpgroup_arrive",
    "latency": "wait branch_resolving no_instructions imc_miss dispatch_stall",
    "issue": "not_selected",
}


class Limit(NamedTuple):
    """What limits kernels, and how near they come to it."""

    bound: str
    #: of the datasheet's ceiling, and of the one that was measured here
    of_ceiling: float | None = None
    of_measured: float | None = None
    #: of kernels with too few blocks: how many there are, and how many had work
    multiprocessors: int | None = None
    multiprocessors_used: float | None = None
    #: where it is far from this limit
    far: Slowness | None = None
    #: told by samples of their warps alone
    is_sampled: bool = False


class LimitedKernels(NamedTuple):
    """Kernels that are alike in name, launch and operator."""

    launched: Launched
    calls: int
    time_ns: float
    limit: Limit


class _Sums:
    """All kernels with the same limit."""

    def __init__(self) -> None:
        self.time_ns, self.kernels, self.sampled = 0.0, 0, 0
        self.names: set[str] = set()
        self._least = [0.0, 0.0]
        self._known = [0.0, 0.0]
        self._multiprocessors: int | None = None
        self._used_by_time = 0.0

    def add(self, limited: Limit, name: str, time_ns: float, kernels: int) -> None:
        """Add kernels that are alike."""
        self.names.add(name)
        self.time_ns += time_ns
        self.kernels += kernels
        self.sampled += kernels if limited.is_sampled else 0
        for at, share in enumerate((limited.of_ceiling, limited.of_measured)):
            if share is not None:
                self._least[at] += share * time_ns
                self._known[at] += time_ns
        if limited.multiprocessors_used is not None:
            self._multiprocessors = limited.multiprocessors
            self._used_by_time += limited.multiprocessors_used * time_ns

    def multiprocessors(self) -> tuple[int | None, float | None]:
        """Give how many there are, and how many had work, where that is the limit."""
        if self._multiprocessors is None:
            return None, None
        return self._multiprocessors, self._used_by_time / self.time_ns

    def ratios(self) -> tuple[float | None, float | None]:
        """Time at the ceiling over time taken: the datasheet's, and the measured."""
        sheet, measured = (
            least / known if known else None
            for least, known in zip(self._least, self._known, strict=True)
        )
        return sheet, measured


def limited_kernels(
    events: Columns, kernels: Columns, run: Run
) -> tuple[LimitedKernels, ...]:
    """Return what limits the kernels; those that communicate are left out."""
    kernels = kernels.where(~communicates(events, kernels))
    operators, operator = called(events, kernels)
    gpus = dict(enumerate(run.gpus))
    roofs = [
        _under_roof(called_operator, gpus.get(called_operator.device))
        for called_operator in operators
    ]
    first, group = groups(kernels.name, kernels.shape, kernels.device, operator)
    times = np.bincount(group, kernels.duration_ns, minlength=len(first))
    counts = np.bincount(group, minlength=len(first))
    limited, waits = [], _waits_of(run.stalls)
    for row, time_ns, count in zip(first, times, counts, strict=True):
        by = operator[row]
        launched = Launched(
            kernels.names[kernels.name[row]],
            kernels.shapes[at] if (at := kernels.shape[row]) != NONE else None,
            gpus.get(int(kernels.device[row])),
            float(time_ns / count),
            waits.get(kernels.names[kernels.name[row]]),
        )
        operator_name = operators[by].name if by != NONE else ""
        limit = _limit(launched, roofs[by] if by != NONE else None)
        if limit.bound == UNKNOWN and _LITTLE_ARITHMETIC.match(operator_name):
            limit = Limit(MEMORY)
        limited.append(LimitedKernels(launched, int(count), float(time_ns), limit))
    return tuple(limited)


def kernel_work(
    limited: Iterable[LimitedKernels], compute_ns: int
) -> tuple[KernelWork, ...]:
    """Sort the kernels' time by what limits it, the longest first.

    Args:
        limited: the kernels.
        compute_ns: the union of them; the groups share it by their time.
    """
    limits: dict[tuple[str, Slowness | None], _Sums] = {}
    for kernels in limited:
        limit = kernels.limit
        sums = limits.setdefault((limit.bound, limit.far), _Sums())
        sums.add(limit, kernels.launched.name, kernels.time_ns, kernels.calls)
    total = sum(sums.time_ns for sums in limits.values())
    work = [
        KernelWork(
            bound,
            round(sums.time_ns * compute_ns / total),
            sums.kernels,
            *sums.ratios(),
            *sums.multiprocessors(),
            len(sums.names),
            far,
            sums.sampled,
        )
        for (bound, far), sums in limits.items()
        if total
    ]
    return tuple(sorted(work, key=lambda row: -row.time_ns))


class _UnderRoof(NamedTuple):
    """Where an operator's calls stand, all their kernels together."""

    #: memory, or the unit of the main kernel
    limit: Limit
    main: str
    has_formula: bool
    #: what its kernels eliminate with, where no name tells
    solves: bool


def _under_roof(operator: Called, gpu: GpuLimits | None) -> _UnderRoof | None:
    """Hold an operator's need against its time; None where either is not known."""
    need = operator.need
    if need is None or not operator.time_ns:
        return None
    sheet = None if gpu is None else ceilings(gpu.name)
    measured = None if gpu is None else gpu.reached
    # a chip that no datasheet here is of may have been measured
    best = sheet or measured
    if best is None:
        return _under_any_roof(operator, need)

    def share(of: Ceilings | None) -> float | None:
        least_ns = None if of is None else need.least_ns(of)
        return None if least_ns is None else min(least_ns / operator.time_ns, 1.0)

    memory_ns, compute_ns = need.memory_ns(best), need.compute_ns(best)
    bound = _unit(operator.on_tensor, need.dtype)
    if memory_ns is not None and compute_ns is not None and memory_ns > compute_ns:
        bound = MEMORY
    return _UnderRoof(
        Limit(bound, share(sheet), share(measured)),
        operator.main,
        need.flops is not None,
        operator.name in SOLVERS,
    )


def _under_any_roof(operator: Called, need: Need) -> _UnderRoof | None:
    """Hold arithmetic against traffic where no GPU's ceilings are known.

    What limits it is told only where it is the same on every GPU that is known.
    """
    if not need.flops or not need.size_bytes:
        return None
    # how products of FP32 were computed may not be told
    meets = ridges(need.dtype) or ridges("float")
    intensity = need.flops / need.size_bytes
    if meets is None or meets[0] <= intensity <= meets[1]:
        return None
    is_low = intensity < meets[0]
    bound = MEMORY if is_low else _unit(operator.on_tensor, need.dtype)
    return _UnderRoof(Limit(bound), operator.main, True, operator.name in SOLVERS)


def _unit(is_on_tensor: bool | None, dtype: str | None) -> str:
    if is_on_tensor is None:
        return UNKNOWN
    if dtype == "double":
        # its tensor cores, where a chip has them, are as fast as FP32
        return FP64
    if not is_on_tensor:
        return FP32
    if dtype == FP4:
        return TENSOR_4_BIT
    return TENSOR_8_BIT if dtype in IN_8_BITS else TENSOR


def _few(kernel: Launched) -> Limit | None:
    """Tell kernels that can't fill the GPU: short ones, and those of few blocks."""
    shape, gpu = kernel.shape, kernel.gpu
    sm_count = None if gpu is None else gpu.sm_count
    if shape is None or not sm_count:
        return None
    if shape.blocks >= _SMALL_BLOCKS_PER_SM * sm_count:
        return None
    if kernel.time_ns < _SHORT_NS:
        return Limit(SMALL)
    return Limit(
        # GPUs that differ are told apart
        f"too few blocks for {sm_count} multiprocessors",
        multiprocessors=sm_count,
        multiprocessors_used=shape.blocks,
    )


def _limit(kernel: Launched, roof: _UnderRoof | None) -> Limit:
    name, few = kernel.name, _few(kernel)
    if roof is None:
        return few or _alone(kernel)
    limit = roof.limit
    share = limit.of_measured if limit.of_ceiling is None else limit.of_ceiling
    is_near = share is not None and share >= _NEAR_ROOF
    if few is not None and not is_near:
        return few
    if share is not None and share < _FAR_FROM_ROOF:
        limit = limit._replace(far=slowness(kernel))
    if not is_near and not roof.has_formula:
        alone = _alone(kernel)
        return limit if limit.far and alone.bound == limit.bound else alone
    if limit.bound == MEMORY or name == roof.main:
        return limit
    # the roof is the main kernel's; what a helper beside it needs is not known
    if only_moves(name):
        return Limit(MEMORY)
    is_on_tensor = on_tensor(name, roof.solves)
    if is_on_tensor == on_tensor(roof.main, roof.solves):
        return limit
    if not roof.solves:
        return Limit(UNKNOWN)
    # products and panels of one elimination share its numbers, not its unit
    if limit.bound == FP64 or is_on_tensor:
        return limit if limit.bound == FP64 else _alone(kernel)
    return Limit(FP32, far=limit.far)


def _alone(kernel: Launched) -> Limit:
    """Tell what limits a kernel of which no operator says anything."""
    named = _by_name(kernel.name)
    if named != UNKNOWN:
        return Limit(named)
    if kernel.wait is not None:
        bound = MEMORY if kernel.wait == "device memory" else kernel.wait
        return Limit(bound, is_sampled=True)
    if passes_once(kernel):
        return Limit(MEMORY)
    return Limit(TENSOR if computes_tiles(kernel) else UNKNOWN)


def _by_name(name: str) -> str:
    if only_moves(name):
        return MEMORY
    numbers = multiplies(name)
    if has_few_rows(name):
        return MEMORY
    if numbers is not None:
        return _OF_NUMBERS[numbers]
    if re.search(r"gemm|conv", name, re.I) and _FP64.search(name):
        return FP64
    if _FP32_GEMM.search(name):
        return FP32
    if uses_tensor_cores(name):
        return TENSOR_8_BIT if _8_BIT.search(name) else TENSOR
    return UNKNOWN


def _waits_of(stalls: Stalls | None) -> dict[str, Wait]:
    """Return what most warps wait for, by kernels' names; others are left out."""
    if stalls is None:
        return {}
    told = ((kernel.name, _wait(kernel.reasons)) for kernel in stalls.kernels)
    return {name: wait for name, wait in told if wait is not None}


def _wait(reasons: Mapping[str, int]) -> Wait | None:
    waiting = {name: count for name, count in reasons.items() if name != SELECTED}
    total = sum(waiting.values())
    if total < _LEAST_SAMPLES:
        return None
    by_wait: Counter[Wait] = Counter(
        {
            wait: sum(waiting.get(reason, 0) for reason in of.split())
            for wait, of in _OF_REASONS.items()
        }
    )
    [(wait, count)] = by_wait.most_common(1)
    return wait if count >= _LEADS * total else None
