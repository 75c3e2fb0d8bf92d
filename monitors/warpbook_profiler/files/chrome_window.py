"""What a file holds from before and after the time that its profiler recorded.

Some profilers keep work of a warm-up step on the GPU, whose calls they did not record.
"""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.columns import ON_GPU, Category, Columns

#: of the work on a GPU that is left, what has a call if calls were recorded
_MOSTLY = 0.5
_NEVER_NS = np.iinfo(np.int64).max


def within_recorded(
    events: Columns, recorded_ns: tuple[int, int] | None
) -> tuple[Columns, str]:
    """Leave out what is outside the recorded time; say so in words, if it is anything.

    Args:
        events: of one process.
        recorded_ns: when the profiler says that it recorded; without, that begins with
            the first event of the host.
    """
    is_gpu = events.is_in(*ON_GPU, Category.GPU_ANNOTATION)
    is_call = events.is_in(Category.API)
    is_host = events.is_in(Category.OPERATOR) | is_call
    if not is_host.any() or not is_gpu.any():
        return events, ""
    start_ns, end_ns = events.start_ns, events.end_ns
    begin_ns, over_ns = recorded_ns or (int(start_ns[is_host][0]), _NEVER_NS)
    outside = (end_ns <= begin_ns) | (start_ns >= over_ns)
    if not outside.any():
        return events, ""
    if not (is_host & ~outside).any():
        # the profiler's own time is another clock's
        return events, ""
    linked = np.isin(events.correlation, events.correlation[is_call & ~outside]) & (
        events.correlation > 0
    )
    gone = outside & (is_host | (is_gpu & ~linked))
    kept_gpu = is_gpu & ~gone
    if not gone.any() or not kept_gpu.any():
        return events, ""
    if recorded_ns is None and linked[kept_gpu].mean() < _MOSTLY:
        return events, ""
    span = "the profiler's own span" if recorded_ns else "the first event of the host"
    return events.where(~gone), (
        f"Outside the recorded window ({span}) are {int((gone & is_gpu).sum()):,} "
        f"pieces of work on the GPU and {int((gone & is_host).sum()):,} events of the "
        "host, as of a warm-up step: they are left out."
    )
