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
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage, union_ns
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import StepRow

MAX_STEPS = 1000
_STEP = re.compile(r"ProfilerStep#\d+$")


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
    begin, end = _annotations(trace.events)
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
    )


def step_rows(trace: Trace, *, gpu_recorded: bool) -> tuple[StepRow, ...]:
    """Give the steps of a schedule, at most MAX_STEPS; empty without one."""
    if not any(map(_STEP.match, trace.events.names)):
        return ()
    steps = find_steps(trace)
    pairs = zip(steps.times_ns, steps.busy_of_ns, strict=True)
    return tuple(
        StepRow(number, time_ns, busy_ns if gpu_recorded else None)
        for number, (time_ns, busy_ns) in enumerate(pairs, 1)
    )[:MAX_STEPS]


def _annotations(events: Columns) -> tuple[Int64s, Int64s]:
    """Give begin and end of each step, of the thread that has most of them."""
    is_step = np.array(
        [bool(_STEP.match(name)) for name in events.names] or [False], np.bool_
    )
    marked = events.only(Category.OPERATOR)
    marked = marked.where(is_step[marked.name])
    if not len(marked):
        return marked.start_ns, marked.end_ns
    mine = max(rows_by(marked.track), key=len)
    return marked.start_ns[mine], marked.end_ns[mine]


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
