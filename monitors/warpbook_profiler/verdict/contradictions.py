"""What no GPU can do: a trace that says so lacks work, or its times are wrong.

Each check counts pieces of work whose times contradict something else in the trace.
Clocks and hosts that are a little late contradict nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage, union_ns
from warpbook_profiler.facts.calls import WAIT, named
from warpbook_profiler.facts.trace import Trace

#: the clocks of GPU and host agree to a few microseconds
_CLOCK_TOLERANCE_NS = 20_000
#: some versions wrote whole microseconds
_ROUNDED_NS = 2_000
#: so much longer than its work a wait takes until its thread runs again; the profiler's
#: own at the end, in which it asks for what it has recorded
_WAKE_NS, _LAST_WAKE_NS = 100_000, 1_000_000
#: at most between two pieces of queued work, which nothing is missing from
_GAP_NS = 10_000
#: Hopper and later begin a kernel before the one ahead of it ended, if it was launched
#: so (programmatic dependent launch); any other launch of theirs overlaps by less
_EARLY_LAUNCH = re.compile(r"(cuda|cu)(LaunchKernelEx|GraphLaunch)")
_EARLY_SINCE, _EARLY_NS = (9, 0), 10_000
_DEVICE_WAIT = re.compile(r"(cuda|hip)DeviceSynchronize|cuCtxSynchronize")
#: Below this share nobody would draw another conclusion ...
_TOLERATED_SHARE = 0.05
#: ... nor with so much of the window in waits for what was not recorded; of the second
#: nobody is told
_MOST_UNSEEN_SHARE, _TOLERATED_UNSEEN_SHARE = 0.2, 0.02


@dataclass(frozen=True)
class Contradiction:
    """One kind of state that can't be, in words."""

    sentence: str
    #: of all work on the GPU, the pieces whose own times are wrong
    pieces: int
    #: nothing can be concluded
    is_grave: bool
    #: no time is wrong, and something was not recorded
    is_gap: bool = False


def contradictions(trace: Trace) -> Iterator[Contradiction]:
    """Give every contradiction of a trace."""
    if not len(trace.on_gpu):
        return
    yield from _early(trace)
    yield from _late(trace)
    yield from _instant(trace.on_gpu)
    if not trace.run.other_device:
        # other makers' queues need not be in order
        yield from _out_of_order(trace)
    yield from _unseen(trace)


def _counted(chosen: Bools, words: str, of: int) -> Iterator[Contradiction]:
    count = int(np.count_nonzero(chosen))
    if count:
        yield Contradiction(
            f"{words}: {count:,}.", count, count > _TOLERATED_SHARE * of
        )


def _off(trace: Trace, off_ns: Int64s, words: str) -> Iterator[Contradiction]:
    """Count times that are off by more than clocks are; of little, nothing follows."""
    is_off = off_ns > _CLOCK_TOLERANCE_NS
    busy_ns = union_ns(trace.on_gpu.start_ns, trace.on_gpu.end_ns)
    is_long = int(off_ns[is_off].sum()) > _TOLERATED_SHARE * busy_ns
    for one in _counted(is_off, words, len(trace.on_gpu)):
        # of many that are off by little none counts as wrong
        is_little = one.is_grave and not is_long
        yield replace(one, pieces=0, is_grave=False) if is_little else one


def _early(trace: Trace) -> Iterator[Contradiction]:
    on_gpu, calls = trace.on_gpu, trace.calls
    known = calls.launch != NONE
    launch_ns = calls.api.start_ns[calls.launch[known]]
    yield from _off(
        trace,
        launch_ns - on_gpu.start_ns[known],
        "Kernels or copies that start before the call that launched them, so that "
        "their times are wrong",
    )


def _late(trace: Trace) -> Iterator[Contradiction]:
    """Find work that goes on after the host has waited for all of its device."""
    on_gpu, calls = trace.on_gpu, trace.calls
    api = trace.events.only(Category.API)
    waits = api.where(named(api, _DEVICE_WAIT))
    if not len(waits) or np.ptp(on_gpu.device):
        return
    known = calls.launch != NONE
    place = np.searchsorted(waits.start_ns, calls.api.end_ns[calls.launch[known]])
    waited_ns = np.append(waits.end_ns, np.iinfo(np.int64).max)
    yield from _off(
        trace,
        on_gpu.end_ns[known] - waited_ns[place],
        "Kernels or copies that end after the host had waited for them (device "
        "synchronization), so that their ends are wrong",
    )


def _instant(on_gpu: Columns) -> Iterator[Contradiction]:
    """Find kernels that take no time at all, as where a profiler has no times."""
    kernels = on_gpu.is_in(Category.KERNEL)
    yield from _counted(
        kernels & (on_gpu.duration_ns == 0),
        "Kernels that end when they start, so that their times are not known",
        int(np.count_nonzero(kernels)),
    )


