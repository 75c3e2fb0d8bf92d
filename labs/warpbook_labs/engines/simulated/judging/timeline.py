"""When everything happens: one host, one engine for each direction, one for kernels.

The host goes on until it has to wait; what it has queued by then is enough to say when
that ends, since nothing that it queues later can come before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, get_args

from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.program import ProgramRefused
from warpbook_labs.results.findings import Bar, Engine

#: of one call, each node of a graph at each replay
MOST_WORK = 200_000
#: of one call
_LONGEST_NS = 10**12


@dataclass(eq=False)
class _Work:
    """One kernel or copy."""

    engine: Engine
    label: str
    line: int
    duration_ns: int
    #: it follows another on its engine after this
    gap_ns: int
    ready_ns: int
    #: takes its time on its stream alone
    is_apart: bool
    missing: int = 0
    next: list[int] = field(default_factory=list)
    begin_ns: int = 0
    end_ns: int | None = None


class Timeline:
    """One call of `run`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.host_ns = 0
        self._bars: list[Bar] = []
        self._work: list[_Work] = []
        #: what may begin, by engine: when it is ready, and which
        self._ready: dict[Engine | Literal["apart"], list[tuple[int, int]]] = {
            engine: [] for engine in ("h2d", "d2h", "compute", "apart")
        }
        self._free_ns: dict[str, int] = {}

    def host_works(self, label: str, duration_ns: float, line: int = 0) -> None:
        begin = self.now_ns
        self.now_ns += _whole(duration_ns)
        self.host_ns += self.now_ns - begin
        if self.now_ns > begin:
            self._bars.append(Bar("host", label, begin, self.now_ns, line))

    def queue(
        self,
        engine: Engine,
        label: str,
        duration_ns: float,
        after: Iterable[int],
        line: int,
        *,
        gap_ns: int,
        is_apart: bool = False,
    ) -> int:
        """Queue a kernel or copy after others.

        Args:
            gap_ns: how long it comes after another on the same engine, at least.
            is_apart: it needs none of the engine, as a kernel of one thread.

        Returns:
            Its number.
        """
        if len(self._work) >= MOST_WORK:
            raise ProgramRefused(
                f"More than {MOST_WORK:,} kernels and copies in one call."
            )
        number = len(self._work)
        earliest = self.now_ns + rates.LAUNCH_LATENCY_NS
        work = _Work(
            engine, label, line, _whole(duration_ns), gap_ns, earliest, is_apart
        )
        for other in after:
            before = self._work[other]
            if before.end_ns is None:
                before.next.append(number)
                work.missing += 1
            else:
                work.ready_ns = max(work.ready_ns, before.end_ns)
        self._work.append(work)
        if not work.missing:
            self._offer(number)
        return number

    def wait(self, work: Iterable[int], line: int = 0) -> None:
        """Let the host wait until all of some work is done."""
        begin = self.now_ns
        ends = [self._end_ns(number) for number in work]
        self.host_ns += rates.SYNCHRONIZE_NS
        self.now_ns = max([begin + rates.SYNCHRONIZE_NS, *ends])
        self._bars.append(Bar("host", "waits", begin, self.now_ns, line))

    def finish(self) -> int:
        ends = [self._end_ns(number) for number in range(len(self._work))]
        return max([self.now_ns, *ends])

    def busy_ns(self, engine: Engine, *, with_apart: bool = True) -> int:
        """Say how long an engine had work, once all is done.

        Args:
            with_apart: count what needs none of the engine, too.
        """
        spans = sorted(
            (work.begin_ns, work.end_ns)
            for work in self._work
            if work.engine == engine
            and work.end_ns is not None
            and (with_apart or not work.is_apart)
        )
        busy_ns = until_ns = 0
        for begin_ns, end_ns in spans:
            busy_ns += max(end_ns - max(begin_ns, until_ns), 0)
            until_ns = max(until_ns, end_ns)
        return busy_ns

    def sum_ns(self, engine: Engine) -> int:
        """Add up what work on an engine takes, also where it is done at one time."""
        return sum(work.duration_ns for work in self._work if work.engine == engine)

    def bars(self) -> list[Bar]:
        """Give all that was done, once it is."""
        done = [
            Bar(work.engine, work.label, work.begin_ns, work.end_ns, work.line)
            for work in self._work
            if work.end_ns is not None
        ]
        return sorted(self._bars + done, key=lambda bar: bar.begin_ns)

    def _end_ns(self, number: int) -> int:
        work = self._work[number]
        while work.end_ns is None:
            self._begin_next()
        return work.end_ns

    def _begin_next(self) -> None:
        _, at, engine = min(
            (self._start_ns(engine, queue[0]), queue[0][1], engine)
            for engine, queue in self._ready.items()
            if queue
        )
        _, number = heappop(self._ready[engine])
        work = self._work[number]
        work.begin_ns = self._start_ns(engine, (work.ready_ns, at))
        work.end_ns = work.begin_ns + work.duration_ns
        if work.end_ns > _LONGEST_NS:
            raise ProgramRefused("A call takes a quarter of an hour of simulated time.")
        if not work.is_apart:
            self._free_ns[engine] = work.end_ns
        for number in work.next:
            follower = self._work[number]
            follower.ready_ns = max(follower.ready_ns, work.end_ns + follower.gap_ns)
            follower.missing -= 1
            if not follower.missing:
                self._offer(number)
        work.next.clear()

    def _start_ns(self, engine: str, queued: tuple[int, int]) -> int:
        ready_ns, number = queued
        free_ns = self._free_ns.get(engine)
        if free_ns is None:
            return ready_ns
        return max(ready_ns, free_ns + self._work[number].gap_ns)

    def _offer(self, number: int) -> None:
        work = self._work[number]
        engine = "apart" if work.is_apart else work.engine
        heappush(self._ready[engine], (work.ready_ns, number))


def _whole(duration_ns: float) -> int:
    """Round a time that may be anything."""
    if not 0 <= duration_ns <= _LONGEST_NS:
        raise ProgramRefused("The time of an operation is invalid.")
    return round(duration_ns)


def thinned(bars: list[Bar], most: int) -> tuple[Bar, ...]:
    """Draw neighbours as one where an engine has too many bars for a picture."""
    if len(bars) > most:
        engines = get_args(Engine)
        bars = [
            bar
            for engine in engines
            for bar in _fewer(
                [bar for bar in bars if bar.engine == engine], most // len(engines)
            )
        ]
    return tuple(sorted(bars, key=lambda bar: bar.begin_ns))


def _fewer(bars: list[Bar], most: int) -> list[Bar]:
    apart_ns = 100
    while len(bars) > most:
        bars = _merged(bars, apart_ns)
        apart_ns *= 2
    return bars


def _merged(bars: list[Bar], apart_ns: int) -> list[Bar]:
    """Draw as one what is so close together."""
    merged = bars[:1]
    for bar in bars[1:]:
        last = merged[-1]
        if bar.begin_ns - last.end_ns > apart_ns:
            merged.append(bar)
            continue
        merged[-1] = Bar(
            bar.engine,
            bar.label if bar.label == last.label else "several",
            last.begin_ns,
            max(last.end_ns, bar.end_ns),
            bar.line if bar.line == last.line else 0,
        )
    return merged
