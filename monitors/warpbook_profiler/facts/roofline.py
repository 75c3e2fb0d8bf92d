"""Where each operator stands under the roofs of its GPU.

Only operators whose operands were recorded and whose work can be modelled are here.
An operator's time is that of its own kernels, so what it is called within has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    Operands,
    distinct,
    groups,
)
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.facts.flops import model
from warpbook_profiler.facts.kernels import is_sparse, only_moves, uses_tensor_cores
from warpbook_profiler.facts.solver_flops import SOLVERS
from warpbook_profiler.facts.traffic import least_bytes
from warpbook_profiler.model.ceilings import Ceilings, ceilings
from warpbook_profiler.model.pictures import Roof, RooflinePoint

#: the longest; a picture of more can't be read
MAX_POINTS = 40
_MAX_TEXT = 120
#: how CUPTI names a copy within one GPU
_WITHIN = "Memcpy DtoD"


def roofs(events: Columns, run: Run) -> tuple[Roof, ...]:
    """Give the ceilings of each kind of GPU that computed."""
    used = distinct(events.device[events.is_in(Category.KERNEL, Category.COPY)])
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
    yield "measured", gpu.reached


def roofline(
    events: Columns, run: Run, operators: list[Called]
) -> tuple[RooflinePoint, ...]:
    """Give a point for each operator and its operands, the longest first."""
    kernels = events.only(Category.KERNEL)
    copies = events.where(_within_gpu(events))
    total_ns = int(kernels.duration_ns.sum()) + int(copies.duration_ns.sum())
    points = [
        *_of_operators(operators, run, total_ns),
        *_of_copies(copies, run, total_ns),
    ]
    points.sort(key=lambda point: -point.time_ns)
    return tuple(points[:MAX_POINTS])


def _gpu(run: Run, device: int) -> GpuLimits | None:
    return run.gpus[device] if 0 <= device < len(run.gpus) else None


class Called(NamedTuple):
    """Calls of one operator with the same operands, and all their kernels.

    Those that computed on the tensor cores are apart from those that did not.
    """

    name: str
    operands: Operands
    device: int
    calls: int
    time_ns: float
    #: the kernel that does what the operator is called for
    main: str

    @property
    def need(self) -> Need | None:
        """What all calls have to do at least; None where it can't be modelled."""
        if is_sparse(self.main):
            return None  # how many elements are stored is in no trace
        work = model(self.name, self.operands)
        if work is None:
            moved = least_bytes(self.name, self.operands)
            return None if moved is None else Need(None, moved * self.calls, None)
        dtype: str | None = work.dtype
        if dtype == "float":
            on_tensor = self.on_tensor
            dtype = None if on_tensor is None else "tf32" if on_tensor else "float"
        return Need(
            work.flops * self.calls,
            None if work.size_bytes is None else work.size_bytes * self.calls,
            dtype,
        )

    @property
    def on_tensor(self) -> bool | None:
        """Whether they computed on the tensor cores; None where no name tells.

        Solvers' own kernels eliminate on plain cores.
        """
        return on_tensor(self.main, self.name in SOLVERS)


def on_tensor(kernel: str, solves: bool) -> bool | None:
    """Tell whether a kernel computes on the tensor cores; None where it is untold."""
    told = uses_tensor_cores(kernel)
    return False if told is None and solves else told


class Need(NamedTuple):
    """Arithmetic and least traffic, as far as they are known."""

    flops: int | None
    size_bytes: int | None
    #: in `Ceilings.flops_per_s`
    dtype: str | None

    def memory_ns(self, of: Ceilings) -> float | None:
        """Give the least time of the traffic."""
        if self.size_bytes is None:
            return None
        return self.size_bytes / of.memory_bytes_per_s * 1e9

    def compute_ns(self, of: Ceilings) -> float | None:
        """Give the least time of the arithmetic; none is modelled takes none."""
        if self.flops is None:
            return 0.0
        peak = of.flops_per_s.get(self.dtype or "")
        return None if peak is None else self.flops / peak * 1e9

    def least_ns(self, of: Ceilings) -> float | None:
        """Give the least time; None where a part of the need is not known."""
        memory_ns, compute_ns = self.memory_ns(of), self.compute_ns(of)
        if memory_ns is None or compute_ns is None:
            return None
        return max(memory_ns, compute_ns)


