"""What each line of a cell took: on the host, on the GPU, and in waiting.

The cell says when it comes to which line. Work on the GPU is charged to the line at
which the host launched it, whichever thread did; idle time of the GPU to the line at
which the host was meanwhile, without the profiler's own time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Int64s,
)
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.idle import Gaps
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import LineRow

#: longer lines of source are cut
_CODE_LENGTH = 120


def by_line(trace: Trace, source: Sequence[str]) -> tuple[LineRow, ...]:
    """Add up by line, in the order of the source; nothing without marks."""
    run, marks = trace.run, trace.run.marks
    if marks is None or not len(marks.line):
        return ()
    on_gpu, calls = trace.on_gpu, trace.calls
    count = int(marks.line.max()) + 1
    launched_ns = np.append(calls.api.start_ns, np.iinfo(np.int64).min)[calls.launch]
    worker = marks.line_at(launched_ns)
    waiter = marks.line_at(calls.api.start_ns)
    ends_ns = np.append(marks.start_ns[1:], run.code_end_ns)
    is_kernel = on_gpu.is_in(Category.KERNEL)

    def total(line: Int64s, chosen: Bools, weight: Int64s) -> list[int]:
        known = chosen & (line != NONE)
        sums_ns = np.bincount(line[known], weight[known], minlength=count)
        return [round(sum_ns) for sum_ns in sums_ns.tolist()]

    every = np.ones(len(marks.line), np.bool_)
    host_ns = total(marks.line, every, ends_ns - marks.start_ns)
    idle_at_mark_ns = _idle_ns(
        trace.profiler_spans, trace.gaps, marks.start_ns, ends_ns
    )
    idle_ns = total(marks.line, every, idle_at_mark_ns)
    kernel_ns = total(worker, is_kernel, on_gpu.duration_ns)
    copy_ns = total(worker, ~is_kernel, on_gpu.duration_ns)
    wait_ns = total(waiter, calls.waits, calls.api.duration_ns)
    kernels = np.bincount(worker[is_kernel & (worker != NONE)], minlength=count)
    times = np.bincount(marks.line, minlength=count)
    seen = run.gpu_name is not None
    return tuple(
        LineRow(
            line=line,
            code=_code(source, line),
            times=int(times[line]),
            host_ns=host_ns[line],
            kernels=int(kernels[line]) if seen else None,
            kernel_ns=kernel_ns[line] if seen else None,
            copy_ns=copy_ns[line] if seen else None,
            wait_ns=wait_ns[line] if seen else None,
            idle_ns=idle_ns[line] if seen else None,
        )
        for line in np.flatnonzero(times).tolist()
    )


def _idle_ns(
    own: tuple[Int64s, Int64s], gaps: Gaps, from_ns: Int64s, to_ns: Int64s
) -> Int64s:
    """Measure the idle time of the GPU in each span, less the profiler's part."""
    own_start_ns, own_end_ns = own
    start_ns = np.concatenate([gaps.start_ns, own_start_ns])
    end_ns = np.concatenate([gaps.end_ns, own_end_ns])
    order = np.argsort(start_ns, kind="stable")
    either = Coverage(start_ns[order], end_ns[order])
    profiler = Coverage(own_start_ns, own_end_ns)
    return either.within_ns(from_ns, to_ns) - profiler.within_ns(from_ns, to_ns)


def _code(source: Sequence[str], line: int) -> str:
    return source[line - 1].rstrip()[:_CODE_LENGTH] if 0 < line <= len(source) else ""
