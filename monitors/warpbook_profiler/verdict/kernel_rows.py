"""The kernels of a window by their names: calls, times, launches and limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from warpbook_profiler.events.columns import NONE, Columns, groups
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.kernel_work import LimitedKernels
from warpbook_profiler.facts.kernels import occupancy_ratio
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import KernelRow
from warpbook_profiler.verdict.totals import totals


def kernel_rows(trace: Trace) -> tuple[KernelRow, ...]:
    """Return the kernels by name, the longest first."""
    kernels = trace.kernels
    total_ns = int(kernels.duration_ns.sum())
    launches, of_roof = _launches(kernels, trace.run), _of_roofs(trace.limited)
    return tuple(
        KernelRow(
            name=total.name,
            calls=total.calls,
            time_ns=total.time_ns,
            share_ratio=total.time_ns / total_ns if total_ns else 0.0,
            longest_ns=total.longest_ns,
            lines=trace.run.kernel_lines.get(total.name, ""),
            **launches.get(total.name, _Launches())._asdict(),
            of_roof=of_roof.get(total.name),
            parts=trace.parts.get(total.name, ()),
        )
        for total in totals(kernels, kernels.duration_ns)
    )


class _Launches(NamedTuple):
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    other_shapes: int = 0
    occupancy: float | None = None


def _launches(kernels: Columns, run: Run) -> dict[str, _Launches]:
    """Return how the kernels of each name were launched, where that was recorded."""
    known = kernels.where(kernels.shape != NONE)
    first, group = groups(known.name, known.shape, known.device)
    times = np.bincount(group, known.duration_ns, minlength=len(first))
    gpus = dict(enumerate(run.gpus))
    of_name: dict[str, list[tuple[float, int, float | None]]] = {}
    for at, time_ns in zip(first, times, strict=True):
        number, gpu = int(known.shape[at]), gpus.get(int(known.device[at]))
        ratio = None if gpu is None else occupancy_ratio(known.shapes[number], gpu)
        launched = of_name.setdefault(known.names[known.name[at]], [])
        launched.append((float(time_ns), number, ratio))
    return {
        name: _Launches(
            known.shapes[max(launched, key=_time_and_shape)[1]].grid,
            known.shapes[max(launched, key=_time_and_shape)[1]].block,
            len({number for _, number, _ in launched}) - 1,
            _mean([(time_ns, ratio) for time_ns, _, ratio in launched]),
        )
        for name, launched in of_name.items()
    }


def _time_and_shape(launched: tuple[float, int, float | None]) -> tuple[float, int]:
    # a device that the trace does not describe has no occupancy to compare
    return launched[:2]


def _of_roofs(limited: Iterable[LimitedKernels]) -> dict[str, float | None]:
    """Return how near the kernels of each name come to their roof."""
    ratios: dict[str, list[tuple[float, float | None]]] = {}
    for kernels in limited:
        limit = kernels.limit
        ratio = limit.of_measured if limit.of_ceiling is None else limit.of_ceiling
        ratios.setdefault(kernels.launched.name, []).append((kernels.time_ns, ratio))
    return {name: _mean(of_name) for name, of_name in ratios.items()}


def _mean(ratios: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the mean of what is known, by the time of each."""
    known = [(time_ns, ratio) for time_ns, ratio in ratios if ratio is not None]
    total_ns = sum(time_ns for time_ns, _ in known)
    if not total_ns:
        return None
    return sum(time_ns * ratio for time_ns, ratio in known) / total_ns
