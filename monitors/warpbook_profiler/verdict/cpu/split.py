"""Where the time of the thread that ran a cell without GPU work went.

The window is divided, in this order, into a DataLoader's iterator, operators that do
much at once, operators that do little together with the interpreter's short steps
between them, and the rest: the interpreter, or a wait. What the system counted of the
thread's time tells the last two apart.

A machine that others use stretches single events by milliseconds. Whether a call or a
step is short is therefore decided by the median of those that are alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import (
    Bools,
    Category,
    Columns,
    Int32s,
    Int64s,
    rows_by,
)
from warpbook_profiler.events.intervals import Coverage, nesting
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import named
from warpbook_profiler.model.use import CpuTime

#: an operator's overhead was 2 to 15 µs with the profiler on; one that takes
#: less than this has little to do beside it
SMALL_NS = 50_000
#: a longer time between two operators is no step from the one to the next
_STEP_NS = 50_000
_LOADER = re.compile(r"enumerate\(DataLoader\)#")
#: how torch names the work of a backend on the CPU; NCCL's is a kernel
BACKEND_ON_HOST = re.compile(r"(gloo|mpi|ucc):\w")
#: without a core for so much of the time, more workers would only wait, too
_NO_CORE_SHARE = 0.2
_WITH_WORKERS = re.compile(r".*_MultiProcessing")
#: every operator has a namespace; the parts of a program that it names itself have none
_OPERATOR = re.compile(r"\w+::", re.DOTALL)
#: operators within one that only calls them, and what each of them then takes
_MANY, _SMALL_WITHIN_NS = 100, 10_000
#: a busy machine makes calls longer, and not so many times
_MOST_STRETCHED = 4
#: so many are enough for a median that a machine in use does not move
_LEAST_ALIKE = 4
#: two counts of time differ by as much
_LEAST_WAIT_NS = 1_000_000


@dataclass(frozen=True)
class Split:
    """The time, and the events that it was read from."""

    time: CpuTime
    #: outermost operators of the thread, in order, and which of them are small
    calls: Columns
    small: Bools
    #: all operators of the thread outside the DataLoader, with what each took itself
    operators: Columns
    self_ns: Int64s
    #: calls of a DataLoader's iterator
    loader: Columns

    @property
    def workers_lack_cores(self) -> bool:
        """Tell whether a DataLoader has workers, and there are too few cores."""
        has_workers = bool(named(self.loader, _WITH_WORKERS).any())
        return has_workers and self.time.queued_share >= _NO_CORE_SHARE


def split(events: Columns, run: Run) -> Split:
    """Divide the window of a run without GPU work."""
    end_ns = max(run.code_end_ns, run.start_ns)
    every = events.only(Category.OPERATOR)
    inside = every.where((every.start_ns < end_ns) & (every.end_ns > run.start_ns))
    is_loader = named(inside, _LOADER)
    is_operator = named(inside, _OPERATOR) & ~is_loader
    mine = inside.track == _main_thread(inside, is_operator | is_loader)
    loader = inside.where(is_loader & mine)
    loading = _coverage(loader, run.start_ns, end_ns)
    operators = inside.where(is_operator & mine)
    operators = operators.where(~loading.holds(operators.start_ns))
    self_ns, outermost = nesting(operators.start_ns, operators.end_ns)
    calls = operators.where(outermost)
    window_ns = end_ns - run.start_ns
    small = _are_small(calls, operators)
    in_calls = _coverage(calls, run.start_ns, end_ns)
    large_ns = _coverage(calls.where(~small), run.start_ns, end_ns).total_ns
    operators_ns = min(large_ns, in_calls.total_ns)
    steps = _Steps.of(calls, small, loading)
    typical_ns = int(_typical_ns(calls.name, calls.duration_ns)[small].sum())
    typical_ns += steps.typical_ns
    small_ns = in_calls.total_ns - operators_ns + steps.time_ns
    # what is far above the usual is none of the calls' own
    stretched_ns = max(small_ns - _MOST_STRETCHED * typical_ns, 0)
    small_ns -= stretched_ns
    known_ns = loading.total_ns + operators_ns + small_ns + stretched_ns
    rest_ns = max(window_ns - known_ns, 0)
    work = inside.where(named(inside, BACKEND_ON_HOST))
    backend = _coverage(work, run.start_ns, end_ns)
    communication_ns = min(_alone_ns(backend, in_calls, loading), rest_ns)
    rest_ns -= communication_ns
    asleep_ns = _asleep_ns(run, window_ns - communication_ns, rest_ns)
    lost_ns = 0
    if run.cpu is not None and asleep_ns is not None:
        # the thread's own work there is no more than the CPU time that is left
        most_ns = max(run.cpu.thread_ns - typical_ns, 0)
        lost_ns = max(rest_ns - asleep_ns - most_ns, 0)
    around_ns = min(_around_ns(calls, loader, run), asleep_ns or 0)
    waiting_ns = None if asleep_ns is None else asleep_ns - around_ns
    return Split(
        CpuTime(
            window_ns=window_ns,
            loading_ns=loading.total_ns + around_ns,
            operators_ns=operators_ns,
            small_calls_ns=small_ns,
            python_ns=rest_ns - (asleep_ns or 0) - lost_ns,
            waiting_ns=waiting_ns,
            lost_ns=lost_ns + stretched_ns,
            communication_ns=communication_ns,
            calls=len(calls),
            small_calls=int(small.sum()),
            use=run.cpu,
        ),
        calls,
        small,
        operators,
        self_ns,
        loader,
    )


def _main_thread(events: Columns, chosen: Bools) -> int:
    """Give the thread that spent most in operators: the code ran on it."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return 0
    threads = rows_by(events.track[rows])
    busiest = max(threads, key=lambda own: int(events.duration_ns[rows[own]].sum()))
    return int(events.track[rows[busiest[0]]])


