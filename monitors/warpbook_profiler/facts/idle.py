"""Why the GPU did nothing: for the whole device, and for each stream.

The three kinds are those of HolisticTraceAnalysis. A gap between two pieces of work
is *host wait* if the call that launched the second began after the first had ended;
else *kernel wait* if it is shorter than 30 µs (the cost of going from one to the
next), else *other* (the stream waited for an event, another stream, or memory).

For the device the gaps are those of the union of all its work in the window, each
named by the work that ends it. What comes after the last work is host wait until the
code ended. What the profiler did meanwhile, and after the code, is *other*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Columns,
    Int64s,
    distinct,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import Calls, named
from warpbook_profiler.facts.launch_times import slow_launches

#: HTA's `consecutive_kernel_delay`, which works as microseconds
KERNEL_WAIT_NS = 30_000
#: a host that launches again within this is busy launching; later, it did other work
LAUNCHING_NS = 100_000
#: every operator has a namespace
_OPERATOR = re.compile(r".*::", re.DOTALL)


@dataclass(frozen=True)
class Gaps:
    """The idle time of a device in the window, gap by gap; they sum to all of it."""

    start_ns: Int64s
    end_ns: Int64s
    #: of it, what the profiler itself caused
    profiler_ns: Int64s
    host_wait: Bools
    kernel_wait: Bools
    #: position in `Calls.api` of the launch that ended the gap, or NONE
    launch: Int64s

    @property
    def length_ns(self) -> Int64s:
        """How long each is."""
        return self.end_ns - self.start_ns

    def host_wait_ns(self) -> Int64s:
        """Of each, what the GPU waited for the host."""
        return np.where(self.host_wait, self.length_ns - self.profiler_ns, 0)


def device_gaps(
    on_gpu: Columns, calls: Calls, run: Run, profiler_spans: tuple[Int64s, Int64s]
) -> Gaps:
    """Find every gap in the union of a device's work within the window."""
    busy_until = np.maximum.accumulate(
        np.concatenate([[run.start_ns], on_gpu.end_ns])
    ).astype(np.int64)
    # the last gap is ended by the window
    start = busy_until
    end = np.concatenate([on_gpu.start_ns, [run.end_ns]]).astype(np.int64)
    ended_by = np.concatenate([calls.launch, [NONE]]).astype(np.int64)
    real = np.flatnonzero(end > start)
    start, end, ended_by = start[real], end[real], ended_by[real]
    is_last = real == len(on_gpu)
    launch_ns = (
        np.where(ended_by == NONE, 0, calls.api.start_ns[np.maximum(ended_by, 0)])
        if len(calls.api)
        else np.zeros(len(start), np.int64)
    )
    host_wait = (launch_ns > start) | (is_last & (start < run.code_end_ns))
    profiler = Coverage(*profiler_spans).within_ns(start, end)
    after_code = np.where(is_last, end - np.maximum(start, run.code_end_ns), 0)
    profiler = np.minimum(
        np.where(is_last, np.maximum(profiler, after_code), profiler), end - start
    )
    return Gaps(
        start,
        end,
        profiler,
        host_wait,
        ~host_wait & ~is_last & (end - start < KERNEL_WAIT_NS),
        ended_by,
    )


@dataclass(frozen=True)
class StreamGaps:
    """One stream's idle time between its first and last work, in ns."""

    device: int
    stream: int
    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int


def stream_gaps(on_gpu: Columns, calls: Calls) -> list[StreamGaps]:
    """Split the gaps between consecutive pieces of work of each stream."""
    launched_ns = np.full(len(on_gpu), np.iinfo(np.int64).min)
    known = calls.launch != NONE
    launched_ns[known] = calls.api.start_ns[calls.launch[known]]
    gaps_by_stream = []
    for rows in rows_by(on_gpu.device, on_gpu.track):
        start, end = on_gpu.start_ns[rows], on_gpu.end_ns[rows]
        gap = start[1:] - end[:-1]
        waited = launched_ns[rows][1:] > end[:-1]
        short = ~waited & (gap < KERNEL_WAIT_NS)
        gap = np.maximum(gap, 0)
        gaps_by_stream.append(
            StreamGaps(
                int(on_gpu.device[rows[0]]),
                int(on_gpu.track[rows[0]]),
                int(gap[waited].sum()),
                int(gap[short].sum()),
                int(gap[~waited & ~short].sum()),
            )
        )
    return gaps_by_stream


