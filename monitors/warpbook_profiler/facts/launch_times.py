"""What a launch costs, and how long its work then waits: three figures apart.

For work that starts at s, launched by a call [a, b), after its stream's earlier work
ended at e:

- *cost* is b - a, what the host pays;
- *launch latency* is s - b where the stream was empty (e <= b): the way to the GPU;
- *queue delay* is e - b where it was not: the work waited for its turn, which is how
  a busy GPU should look. What is left, s - e, is the step from one to the next.
"""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Columns,
    Int64s,
    median,
    rows_by,
)
from warpbook_profiler.facts.calls import Calls
from warpbook_profiler.model.figures import LaunchTimes

#: a launch that takes so many times the usual does more than to launch
_SLOW = 10


def slow_launches(calls: Calls) -> Bools:
    """Choose the launches that set something up: far slower than others, or alone.

    The first launch of a kernel loads it, the first of all sets CUDA up, and a graph's
    first puts it on the GPU. Of one launch nobody knows what the next would cost.
    """
    slow = np.zeros(len(calls.api), np.bool_)
    # a blocking copy takes long for a reason of its own
    rows = np.flatnonzero(calls.launches & ~calls.blocking_copies)
    took = calls.api.duration_ns[rows]
    if len(rows) < 2:
        slow[rows] = True
        return slow
    usual = np.full(len(rows), _lower_median(took))
    # to launch a graph costs more than to launch a kernel, each time
    for mine in rows_by(calls.api.name[rows]):
        if len(mine) > 1:
            usual[mine] = _lower_median(took[mine])
    slow[rows] = took > _SLOW * usual
    return slow


def launch_times(on_gpu: Columns, calls: Calls) -> LaunchTimes:
    """Measure every launch whose work was recorded."""
    launch = calls.launch
    cost = (calls.api.end_ns - calls.api.start_ns)[calls.launches]
    rows = np.flatnonzero(launch != NONE)
    # of a graph's many kernels only the first was waited for
    _, first = np.unique(launch[rows], return_index=True)
    rows = np.sort(rows[first])
    before = _end_of_earlier_work(on_gpu)[rows]
    start, returned = on_gpu.start_ns[rows], calls.api.end_ns[launch[rows]]
    queued = before > returned
    latency = np.maximum(start - returned, 0)[~queued]
    delay = np.maximum(np.minimum(start, before) - returned, 0)[queued]
    step = np.maximum(start - before, 0)[queued]
    return LaunchTimes(
        cost_ns=int(cost.sum()),
        cost_median_ns=median(cost) if len(cost) else None,
        latency_ns=int(latency.sum()),
        latency_median_ns=median(latency) if len(latency) else None,
        queue_delay_ns=int(delay.sum()),
        queue_delay_median_ns=median(delay) if len(delay) else None,
        step_ns=int(step.sum()),
        early=int((start < returned).sum()),
    )


def _end_of_earlier_work(on_gpu: Columns) -> Int64s:
    """Give for each event the end of what its stream did before; least if nothing."""
    least = np.iinfo(np.int64).min
    before = np.full(len(on_gpu), least)
    for rows in rows_by(on_gpu.device, on_gpu.track):
        before[rows[1:]] = np.maximum.accumulate(on_gpu.end_ns[rows])[:-1]
    return before


def _lower_median(values: Int64s) -> int:
    """Give the one of two that is not the outlier."""
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])