def called(events: Columns, kernels: Columns) -> tuple[list[Called], Int64s]:
    """Group kernels by what called them.

    Returns:
        the groups, and for each kernel the position of its own, or NONE.
    """
    operators = events.only(Category.OPERATOR)
    operators = operators.where(
        (operators.operand != NONE) & (operators.external != NONE)
    )
    row = _rows_of(operators, kernels)
    place = np.full(len(kernels), NONE, np.int64)
    is_linked = row != NONE
    kernels, row = kernels.where(is_linked), row[is_linked]
    is_tensor = [bool(uses_tensor_cores(name)) for name in kernels.names] or [False]
    on_tensor = np.isin(row, row[np.array(is_tensor)[kernels.name]]).astype(np.int64)
    first, group = groups(
        kernels.device, operators.name[row], operators.operand[row], on_tensor
    )
    place[is_linked] = group
    times = np.bincount(group, kernels.duration_ns, minlength=len(first))
    # each call once, however many kernels it has
    firsts = group[np.unique(row, return_index=True)[1]]
    # in a hostile file one call has kernels in two groups
    calls = np.maximum(np.bincount(firsts, minlength=len(first)), 1)
    main = _main_kernels(kernels, group)
    return [
        Called(
            operators.names[operators.name[row[one]]],
            operators.operands[operators.operand[row[one]]],
            int(kernels.device[one]),
            int(calls[at]),
            float(times[at]),
            main[at],
        )
        for at, one in enumerate(first)
    ], place


def _of_operators(
    operators: list[Called], run: Run, total_ns: int
) -> Iterator[RooflinePoint]:
    for operator in operators:
        gpu, need = _gpu(run, operator.device), operator.need
        if gpu is not None and need is not None:
            named = operator.name, _text(operator.operands)
            yield _point(gpu, named, operator.calls, (operator.time_ns, total_ns), need)


def _rows_of(operators: Columns, kernels: Columns) -> Int64s:
    """Give for each kernel the row of the operator that launched it, or NONE."""
    if not len(operators):
        return np.full(len(kernels), NONE, np.int64)
    order = np.argsort(operators.external, kind="stable")
    known = operators.external[order]
    place = np.searchsorted(known, kernels.external)
    row = order[np.minimum(place, len(order) - 1)]
    return np.where(operators.external[row] == kernels.external, row, NONE)


def _main_kernels(kernels: Columns, group: Int64s) -> list[str]:
    """Name for each group the kernel that is no helper: the longest of those."""
    first, pair = groups(group, kernels.name)
    times = np.bincount(pair, kernels.duration_ns, minlength=len(first))
    by_name: dict[int, tuple[bool, bool, float, str]] = {}
    for at, time_ns in zip(first, times, strict=True):
        name = kernels.names[kernels.name[at]]
        rank = bool(uses_tensor_cores(name)), not only_moves(name), float(time_ns), name
        number = int(group[at])
        by_name[number] = max(by_name.get(number, rank), rank)
    return [by_name[at][3] for at in range(len(by_name))]


def _within_gpu(events: Columns) -> Bools:
    named = [name.startswith(_WITHIN) for name in events.names]
    is_within: Bools = np.array(named or [False], np.bool_)[events.name]
    is_within &= events.is_in(Category.COPY)
    is_within &= events.size_bytes != NONE
    return is_within


def _of_copies(copies: Columns, run: Run, total_ns: int) -> Iterator[RooflinePoint]:
    for device in distinct(copies.device):
        gpu = _gpu(run, int(device))
        mine = copies.where(copies.device == device)
        if gpu is not None:
            # it is read and written
            size_bytes = 2 * int(mine.size_bytes.sum(dtype=float))
            times_ns = float(mine.duration_ns.sum()), total_ns
            need = Need(None, size_bytes, None)
            yield _point(gpu, (_WITHIN, ""), len(mine), times_ns, need)


def _point(
    gpu: GpuLimits,
    named: tuple[str, str],
    calls: int,
    times_ns: tuple[float, int],
    need: Need,
) -> RooflinePoint:
    time_ns, total_ns = times_ns

    def share(of: Ceilings | None) -> float | None:
        least_ns = None if of is None else need.least_ns(of)
        return None if least_ns is None or not time_ns else least_ns / time_ns

    return RooflinePoint(
        *named,
        gpu.name,
        need.dtype,
        calls,
        round(time_ns),
        time_ns / total_ns if total_ns else 0.0,
        need.flops,
        need.size_bytes,
        share(ceilings(gpu.name)),
        share(gpu.reached),
    )


def _text(operands: Operands) -> str:
    text = ", ".join(_sizes(operands.dims))
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _sizes(dims: Iterable[tuple[int, ...]]) -> Iterator[str]:
    for dim in dims:
        if dim:
            yield "×".join(map(str, dim))
