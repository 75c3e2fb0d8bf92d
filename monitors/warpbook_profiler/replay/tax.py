"""What the profiler took of the host's time, taken off a program.

No constant is right: a record took 2.4 to 6.0 µs on one host, and a fit of the counts
of operators and calls was off by 21 %. What carries over is to take off more than that
and to keep a floor of each segment, from the end of one call to the end of the next,
since what is kept of a cell's recorded time was 0.37 to 0.59 on H100 and H200:

    kept = max(share · segment, segment - 12 µs · operators - 8 µs · calls)

with a share as `warpbook limits` measured it here, of which 10 % are too much or too
little in the median; else of 0.47, and of 0.35 and 0.95 for the ends of the range: of
133 cells on H100 and H200 that the host decides, the median is off by 10 %.
What the profiler names is taken off whole (its requests for buffers, and its first
launch), and the first four launches, which it makes slow, are divided by five, what
comes before the very first call by eight. A library that writes no operators, such as
JAX, is slowed down around its calls, and no record counts that: the low end takes off
more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warpbook_profiler.events.columns import Category, Int64s, median
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.calls import WAIT, named
from warpbook_profiler.facts.queued_work import late_wakes_ns
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.host import Floats, Host
from warpbook_profiler.replay.program import Program
from warpbook_profiler.replay.simulation import HostTimes
from warpbook_profiler.replay.waits import EVERYTHING

#: taken off for each record of an operator and of a call, at most
_OPERATOR_NS = 12_000.0
_CALL_NS = 8_000.0
#: the first launches of a recording, and by what they are slower
_FIRST_LAUNCHES = 4
FIRST_RATIO = 5.0
#: the same of the time before the first call of all, in which the profiler is set up:
#: 27 cells on an H100 are 2 to 2.5 % off in the median with any ratio from 5 to 10
START_RATIO = 8.0
#: so long a thread takes until it runs again, where fewer waits do not tell more
_WAKE_NS, _FEW_WAITS, _USUAL_TIMES = 100_000.0, 2, 2.0
#: of each of their segments no more is the profiler's: the rest is the program's
_MOST_FIRST_NS = 1_000_000.0


@dataclass(frozen=True)
class Taxed:
    """The host's times less what is the profiler's by name, and what more may be."""

    gap_ns: Floats
    cost_ns: Floats
    lag_ns: Floats
    tail_ns: float
    #: of gap and cost together, and of the tail
    tax_ns: Floats
    tail_tax_ns: float
    #: positions of the first launches
    first: Int64s
    #: the last call, if it waits for all of a GPU, else none
    last: Int64s
    #: operators were recorded, so what they took is counted
    has_operators: bool

    def kept(
        self,
        share: float,
        times: float = 1.0,
        first_ratio: float = FIRST_RATIO,
        start_ratio: float = START_RATIO,
    ) -> HostTimes:
        """Take the tax off, and keep a floor of each segment.

        Args:
            share: of each segment, what is kept at least.
            times: how often the tax is taken off.
            first_ratio: by what the first launches' segments are divided.
            start_ratio: the same of the time before the first call.
        """
        segment = self.gap_ns + self.cost_ns
        ratio = _ratio(segment, times * self.tax_ns, share)
        at_first = _first_ratio(segment[self.first], first_ratio)
        ratio[self.first] = np.minimum(ratio[self.first], at_first)
        # whatever is called first, the profiler is set up on the way to it
        to_call = ratio.copy()
        at_start = _first_ratio(self.gap_ns[:1], start_ratio)
        to_call[:1] = np.minimum(to_call[:1], at_start)
        # a notebook compiles the statement that waits for the GPU, or ends, meanwhile
        at_last = _first_ratio(self.gap_ns[self.last], first_ratio)
        to_call[self.last] = np.minimum(to_call[self.last], at_last)
        late = self.lag_ns * _ratio(self.lag_ns, times * _CALL_NS, share)
        lag = np.where(self.lag_ns > 0, late, self.lag_ns)
        tail = np.array([self.tail_ns])
        tail_ratio = float(_ratio(tail, times * self.tail_tax_ns, share)[0])
        tail_ratio = min(tail_ratio, float(_first_ratio(tail, first_ratio)[0]))
        return HostTimes(
            self.gap_ns * to_call,
            self.cost_ns * ratio,
            lag,
            self.tail_ns * tail_ratio,
        )


def _first_ratio(segment: Floats, ratio: float) -> Floats:
    least = np.maximum(segment / ratio, segment - _MOST_FIRST_NS)
    return np.divide(least, segment, out=np.ones(len(segment)), where=segment > 0)


def _ratio(segment: Floats, tax: Floats | float, share: float) -> Floats:
    least = np.maximum(segment - tax, share * segment)
    return np.divide(least, segment, out=np.ones(len(segment)), where=segment > 0)


def relieved(program: Program, trace: Trace) -> Program:
    """Let work begin at once that was late while the profiler was at work by name."""
    late = program.unexplained_ns
    if not len(late) or not late.any():
        return program
    start = program.pieces.start_ns
    begin_ns = trace.run.start_ns
    began = (start - late).astype(np.int64) + begin_ns
    own = Coverage(*trace.profiler_spans)
    held = own.within_ns(began, start.astype(np.int64) + begin_ns)
    host, waits = program.host, program.waits
    returned = np.append(host.start_ns + waits.cost_ns, 0.0)[program.pieces.launch]
    by_launch = returned + program.after_ns >= start - 1.0
    by_work = program.pieces.before_ns + program.step_ns >= start - 1.0
    return replace(
        program,
        after_ns=np.where(by_launch, program.after_ns - held, program.after_ns),
        step_ns=np.where(by_work, program.step_ns - held, program.step_ns),
        unexplained_ns=late - held,
    )


def taxed(program: Program, trace: Trace) -> Taxed:
    """Take off what the profiler names, and count the records of each segment."""
    events, run, calls = trace.events, trace.run, trace.calls
    host, waits = program.host, program.waits
    own = Coverage(*trace.profiler_spans)
    start, own_start = host.start_ns, run.start_ns
    begins = (start - host.gap_ns).astype(np.int64) + own_start
    starts = start.astype(np.int64) + own_start
    paid = (start + waits.cost_ns).astype(np.int64) + own_start
    late = _late_wakes_ns(program, trace)
    # of a call that found the work done, all is its own time
    of_lag = np.minimum(late, np.maximum(waits.lag_ns, 0.0))
    gap = host.gap_ns - own.within_ns(begins, starts)
    cost = waits.cost_ns - own.within_ns(starts, paid) - (late - of_lag)
    gap, cost = np.maximum(gap, 0.0), np.maximum(cost, 0.0)
    tax = _CALL_NS + _OPERATOR_NS * _operators(trace, host)
    first = np.flatnonzero(calls.launches[host.row])[:_FIRST_LAUNCHES]
    # operators after the last call
    main = np.flatnonzero(host.lane == 0)
    last_ns = run.start_ns + (float(host.end_ns[main[-1]]) if len(main) else 0.0)
    of_main = np.isin(events.track, host.threads[0]) if len(main) else True
    later = events.is_in(Category.OPERATOR) & of_main & (events.start_ns >= last_ns)
    return Taxed(
        gap,
        cost,
        waits.lag_ns - of_lag,
        host.tail_ns,
        tax,
        _OPERATOR_NS * float(np.count_nonzero(later)),
        first,
        _last_wait(program),
        bool(events.is_in(Category.OPERATOR).any()),
    )


def _late_wakes_ns(program: Program, trace: Trace) -> Floats:
    """Measure how much later than is usual each wait returned, with nothing left to do.

    A busy host wakes a thread milliseconds late; the next run is late elsewhere.
    """
    host, begin_ns = program.host, trace.run.start_ns
    # a copy that returns late has carried bytes itself
    waits = np.flatnonzero(named(trace.calls.api, WAIT)[host.row])
    late = late_wakes_ns(
        trace.on_gpu,
        trace.queued,
        host.start_ns[waits].astype(np.int64) + begin_ns,
        host.end_ns[waits].astype(np.int64) + begin_ns,
    )
    usual_ns = _WAKE_NS
    if len(late) > _FEW_WAITS:
        usual_ns = max(usual_ns, _USUAL_TIMES * median(late))
    beyond = np.zeros(len(host))
    beyond[waits] = np.maximum(late - usual_ns, 0.0)
    return beyond


def _last_wait(program: Program) -> Int64s:
    """Find the main thread's last call, if it waits for all of a GPU."""
    main = np.flatnonzero(program.host.lane == 0)[-1:]
    last: Int64s = main[program.waits.kind[main] == EVERYTHING]
    return last


def _operators(trace: Trace, host: Host) -> Floats:
    """Count the records of operators that begin in each call's segment."""
    counts = np.zeros(len(host))
    operators = trace.operators
    begun = (operators.start_ns - trace.run.start_ns).astype(np.float64)
    for lane, threads in enumerate(host.threads):
        mine = np.flatnonzero(host.lane == lane)
        theirs = np.sort(begun[np.isin(operators.track, threads)])
        until = np.searchsorted(theirs, host.end_ns[mine])
        counts[mine] = np.diff(until, prepend=0)
    return counts
