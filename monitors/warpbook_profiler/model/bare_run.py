"""How long a profiled cell takes without the profiler, as it travels to every view.

Times are in ns where a name says so. This module needs no NumPy.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_profiler.model.figures import IdleSplit

#: "measured": runs of the same source without the profiler; "estimated": the replay
Basis = Literal["measured", "estimated"]
#: where times come from: runs beside the profile, or executions of the cell before; the
#: very first loads and compiles things
BareSource = Literal["repeats", "executions", "first execution"]
#: what the bare run is limited by, at both ends of its range
Limit = Literal["GPU", "host", "between"]


class BareTimes(Struct, frozen=True):
    """Runs of the same code that were timed without the profiler."""

    runs: int
    median_ns: int
    least_ns: int
    most_ns: int
    source: BareSource


class BareRun(Struct, frozen=True):
    """The window without the profiler's part; the verdict is judged on it."""

    basis: Basis
    #: the median that was measured, or the estimate
    time_ns: int
    #: the fastest and slowest that was measured, or the ends of the estimate
    low_ns: int
    high_ns: int
    limit: Limit
    #: of it, the GPU was busy
    gpu_busy_ns: int
    #: why it was idle
    idle: IdleSplit
    #: the same window as it was recorded
    profiled_ns: int
    #: how many were measured, and where; 0 and None without any
    runs: int = 0
    source: BareSource | None = None
    #: of the recorded time of the host, what the replay keeps
    host_share: float | None = None
    #: the verdicts at the two ends, where they are not one and the same
    between: tuple[str, ...] = ()
    #: what a reader must know before believing it, in words
    cautions: tuple[str, ...] = ()
    #: how long it takes and how that is known, in words
    sentence: str = ""
    #: where the times that changes are predicted with come from, in words
    calibration: str = ""

    @property
    def judged_ns(self) -> int:
        """Give the replayed window that causes are shares of."""
        idle = self.idle
        waits_ns = idle.host_wait_ns + idle.kernel_wait_ns + idle.other_ns
        return self.gpu_busy_ns + waits_ns
