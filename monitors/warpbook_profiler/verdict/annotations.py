"""The parts of a program that it names itself: their time on the host and on GPUs.

Such a part is a `record_function`, an NVTX range, or what torch marks (a step of the
profiler's schedule, an optimizer's step). Work on a GPU belongs to a part if it was
launched meanwhile, by the part's own thread or by one that names no parts, as the
threads of autograd.
"""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Columns,
    Int64s,
    distinct,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage, union_ns
from warpbook_profiler.facts.paths import steps_as_one
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import AnnotationRow

#: names that are told of one run
MAX_ROWS = 50


def annotated_parts(trace: Trace, gpu_recorded: bool) -> tuple[AnnotationRow, ...]:
    """Add up by name, the longest on the host first."""
    operators, calls = trace.operators, trace.calls
    in_time = operators.start_ns < trace.run.end_ns
    marked = operators.where(operators.annotates & in_time)
    if not len(marked):
        return ()
    marked = steps_as_one(marked)
    threads = distinct(marked.track)
    launch = calls.launch
    known = np.flatnonzero(launch != NONE)
    launched_ns = calls.api.start_ns[launch[known]]
    launcher = calls.api.track[launch[known]]
    unmarked = ~np.isin(launcher, threads)
    rows = []
    host_ns = np.bincount(marked.name, marked.duration_ns, minlength=len(marked.names))
    for name in np.argsort(-host_ns, kind="stable")[:MAX_ROWS].tolist():
        mine = marked.where(marked.name == name)
        if not len(mine):
            break
        total_ns, within = 0, np.zeros(len(known), np.bool_)
        for rows_of_thread in rows_by(mine.track):
            start_ns, end_ns = (
                mine.start_ns[rows_of_thread],
                mine.end_ns[rows_of_thread],
            )
            total_ns += union_ns(start_ns, end_ns)
            own = unmarked | (launcher == mine.track[rows_of_thread[0]])
            within |= own & _inside(start_ns, end_ns, launched_ns)
        work = trace.on_gpu.rows(known[within])
        rows.append(
            AnnotationRow(
                name=marked.names[name],
                times=len(mine),
                host_ns=total_ns,
                gpu_ns=_busy_ns(work) if gpu_recorded else None,
                work=len(work) if gpu_recorded else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.host_ns))


def _inside(start_ns: Int64s, end_ns: Int64s, at_ns: Int64s) -> Bools:
    return Coverage(start_ns, end_ns).holds(at_ns)


def _busy_ns(work: Columns) -> int:
    order = np.argsort(work.start_ns, kind="stable")
    return union_ns(work.start_ns[order], work.end_ns[order])
