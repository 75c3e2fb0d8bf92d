"""What the profiler itself did to the code that it recorded."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.columns import Category, Columns, Int64s
from warpbook_profiler.facts.calls import Calls

#: CUPTI sets itself up in the first launch after the profiler asked for its first
#: buffer: 300 to 330 µs on an H200, where a launch takes 5
_MOST_SET_UP_NS = 400_000
_SOON_NS = 50_000
_SLOW = 5.0
#: a launch under the profiler, where there is no other to compare with
_USUAL_LAUNCH_NS = 10_000


def profilers_spans(events: Columns, calls: Calls) -> tuple[Int64s, Int64s]:
    """Give when the profiler was at work within the program, sorted by start.

    It names most of it; that the first launch is slow it does not.
    """
    own = events.only(Category.OVERHEAD)
    start_ns, end_ns = own.start_ns, own.end_ns
    # a blocking copy takes long for a reason of its own
    launches = calls.api.where(calls.launches & ~calls.blocking_copies)
    if not len(own) or not len(launches):
        return start_ns, end_ns
    first_ns = int(launches.start_ns[0])
    took_ns = int(launches.duration_ns[0])
    usual_ns = _USUAL_LAUNCH_NS
    if len(launches) > 1:
        usual_ns = int(np.median(launches.duration_ns[1:]))
    just_asked = (end_ns <= first_ns) & (end_ns >= first_ns - _SOON_NS)
    if not just_asked.any() or took_ns < _SLOW * usual_ns:
        return start_ns, end_ns
    set_up_ns = min(took_ns - usual_ns, _MOST_SET_UP_NS)
    starts = np.append(start_ns, first_ns)
    ends = np.append(end_ns, first_ns + set_up_ns)
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