def _out_of_order(trace: Trace) -> Iterator[Contradiction]:
    """Find work that begins before what is ahead of it in its stream ended."""
    on_gpu, calls = trace.on_gpu, trace.calls
    over = np.zeros(len(on_gpu), np.int64)
    ahead = np.full(len(on_gpu), NONE, np.int64)
    for rows in rows_by(on_gpu.device, on_gpu.track):
        ended = np.maximum.accumulate(on_gpu.end_ns[rows])
        over[rows[1:]] = ended[:-1] - on_gpu.start_ns[rows[1:]]
        ahead[rows[1:]] = rows[:-1]
    wrong = over > _ROUNDED_NS
    if not wrong.any():
        return
    # branches of one graph have no order
    wrong &= (calls.launch == NONE) | (calls.launch != calls.launch[ahead])
    wrong &= ~_may_begin_early(trace, over)
    begin = on_gpu.start_ns[wrong]
    both_ns = union_ns(begin, begin + over[wrong])
    busy_ns = max(union_ns(on_gpu.start_ns, on_gpu.end_ns), 1)
    for one in _counted(
        wrong,
        "Ends of kernels or copies contradict the order of their stream (some start "
        "before the one ahead of them ended)",
        len(on_gpu),
    ):
        is_long = both_ns > _TOLERATED_SHARE * busy_ns
        # of two that overlap nobody knows which one is wrong
        yield Contradiction(one.sentence, 0, one.is_grave or is_long)


def _may_begin_early(trace: Trace, over_ns: Int64s) -> Bools:
    """Choose the kernels that may overlap the one ahead, by GPU and launch."""
    on_gpu, calls = trace.on_gpu, trace.calls
    able = [
        not gpu.name
        if gpu.compute_capability is None
        else gpu.compute_capability >= _EARLY_SINCE
        for gpu in trace.run.gpus
    ]
    # of a GPU that the trace does not describe nobody knows
    device = np.where(on_gpu.device < len(able), on_gpu.device, NONE)
    so_launched = np.append(named(calls.api, _EARLY_LAUNCH), True)[calls.launch]
    may: Bools = on_gpu.is_in(Category.KERNEL) & np.array([*able, True])[device]
    return may & (so_launched | (over_ns <= _EARLY_NS))


def _unseen(trace: Trace) -> Iterator[Contradiction]:
    """Find waits for the GPU while it, as far as was recorded, did nothing."""
    run, on_gpu, calls = trace.run, trace.on_gpu, trace.calls
    api = trace.events.only(Category.API)
    waits = api.where(named(api, WAIT))
    launches_ns = calls.api.start_ns[calls.launches]
    # before anything was launched, somebody waits for what came before the trace
    waits = waits.where(waits.start_ns >= launches_ns.min(initial=run.end_ns))
    spans = Coverage(waits.start_ns, waits.end_ns).spans
    seen = _together((on_gpu.start_ns, on_gpu.end_ns), trace.profiler_spans)
    # who wakes up late, with nothing queued, has waited for nothing more
    seen_or_queued = _together(seen.spans, trace.queued.spans)
    idle_ns = seen_or_queued.within_ns(*spans) - seen.within_ns(*spans)
    begun_ns = np.sort(on_gpu.start_ns)
    pieces = np.searchsorted(begun_ns, spans[1]) - np.searchsorted(begun_ns, spans[0])
    wake_ns = np.where(spans[0] < run.code_end_ns, _WAKE_NS, _LAST_WAKE_NS)
    unseen = idle_ns > wake_ns + pieces * _GAP_NS
    unseen_ns = int(idle_ns[unseen].sum())
    window_ns = max(run.end_ns - run.start_ns, 1)
    if unseen_ns > _TOLERATED_UNSEEN_SHARE * window_ns:
        waited_ns = int((spans[1] - spans[0])[unseen].sum())
        yield Contradiction(
            f"The host waited {units.duration_ns(waited_ns)} for the GPU, but the "
            f"trace has only {units.duration_ns(waited_ns - unseen_ns)} of work in "
            "that time: work is missing (such as that of a graph with a while node, "
            "or of another process).",
            0,
            unseen_ns > _MOST_UNSEEN_SHARE * window_ns,
            is_gap=True,
        )


def _together(*spans: tuple[Int64s, Int64s]) -> Coverage:
    start_ns = np.concatenate([one[0] for one in spans])
    end_ns = np.concatenate([one[1] for one in spans])
    order = np.argsort(start_ns, kind="stable")
    return Coverage(start_ns[order], end_ns[order])