def _coverage(events: Columns, from_ns: int, to_ns: int) -> Coverage:
    return Coverage(
        np.clip(events.start_ns, from_ns, to_ns), np.clip(events.end_ns, from_ns, to_ns)
    )


def _are_small(calls: Columns, operators: Columns) -> Bools:
    """Choose the calls that do little, or much by many that do little (unbind)."""
    within = np.searchsorted(operators.start_ns, calls.end_ns) - np.searchsorted(
        operators.start_ns, calls.start_ns
    )
    typical_ns = _typical_ns(calls.name, calls.duration_ns)
    many = within >= _MANY
    small: Bools = (typical_ns <= SMALL_NS) | (
        many & (typical_ns <= within * _SMALL_WITHIN_NS)
    )
    return small


def _typical_ns(kind: Int64s | Int32s, duration_ns: Int64s) -> Int64s:
    """Give for each the median of those of its kind; the own time of a rare one."""
    typical: Int64s = duration_ns.copy()
    for alike in rows_by(kind):
        if len(alike) >= _LEAST_ALIKE:
            typical[alike] = round(float(np.median(duration_ns[alike])))
    return typical


@dataclass(frozen=True)
class _Steps:
    """The interpreter's short steps from or to a small operator."""

    time_ns: int
    #: the same at the median of each kind of step
    typical_ns: int

    @classmethod
    def of(cls, calls: Columns, small: Bools, loading: Coverage) -> _Steps:
        if len(calls) < 2:
            return cls(0, 0)
        from_ns, to_ns = calls.end_ns[:-1], calls.start_ns[1:]
        gap_ns = np.maximum(to_ns - from_ns, 0)
        pair = calls.name[:-1].astype(np.int64) * len(calls.names) + calls.name[1:]
        typical_ns = _typical_ns(pair, gap_ns)
        is_step = (typical_ns <= _STEP_NS) & (small[:-1] | small[1:])
        own_ns = gap_ns - loading.within_ns(from_ns, to_ns)
        return cls(int(own_ns[is_step].sum()), int(typical_ns[is_step].sum()))


def _alone_ns(work: Coverage, calls: Coverage, loading: Coverage) -> int:
    """Measure a backend's work on collectives outside operators and the DataLoader."""
    spans = work.spans
    hidden = calls.within_ns(*spans) + loading.within_ns(*spans)
    return max(work.total_ns - int(hidden.sum()), 0)


def _around_ns(calls: Columns, loader: Columns, run: Run) -> int:
    """Measure what is just around a DataLoader: its workers start and end there."""
    if not named(loader, _WITH_WORKERS).any():
        return 0
    first_ns, last_ns = int(loader.start_ns[0]), int(loader.end_ns.max())
    before = calls.end_ns[calls.end_ns <= first_ns]
    after = calls.start_ns[calls.start_ns >= last_ns]
    begin_ns = int(before.max(initial=run.start_ns))
    end_ns = int(after.min(initial=max(run.code_end_ns, last_ns)))
    return max(first_ns - begin_ns, 0) + end_ns - last_ns


def _asleep_ns(run: Run, window_ns: int, rest_ns: int) -> int | None:
    """Tell how much of the rest the thread slept or waited, as the system counted."""
    if run.cpu is None or run.cpu.queued_ns is None:
        return None
    asleep_ns = window_ns - run.cpu.thread_ns - run.cpu.queued_ns
    return min(asleep_ns, rest_ns) if asleep_ns > _LEAST_WAIT_NS else 0