@dataclass
class HostWait:
    """What the host did while the GPU waited for it, in ns; they sum to host wait."""

    #: of gaps that began while the host waited for the GPU: until the wait returned,
    #: and until the end where the host then launched at once; gaps before a copy to
    #: the host that it waits for, where it asked for that at once
    synchronize_ns: int = 0
    #: gaps in which the host launched one thing after another, too slowly for the
    #: GPU, and what other gaps spent in the launching call itself
    launching_ns: int = 0
    #: of all the rest: in operators, in other calls of CUDA and in launches so slow
    #: that they set something up, and in neither
    operator_ns: int = 0
    api_ns: int = 0
    python_ns: int = 0


@dataclass(frozen=True)
class GapCauses:
    """What the host did in each gap, as in `HostWait`: times, and where."""

    synchronize_ns: Int64s
    launching_ns: Int64s
    operator_ns: Int64s
    api_ns: Int64s
    python_ns: Int64s
    #: the thread that launched what ended the gap
    thread: Int64s
    #: position in `Calls.api` of the wait that the gap began in, or that reads what
    #: ended it, or NONE
    sync: Int64s
    #: the middle of what neither a wait nor launching explains
    other_at_ns: Int64s

    @property
    def other_ns(self) -> Int64s:
        """Of each gap, what neither a wait nor launching explains."""
        return self.operator_ns + self.api_ns + self.python_ns

    @property
    def total(self) -> HostWait:
        return HostWait(
            int(self.synchronize_ns.sum()),
            int(self.launching_ns.sum()),
            int(self.operator_ns.sum()),
            int(self.api_ns.sum()),
            int(self.python_ns.sum()),
        )


def host_wait_causes(
    operators: Columns,
    gaps: Gaps,
    calls: Calls,
    run: Run,
    profiler_spans: tuple[Int64s, Int64s],
) -> GapCauses:
    """Say what the host did while the GPU waited for it."""
    waits = gaps.host_wait_ns()
    main = _main_thread(calls, operators)
    # of NONE, which is the last, the main thread
    thread = np.append(calls.api.track, main)[gaps.launch]

    def nothing() -> Int64s:
        return np.zeros(len(waits), np.int64)

    causes = GapCauses(
        synchronize_ns=nothing(),
        launching_ns=nothing(),
        operator_ns=nothing(),
        api_ns=nothing(),
        python_ns=nothing(),
        thread=thread,
        sync=np.full(len(waits), NONE, np.int64),
        other_at_ns=gaps.start_ns.copy(),
    )
    chosen = np.flatnonzero(waits > 0)
    # not annotations, which a profiler or a person puts around Python too
    operators = operators.where(named(operators, _OPERATOR))
    slow = slow_launches(calls)
    for one in distinct(thread[chosen]):
        # a worker such as autograd's goes on where the main thread left off
        host = _Host(operators, calls, slow, profiler_spans, [int(one), main], run)
        mine = chosen[thread[chosen] == one]
        read_by = np.append(calls.read_by, NONE)[gaps.launch[mine]]
        _add_causes(causes, host, gaps, mine, read_by)
    return causes


class _Host:
    """What some threads of the host did, as far as it was recorded."""

    def __init__(
        self,
        operators: Columns,
        calls: Calls,
        slow: Bools,
        profiler: tuple[Int64s, Int64s],
        threads: list[int],
        run: Run,
    ) -> None:
        api = calls.api
        mine = np.flatnonzero(np.isin(api.track, threads))
        self._profiler = Coverage(*profiler)

        def beside_profiler(start_ns: Int64s, end_ns: Int64s) -> Coverage:
            start_ns = np.concatenate([profiler[0], start_ns])
            end_ns = np.concatenate([profiler[1], end_ns])
            order = np.argsort(start_ns, kind="stable")
            return Coverage(start_ns[order], end_ns[order])

        self.start_ns, self.end_ns = run.start_ns, run.code_end_ns
        self.syncs = mine[calls.waits[mine]]
        self.sync_start_ns = api.start_ns[self.syncs]
        self.sync_end_ns = api.end_ns[self.syncs]
        launches = mine[calls.launches[mine]]
        self.launch_start_ns = api.start_ns[launches]
        self.launch_end_ns = api.end_ns[launches]
        self.launching = beside_profiler(self.launch_start_ns, self.launch_end_ns)
        set_up = mine[slow[mine]]
        self.set_up = beside_profiler(api.start_ns[set_up], api.end_ns[set_up])
        self.api = beside_profiler(api.start_ns[mine], api.end_ns[mine])
        other = mine[~(calls.launches | calls.waits)[mine]]
        self.others = beside_profiler(api.start_ns[other], api.end_ns[other])
        theirs = np.flatnonzero(np.isin(operators.track, threads))
        self.api_or_operators = beside_profiler(
            np.concatenate([api.start_ns[mine], operators.start_ns[theirs]]),
            np.concatenate([api.end_ns[mine], operators.end_ns[theirs]]),
        )

    def spent_ns(self, doing: Coverage, from_ns: Int64s, to_ns: Int64s) -> Int64s:
        """Measure what of each span it did so, but for the profiler's own time."""
        theirs = self._profiler.within_ns(from_ns, to_ns)
        return doing.within_ns(from_ns, to_ns) - theirs

    def idle_before_ns(self, launch_ns: Int64s) -> Int64s:
        """Measure from the end of the launch before to each of these launches."""
        before = np.searchsorted(self.launch_start_ns, launch_ns, side="left") - 1
        ends = np.append(self.launch_end_ns, self.start_ns)
        earlier: Int64s = ends[np.where(before >= 0, before, len(ends) - 1)]
        return launch_ns - earlier


