"""What is told of a cell that runs for minutes, while it runs and when it has ended.

The cell runs without the profiler but for windows, which begin and end with a step of
its loop. Times are in whole nanoseconds; those named `start` or `end` count from the
beginning of the cell. This module needs no NumPy.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.model.figures import CellVerdict


class StepTimes(Struct, frozen=True):
    """How long the steps of a loop took, by the host's clock."""

    steps: int
    #: to within 1 %
    median_ns: int
    p95_ns: int
    slowest_ns: int
    #: with the GPU's work waited for: what a step really costs; None while no stretch
    #: of steps has been waited for
    mean_ns: int | None


class SlowStep(Struct, frozen=True):
    """A step that took several times as long as most."""

    #: from 1
    step: int
    start_ns: int
    duration_ns: int


class LiveWindow(Struct, frozen=True):
    """Some steps that ran under the profiler."""

    start_ns: int
    end_ns: int
    steps: int
    #: with the GPU's work waited for; less than from start to end where windows were
    #: merged
    recorded_ns: int
    #: mean of a step since the window before, without the profiler; None where there
    #: was none
    bare_step_ns: int | None
    #: None where the profiler saw nothing of a GPU
    gpu_busy_ns: int | None
    kind: Kind | None
    sentence: str
    launches: int
    matched: int
    #: start, stop, reading and adding up; and what the steps took longer
    overhead_ns: int
    #: how many were merged into this one, to keep the list short
    merged: int = 1


class Live(Struct, frozen=True):
    """A long cell so far."""

    elapsed_ns: int
    steps: int
    #: who tells the steps; None while nobody does
    steps_by: Literal["warpbook.step()", "optimizer"] | None
    #: steps without and with the profiler; the first three of all are in neither
    bare: StepTimes | None
    profiled: StepTimes | None
    #: the slowest of those without the profiler, in their order
    slow_steps: tuple[SlowStep, ...]
    #: how much longer than most all such steps took, those that are not listed too
    slow_ns: int
    #: in their order; the older ones are merged
    windows: tuple[LiveWindow, ...]
    #: over all windows; None where no GPU was seen
    verdict: CellVerdict | None
    #: what profiling has taken so far, of `elapsed_ns`, and what it shall stay below
    overhead_ns: int
    aim_share: float
    #: once for each kernel: the profiler's libraries were set up; not in `overhead_ns`
    setup_ns: int | None
    #: what a person must know, in words
    notes: tuple[str, ...] = ()
