"""When something was queued: work that had not begun, or whose end was not recorded.

A wait that goes on with nothing queued is one whose thread woke up late.
"""

from __future__ import annotations

import re

import numpy as np

from warpbook_profiler.events.columns import (
    Bools,
    Category,
    Columns,
    Int64s,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.calls import FILL, GRAPH_LAUNCH, WAIT, Calls, named

#: work of the host that a stream waits for, of which no trace has a record
_HOST_WORK = re.compile(r"(cuda|cu|hip)(LaunchHostFunc|StreamAddCallback)")
_ONE_EVENT = re.compile(r"\w*EventSynchronize|\w*EventWait$")
#: at most from a graph's end to the work that is queued behind it
_STEP_NS = 100_000
_NEVER_NS = np.iinfo(np.int64).max


def queued_work(events: Columns, on_gpu: Columns, calls: Calls) -> Coverage:
    """Give the times from launch to start, and to the next wait where no end is known.

    A graph may hold a loop that no trace records. None is assumed where other work of
    its stream, or of a graph with as many pieces, shows that nothing follows the last.
    """
    api, launch = calls.api, calls.launch
    known = np.flatnonzero(launch >= 0)
    is_graph = named(api, GRAPH_LAUNCH) & calls.matched
    followed_ns, is_whole = _followers(on_gpu, calls, is_graph)
    is_lost = calls.launches & ~calls.matched & ~named(api, FILL)
    is_open = is_lost | (is_graph & ~is_whole) | named(api, _HOST_WORK)
    opened = np.flatnonzero(is_open)
    until_ns = np.minimum(_returns(events, api.start_ns[opened]), followed_ns[opened])
    start = np.concatenate([api.end_ns[launch[known]], api.start_ns[opened]])
    end = np.concatenate([on_gpu.start_ns[known], until_ns])
    is_span = end > start
    start, end = start[is_span], end[is_span]
    order = np.argsort(start, kind="stable")
    return Coverage(start[order], end[order])


def _returns(events: Columns, from_ns: Int64s) -> Int64s:
    """Give when the next wait for all of a stream or GPU returned."""
    api = events.only(Category.API)
    waits = api.where(named(api, WAIT) & ~named(api, _ONE_EVENT))
    place = np.searchsorted(waits.start_ns, from_ns)
    return np.append(waits.end_ns, _NEVER_NS)[place]


def _followers(on_gpu: Columns, calls: Calls, is_graph: Bools) -> tuple[Int64s, Bools]:
    """Find what comes behind each graph in its stream.

    Returns:
        of each call when work behind its graph began, and whether its graph, or
        another with as many pieces, was followed at once by what was queued.
    """
    launch, count = calls.launch, len(calls.api)
    followed = np.full(count, _NEVER_NS)
    pieces = np.bincount(launch[launch >= 0], minlength=count)
    is_whole = np.zeros(count, np.bool_)
    if not is_graph.any():
        return followed, is_whole
    # of NONE, which is the last
    graphs = np.append(is_graph, False)
    returned = np.append(calls.api.end_ns, _NEVER_NS)
    for rows in rows_by(on_gpu.device, on_gpu.track):
        last, behind = rows[:-1], rows[1:]
        is_edge = graphs[launch[last]] & (launch[last] != launch[behind])
        last, behind = last[is_edge], behind[is_edge]
        followed[launch[last]] = on_gpu.start_ns[behind]
        at_once = on_gpu.start_ns[behind] - on_gpu.end_ns[last] < _STEP_NS
        at_once &= returned[launch[behind]] <= on_gpu.end_ns[last]
        is_whole[launch[last[at_once]]] = True
    return followed, np.isin(pieces, pieces[is_whole])


def late_wakes_ns(
    on_gpu: Columns, queued: Coverage, start_ns: Int64s, end_ns: Int64s
) -> Int64s:
    """Measure the end of each wait in which nothing ran and nothing was queued."""
    if not len(on_gpu):
        return np.zeros(len(start_ns), np.int64)
    begun = np.searchsorted(on_gpu.start_ns, end_ns)
    running = np.maximum.accumulate(on_gpu.end_ns)
    done = np.maximum(np.where(begun > 0, running[begun - 1], start_ns), start_ns)
    late: Int64s = end_ns - done - queued.within_ns(done, end_ns)
    return np.maximum(late, 0)
