"""What limits each kernel that Nsight Compute measured: a table, and a line on each.

The bounds are those of Nsight Compute's own rule "Speed Of Light": above 60 % of a peak
a unit is busy, above 80 % it is the limit; with both below 60 % neither is, and a
kernel waits: for too few warps, or for the latency of what it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.files.nsight.ncu import MOST_RATIO, Launch
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.report_view import ReportTable, TableCell

BUSY, LIMIT = 0.6, 0.8
#: warps of the multiprocessors, and waves of blocks, below which there are too few
_FEW_WARPS, _FEW_WAVES = 0.3, 1.0
#: kernels that are told
MAX_ROWS = 50
_UNITS = {"dram": "device memory", "l2": "the L2 cache", "l1": "the L1 cache"}


class KernelLimit(Struct, frozen=True):
    """All launches of one kernel; ratios are means of what was measured."""

    name: str
    launches: int
    #: None where no launch has it
    time_ns: float | None
    compute: float | None
    memory: float | None
    dram: float | None
    occupancy: float | None
    waves: float | None
    #: what limits it, in one line
    limiter: str


def kernel_limits(launches: Sequence[Launch]) -> tuple[KernelLimit, ...]:
    """Put launches of one name together, the longest first."""
    by_name: dict[str, list[Launch]] = {}
    for launch in launches:
        by_name.setdefault(launch.name, []).append(launch)
    limits = [_limit(name, own) for name, own in by_name.items()]
    return tuple(sorted(limits, key=lambda one: -(one.time_ns or 0.0)))


def heading(limits: Sequence[KernelLimit]) -> str:
    """Say in one line how many there are, and what the longest one is limited by."""
    count = f"{len(limits):,} kernel{'s' if len(limits) != 1 else ''}"
    launches = sum(one.launches for one in limits)
    first = limits[0]
    share = ""
    total_ns = sum(one.time_ns or 0.0 for one in limits)
    if first.time_ns and total_ns and all(one.time_ns is not None for one in limits):
        share = f", {units.share(first.time_ns / total_ns)} of their time"
    return (
        f"{count} of Nsight Compute, {launches:,} launches. The longest{share}: "
        f"{first.limiter}"
    )


def limit_table(limits: Sequence[KernelLimit]) -> ReportTable:
    """List the kernels with their shares of peaks."""
    longest_ns = max((one.time_ns or 0.0 for one in limits), default=0.0)
    return ReportTable(
        "Kernels by Nsight Compute",
        "Kernel",
        ("Launches", "Time", "Compute", "Memory", "DRAM", "Occupancy", "Waves"),
        tuple(
            (
                cells.words(one.name),
                cells.count(one.launches),
                cells.time_ns(one.time_ns, longest_ns),
                *(cells.ratio(of) for of in (one.compute, one.memory, one.dram)),
                cells.ratio(one.occupancy),
                cells.UNKNOWN_CELL
                if one.waves is None
                else TableCell(f"{one.waves:,.2f}", one.waves),
            )
            for one in limits
        ),
    )


def limiter_lines(limits: Sequence[KernelLimit]) -> tuple[str, ...]:
    """Write a line on each kernel's limiter."""
    lines = tuple(f"{one.name}: {one.limiter}" for one in limits[:MAX_ROWS])
    more = len(limits) - MAX_ROWS
    return (*lines, f"({more:,} more)") if more > 0 else lines


def _limit(name: str, launches: Sequence[Launch]) -> KernelLimit:
    durations = [launch.get("duration") for launch in launches]
    time_ns = None
    if None not in durations:
        time_ns = sum(
            (time or 0.0) * launch.count
            for time, launch in zip(durations, launches, strict=True)
        )
    mean = {
        key: _mean(launches, key)
        for key in ("compute", "memory", "dram", "l2", "l1", "occupancy", "waves")
    }
    return KernelLimit(
        name,
        sum(launch.count for launch in launches),
        time_ns,
        mean["compute"],
        mean["memory"],
        mean["dram"],
        mean["occupancy"],
        mean["waves"],
        _limiter(mean),
    )


def _mean(launches: Sequence[Launch], key: str) -> float | None:
    known = [launch for launch in launches if launch.get(key) is not None]
    if not known:
        return None
    values = [launch.values[key] for launch in known]
    return float(np.average(values, weights=[launch.count for launch in known]))


def _limiter(mean: dict[str, float | None]) -> str:
    compute, memory = mean["compute"], mean["memory"]
    for key in ("compute", "memory", "dram", "l2", "l1", "occupancy"):
        ratio = mean[key]
        if ratio is not None and ratio > MOST_RATIO:
            return (
                f"unknown: {key} at {cells.share(ratio)} of its peak can't be. The "
                "numbers are wrong, or of another locale (run ncu with LC_ALL=C)."
            )
    if compute is None or memory is None:
        return (
            "unknown: throughput of compute and memory was not measured (section "
            "SpeedOfLight)."
        )
    shares = (
        f"compute at {cells.share(compute)}, memory at {cells.share(memory)} of their "
        "peaks"
    )
    if max(compute, memory) < BUSY:
        return f"latency: {shares}; neither is busy. {_why_waiting(mean)}"
    if min(compute, memory) >= LIMIT:
        return f"balanced: {shares}; less work of both kinds is what would help."
    if compute >= memory:
        how = "the limit" if compute >= LIMIT else "busiest"
        return (
            f"compute is {how}: {shares}. Fewer or cheaper instructions, or tensor "
            "cores, are what would help."
        )
    levels = {key: share for key in _UNITS if (share := mean[key]) is not None}
    where = "which level is not known"
    if levels:
        # memory's share is that of its busiest part; L2's may count what is no memory
        nearest = min(levels, key=lambda key: abs(levels[key] - memory))
        where = f"most in {_UNITS[nearest]}"
    how = "the limit" if memory >= LIMIT else "busiest"
    return (
        f"memory is {how} ({where}): {shares}. Fewer bytes (fusion, a smaller dtype, "
        "coalesced access) are what would help."
    )


def _why_waiting(mean: dict[str, float | None]) -> str:
    waves, occupancy = mean["waves"], mean["occupancy"]
    if waves is not None and waves < _FEW_WAVES:
        return (
            f"{waves:.2f} waves: the grid does not fill the GPU. More blocks, or other "
            "work beside it."
        )
    if occupancy is not None and occupancy < _FEW_WARPS:
        return (
            f"Occupancy is {cells.share(occupancy)}: too few warps to hide latency. "
            "Fewer registers or less shared memory a block, or more blocks."
        )
    if waves is None and occupancy is None:
        return "Why is not known: occupancy was not measured."
    return "There are warps enough, so they stall: see the section WarpStateStats."