def _add_causes(
    causes: GapCauses, host: _Host, gaps: Gaps, mine: Int64s, read_by: Int64s
) -> None:
    start, end = gaps.start_ns[mine], np.minimum(gaps.end_ns[mine], host.end_ns)
    waits = gaps.host_wait_ns()[mine]
    begun_in = _covering(host.sync_start_ns, host.sync_end_ns, start)
    # the launch that ends a gap is the first to begin in it; none ends the last gap
    place = np.searchsorted(host.launch_start_ns, start)
    launch_ns = np.append(host.launch_start_ns, np.iinfo(np.int64).max)[place]
    returned = np.append(host.sync_end_ns, 0)[begun_in]
    # while one thread waits, another may launch, and too slowly
    is_sync = (begun_in != NONE) & (returned <= launch_ns)
    causes.sync[mine[is_sync]] = host.syncs[begun_in[is_sync]]
    pause = host.idle_before_ns(np.minimum(launch_ns, end))
    is_launching = ~is_sync & (launch_ns <= end) & (pause < LAUNCHING_NS)
    # one alone comes after no other
    is_launching &= len(host.launch_start_ns) > 1
    # a wait explains its gap until it returned ...
    since = np.where(is_sync, np.minimum(returned, end), start)
    left = np.where(is_sync, np.minimum(end - since, waits), waits)
    set_up = np.minimum(host.spent_ns(host.set_up, since, end), left)
    # ... and until the queue that it emptied is filled again, where that comes at once
    refills = is_sync & (launch_ns < returned + LAUNCHING_NS)
    left = np.where(refills, set_up, left)
    # to ask for a result is a part of waiting for it
    is_read = is_launching & (read_by != NONE)
    causes.sync[mine[is_read]] = read_by[is_read]
    left = np.where(is_read, set_up, left)
    in_launches = np.minimum(host.spent_ns(host.launching, since, end), left)
    in_api = np.minimum(host.spent_ns(host.api, since, end), left)
    in_either = np.minimum(host.spent_ns(host.api_or_operators, since, end), left)
    # a call of another kind that fills a short pause is no launching
    is_launching &= 2 * host.spent_ns(host.others, since, end) <= left
    launching = np.where(is_launching, left, in_launches) - set_up
    api = np.where(is_launching, 0, in_api - in_launches) + set_up
    operator = np.where(is_launching, 0, in_either - in_api)
    causes.synchronize_ns[mine] = waits - left
    causes.launching_ns[mine] = launching
    causes.api_ns[mine] = api
    causes.operator_ns[mine] = operator
    causes.python_ns[mine] = left - launching - api - operator
    causes.other_at_ns[mine] = (since + end) // 2


def _covering(start_ns: Int64s, end_ns: Int64s, at_ns: Int64s) -> Int64s:
    """Give for each moment the last interval that began before it and holds it."""
    if not len(start_ns):
        return np.full(len(at_ns), NONE, np.int64)
    place = np.searchsorted(start_ns, at_ns, side="right") - 1
    held = (place >= 0) & (at_ns <= end_ns[np.maximum(place, 0)])
    return np.where(held, place, NONE)


def _main_thread(calls: Calls, operators: Columns) -> int:
    """Give the thread that made the first call, or ran the first operator."""
    if len(calls.api):
        return int(calls.api.track[0])
    return int(operators.track[0]) if len(operators) else NONE
