"""The host's calls that concern the GPU, and the work that each put there."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    rows_by,
)
from warpbook_profiler.events.run import Run

# torch on AMD's GPUs writes HIP's calls as if they were CUDA's
_CUDA = r"(cuda|cu|hip)(?=[A-Z])"
#: other devices' calls by what most of them are named after
LAUNCH = re.compile(
    rf"{_CUDA}((Ext|Module|ExtModule)?Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset)|"
    rf"(?!{_CUDA})\w*(Launch|Enqueue|Append|Mem(cpy|set))(?!\w*(Wait|Barrier|Event))"
)
_OF_CUDA = re.compile(_CUDA)
#: calls whose one purpose is to wait for the GPU
WAIT = re.compile(
    rf"{_CUDA}\w*Synchronize|(?!{_CUDA})\w*(Synchronize|QueueFinish|EventWait$)"
)
#: what fills memory takes a microsecond or two, and CUPTI leaves it out at times
FILL = re.compile(r"(cuda|cu|hip)(Graph)?Memset")
GRAPH_LAUNCH = re.compile(r"(cuda|cu|hip)GraphLaunch")
_WAITING_COPY = re.compile(rf"{_CUDA}Memcpy(?!.*(Async|Batch))")
# copies to ordinary memory hold the host until they are done
_BLOCKING_COPY = re.compile(r"Memcpy DtoH .*Pageable")
_COPY = re.compile(r"(cuda|cu|hip)Memcpy")
_TO_HOST = re.compile(r"(Memcpy )?DtoH |CopyDeviceToHost$")
_CAPTURE_BEGIN = re.compile(r"(cuda|cu|hip)StreamBeginCapture")
_CAPTURE_END = re.compile(r"(cuda|cu|hip)StreamEndCapture")


@dataclass(frozen=True)
class Calls:
    """The calls of CUDA up to the end of the cell's code, and what they are."""

    api: Columns
    launches: Bools
    #: calls whose purpose is to wait, and copies that hold the host
    waits: Bools
    blocking_copies: Bools
    #: for each copy to the host that was over while its thread waited for it, the
    #: position of that wait, which may be the copy's own call; NONE for all others
    read_by: Int64s
    #: launches whose work on the GPU was recorded
    matched: Bools
    #: for each event on the GPU the position of its launch in `api`; NONE where it
    #: was not recorded. All work of a CUDA graph has one launch.
    launch: Int64s


def find_calls(events: Columns, on_gpu: Columns, run: Run) -> Calls:
    """Tell launches and waits from other calls."""
    api = events.only(Category.API)
    api = api.where((api.start_ns < run.code_end_ns) & ~_within_another(api))
    known = api.correlation != NONE
    linked = known & np.isin(api.correlation, on_gpu.correlation)
    launches = _launches(api, linked) & ~_while_capturing(api)
    to_pageable = on_gpu.correlation[named(on_gpu, _BLOCKING_COPY)]
    blocking = known & np.isin(api.correlation, to_pageable)
    waits = named(api, WAIT) | named(api, _WAITING_COPY) | blocking
    matched = launches & linked
    launch = _launch_of(on_gpu, api, np.flatnonzero(launches & known))
    read_by = _read_by(api, launches, waits, on_gpu, launch)
    return Calls(api, launches, waits, blocking & launches, read_by, matched, launch)


def _launches(api: Columns, linked: Bools) -> Bools:
    """Choose CUDA's launches by name, and another device's by what launched once."""
    launching = np.zeros(len(api.names), np.bool_)
    launching[api.name[linked & ~named(api, _OF_CUDA)]] = True
    by_name: Bools = launching[api.name]
    return by_name | (named(api, LAUNCH) & named(api, _OF_CUDA))


def _within_another(api: Columns) -> Bools:
    """Choose the driver's calls within a runtime's, with which they share their id."""
    inner = np.zeros(len(api), np.bool_)
    order = np.argsort(api.correlation, kind="stable")
    outer, row = order[:-1], order[1:]
    same = (api.correlation[row] == api.correlation[outer]) & (api.correlation[row] > 0)
    outer, row = outer[same], row[same]
    within = api.end_ns[row] <= api.end_ns[outer]
    inner[row[within & (api.track[row] == api.track[outer])]] = True
    return inner


def _read_by(
    api: Columns, launches: Bools, waits: Bools, on_gpu: Columns, launch: Int64s
) -> Int64s:
    following = np.full(len(api), NONE, np.int64)
    telling = np.flatnonzero(launches | waits)
    for of_thread in rows_by(api.track[telling]):
        rows = telling[of_thread]
        after = np.append(rows[1:], NONE)
        following[rows] = np.where(waits[rows], rows, after)
    copies = np.flatnonzero(named(on_gpu, _TO_HOST) & (launch != NONE))
    call = launch[copies]
    wait, ended_ns = following[call], on_gpu.end_ns[copies]
    # a graph may hold a copy, and who waits for another one has not asked for this
    is_read = named(api, _COPY)[call] & (wait != NONE) & waits[wait]
    is_read &= (api.start_ns[wait] < ended_ns) & (ended_ns <= api.end_ns[wait])
    reads = np.full(len(api), NONE, np.int64)
    reads[call[is_read]] = wait[is_read]
    return reads


def _launch_of(on_gpu: Columns, api: Columns, rows: Int64s) -> Int64s:
    if not len(rows):
        return np.full(len(on_gpu), NONE, np.int64)
    known = api.correlation[rows]
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known[order], on_gpu.correlation)
    row = rows[order[np.minimum(place, len(rows) - 1)]]
    same = api.correlation[row] == on_gpu.correlation
    return np.where(same, row, NONE)


#: copies from the host, as Kineto and JAX name them
TO_GPU = re.compile(r"Memcpy HtoD|CopyHostToDevice")


def named(events: Columns, pattern: re.Pattern[str]) -> Bools:
    """Choose the events whose name begins with the pattern."""
    fits = np.fromiter(
        (bool(pattern.match(name)) for name in events.names),
        np.bool_,
        len(events.names),
    )
    return fits[events.name]


def _while_capturing(api: Columns) -> Bools:
    """Choose the calls made while their thread recorded a CUDA graph.

    Such a launch is only noted down; the graph's own launch runs it.
    """
    begins, ends = named(api, _CAPTURE_BEGIN), named(api, _CAPTURE_END)
    capturing = np.zeros(len(api), np.bool_)
    theirs = np.flatnonzero(np.isin(api.track, api.track[begins]))
    for of_thread in rows_by(api.track[theirs]):
        rows = theirs[of_thread]
        depth = np.cumsum(begins[rows].astype(int) - ends[rows].astype(int))
        capturing[rows] = depth > 0
    return capturing
