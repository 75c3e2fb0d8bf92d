"""The steps of a profiler's schedule: how often a program was repeated in a trace.

A step is over when the host has left it and the GPU has done what was launched in it.
It takes the time since the step before was over, so that all of them add up to the
whole, however far the host runs ahead of the GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Category,
    Columns,
    Int64s,
    distinct,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage, union_ns
from warpbook_profiler.facts.kernels import uses_tensor_cores
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.ceilings import ceilings
from warpbook_profiler.model.cell_profile import StepRow

MAX_STEPS = 1000
#: of the kernels' time, in kernels that may multiply and of which no FLOPs are known
_UNTOLD_SHARE = 0.05
_STEP = re.compile(r"ProfilerStep#(\d{1,15})$")


@dataclass(frozen=True)
class Steps:
    """What a trace's time is made of."""

    #: of each step, less what the profiler took of it
    times_ns: tuple[int, ...]
    #: of all steps, or of the whole trace where it has none; less the profiler's own
    whole_ns: int
    #: of it, what the GPU worked
    busy_ns: int
    #: the span that the steps fill, or all of the trace
    start_ns: int
    end_ns: int
    #: of each step, what the GPU worked
    busy_of_ns: tuple[int, ...] = ()
    #: of each step, when it was over
    over_ns: tuple[int, ...] = ()
    #: of each step, that of its annotation
    numbers: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.times_ns)


def find_steps(trace: Trace) -> Steps:
    """Find the steps of a trace, and how long each took."""
    on_gpu, calls, run = trace.on_gpu, trace.calls, trace.run
    if len(on_gpu):
        # where the GPU worked, the profiler cost nothing
        ended_ns, lost_ns = trace.gaps.end_ns, trace.gaps.profiler_ns
    else:
        began_ns, ended_ns = trace.profiler_spans
        lost_ns = ended_ns - began_ns
    begin, end, numbers = _annotations(trace.events)
    if not len(begin):
        return Steps(
            (),
            max(run.end_ns - run.start_ns - int(lost_ns.sum()), 0),
            union_ns(on_gpu.start_ns, on_gpu.end_ns),
            run.start_ns,
            run.end_ns,
        )
    over = _over_ns(begin, end, on_gpu, calls.api.start_ns, calls.launch)
    times_ns = over - np.append(begin[:1], over[:-1])
    # what the profiler took belongs to the step in which that ended
    step = np.searchsorted(over, ended_ns)
    within = (ended_ns > begin[0]) & (step < len(over))
    np.subtract.at(times_ns, step[within], lost_ns[within])
    times_ns = np.maximum(times_ns, 0)
    first, last = int(begin[0]), int(over[-1])
    busy_ns = Coverage(on_gpu.start_ns, on_gpu.end_ns).within_ns(
        np.append(begin[:1], over[:-1]), over
    )
    return Steps(
        tuple(times_ns.tolist()),
        int(times_ns.sum()),
        int(busy_ns.sum()),
        first,
        last,
        tuple(busy_ns.tolist()),
        tuple(over.tolist()),
        numbers,
    )


def step_rows(trace: Trace, *, gpu_recorded: bool) -> tuple[StepRow, ...]:
    """Give the steps of a schedule, at most MAX_STEPS; empty without one."""
    if not any(map(_STEP.match, trace.events.names)):
        return ()
    steps = find_steps(trace)
    utilization = _utilization(trace, steps)
    rows = zip(
        steps.numbers, steps.times_ns, steps.busy_of_ns, utilization, strict=True
    )
    return tuple(
        StepRow(number, time_ns, busy_ns if gpu_recorded else None, mfu)
        for number, time_ns, busy_ns, mfu in rows
    )[:MAX_STEPS]


def _utilization(trace: Trace, steps: Steps) -> list[float | None]:
    """Give each step's products at their peak, as a part of its time."""
    (operators, place), kernels = trace.called, trace.kernels
    #: of each ns of an operator's kernels, how long its arithmetic takes at the peak
    ratio = np.full(len(operators) + 1, np.nan)
    for at, operator in enumerate(operators):
        need, gpus = operator.need, trace.run.gpus
        known = 0 <= operator.device < len(gpus)
        sheet = ceilings(gpus[operator.device].name) if known else None
        if need is None or sheet is None or not operator.time_ns:
            continue
        least_ns = need.compute_ns(sheet)
        if least_ns is not None:
            ratio[at] = least_ns / operator.time_ns
    of_kernel = ratio[place]
    may_multiply = [uses_tensor_cores(name) is not False for name in kernels.names]
    untold = np.isnan(of_kernel) & np.array(may_multiply or [False])[kernels.name]
    untold_ns = int(kernels.duration_ns[untold].sum())
    nothing: list[float | None] = [None] * steps.count
    if np.isnan(of_kernel).all():
        return nothing
    if untold_ns > _UNTOLD_SHARE * int(kernels.duration_ns.sum()):
        return nothing
    step = np.searchsorted(steps.over_ns, kernels.end_ns)
    within = step < steps.count
    least_ns = np.nan_to_num(of_kernel) * kernels.duration_ns
    sums = np.bincount(step[within], least_ns[within], minlength=steps.count)
    gpus_used = max(len(distinct(kernels.device)), 1)
    # more than all of a peak is of a file that contradicts itself
    return [
        float(least / (time_ns * gpus_used))
        if 0 < least <= time_ns * gpus_used
        else None
        for least, time_ns in zip(sums, steps.times_ns, strict=True)
    ]


def _annotations(events: Columns) -> tuple[Int64s, Int64s, tuple[int, ...]]:
    """Give begin, end and number of each step, of the thread that has most of them."""
    steps = [_STEP.match(name) for name in events.names]
    is_step = np.array([step is not None for step in steps] or [False], np.bool_)
    marked = events.only(Category.OPERATOR)
    marked = marked.where(is_step[marked.name])
    if not len(marked):
        return marked.start_ns, marked.end_ns, ()
    mine = max(rows_by(marked.track), key=len)
    numbers = tuple(
        int(step[1])
        for name in marked.name[mine].tolist()
        if (step := steps[name]) is not None
    )
    return marked.start_ns[mine], marked.end_ns[mine], numbers


def _over_ns(
    begin: Int64s, end: Int64s, on_gpu: Columns, launched_ns: Int64s, launch: Int64s
) -> Int64s:
    """Give when each step was over, on the host and on the GPU."""
    over = end.copy()
    known = np.flatnonzero(launch != NONE)
    step = np.searchsorted(begin, launched_ns[launch[known]], side="right") - 1
    within = step >= 0
    np.maximum.at(over, step[within], on_gpu.end_ns[known[within]])
    # two steps of two streams may end in the other order
    ordered: Int64s = np.maximum.accumulate(over)
    return ordered
