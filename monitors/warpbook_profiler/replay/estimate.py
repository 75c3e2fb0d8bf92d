"""How long the bare run takes: a range from the trace alone, or solved from a time.

From one trace nobody can tell what the profiler took of the host, so a time that the
host decides is a range. A time that was measured without the profiler makes it a
number: the host keeps as much of its recorded time as lets the replay take that long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.program import Program, program_of
from warpbook_profiler.replay.simulation import HostTimes, Replayed, simulate, window_ns
from warpbook_profiler.replay.tax import (
    FIRST_RATIO,
    START_RATIO,
    Taxed,
    relieved,
    taxed,
)

#: of each segment of the host that is kept at least: see `tax`
_SHARE, _LOW_SHARE, _HIGH_SHARE = 0.47, 0.35, 0.95
#: as many times more or less is kept where it was measured: of other operators
_BESIDE, _BARE_NS = 1.15, 1e3
#: the low end takes the profiler's part off twice: Python slows down around it, too
_LOW_TIMES = 2.0
#: and more of it where no operators were recorded
_LOW_TIMES_OF_CALLS = 3.0
#: and the high end divides the first launches by less
_HIGH_FIRST_RATIO = 2.0
#: beyond the ends, as a share of the time, for what varies from run to run
SPREAD_RATIO = 0.06
#: and beyond the recorded time: a sleep of 50 ms was up to 0.5 % longer without it
_SLOWER_RATIO = 0.02
#: a measured time is met so well
_NEAR = 0.005
_MOST_TURNS = 12
#: what no rule explains of one start is a stall beyond these, in ns and of the window
_STALL_NS, _STALL_SHARE = 1e6, 0.1

#: replay and measured time of the same work differ by less
_MISFIT = 0.15

_TOGETHER = (
    "Several threads launched at the same time. A trace does not show which one "
    "delayed the other, so the bare time is rough."
)


@dataclass(frozen=True)
class Bare:
    """A window's program, and how it may have run without the profiler."""

    program: Program
    middle: Replayed
    low: Replayed
    high: Replayed
    #: what the host takes in each of them
    middle_times: HostTimes
    low_times: HostTimes
    high_times: HostTimes
    #: of the ends, with what varies from run to run; hardly more than was recorded
    low_ns: float
    high_ns: float
    middle_ns: float
    #: of the host's recorded time, what `middle` keeps
    host_share: float
    cautions: tuple[str, ...]

    @property
    def replays(self) -> tuple[Replayed, Replayed, Replayed]:
        """Give the low end, the middle and the high end."""
        return self.low, self.middle, self.high


def bare(trace: Trace, measured_ns: float | None = None) -> Bare:
    """Estimate the bare run of a window.

    Args:
        trace: the window.
        measured_ns: the same code's time without the profiler, if it is known.
    """
    program = program_of(trace)
    host = taxed(program, trace)
    program = relieved(program, trace)
    low_share, share, high_share = _shares(trace.run, host)
    low_times = host.kept(
        low_share, _LOW_TIMES if host.has_operators else _LOW_TIMES_OF_CALLS
    )
    high_times = host.kept(
        high_share, first_ratio=_HIGH_FIRST_RATIO, start_ratio=FIRST_RATIO
    )
    low, high = simulate(program, low_times), simulate(program, high_times)
    low_ns = low.window_ns * (1 - SPREAD_RATIO)
    high_ns = high.window_ns * (1 + SPREAD_RATIO)
    times, cautions = host.kept(share), _cautions(program)
    if measured_ns is not None:
        times = _solved(program, host, times, measured_ns)
    middle = simulate(program, times)
    middle_ns = middle.window_ns
    if measured_ns is not None:
        cautions += _misfit(measured_ns, middle_ns)
    # the profiler makes nothing faster, yet another run may be a little slower
    most_ns = program.window_ns * (1 + _SLOWER_RATIO)
    high_ns = max(min(high_ns, most_ns), middle_ns)
    return Bare(
        program=program,
        middle=middle,
        low=low,
        high=high,
        middle_times=times,
        low_times=low_times,
        high_times=high_times,
        low_ns=min(low_ns, middle_ns),
        high_ns=high_ns,
        middle_ns=middle_ns,
        host_share=_host_share(program, times),
        cautions=cautions,
    )


def _shares(run: Run, host: Taxed) -> tuple[float, float, float]:
    """Give what is kept of each segment at least: as measured here, else as anywhere.

    What was measured is of torch's operators.
    """
    recorded = run.calibration.own("recorded", _BARE_NS)
    if recorded is None or not host.has_operators:
        return _LOW_SHARE, _SHARE, _HIGH_SHARE
    shares = (
        _BARE_NS / recorded.high_ns / _BESIDE,
        _BARE_NS / recorded.usual_ns,
        _BARE_NS / recorded.low_ns * _BESIDE,
    )
    low, usual, high = (min(share, _HIGH_SHARE) for share in shares)
    return low, usual, high


def _solved(
    program: Program, host: Taxed, middle: HostTimes, measured_ns: float
) -> HostTimes:
    """Find the host's times with which the replay takes as long as was measured."""

    def late_ns(share: float) -> float:
        return window_ns(program, _family(host, share)) - measured_ns

    if abs(window_ns(program, middle) - measured_ns) <= _NEAR * measured_ns:
        return middle
    if late_ns(2.0) <= 0:
        return _family(host, 2.0)
    if late_ns(0.0) >= 0:
        # the GPU alone takes as long: the host's part decides nothing
        return middle
    share = _root(late_ns, 0.0, 2.0, _NEAR * measured_ns)
    return _family(host, share)


def _family(host: Taxed, share: float) -> HostTimes:
    """Go from no time of the host (0) over all tax taken off (1) to none (2)."""
    first_ratio, start_ratio = (
        ratio - (ratio - 1) * max(share - 1.0, 0.0)
        for ratio in (FIRST_RATIO, START_RATIO)
    )
    kept = host.kept(max(share - 1.0, 0.0), 1.0, first_ratio, start_ratio)
    # the way back from the GPU is the driver's, which the profiler hardly stretches
    return replace(kept, lag_ns=host.lag_ns).scaled(min(share, 1.0))


def _root(
    function: Callable[[float], float], low: float, high: float, near: float
) -> float:
    """Find where an ascending function is about 0 (regula falsi, Illinois)."""
    at_low, at_high = function(low), function(high)
    share, side = high, 0
    for _ in range(_MOST_TURNS):
        share = (low * at_high - high * at_low) / (at_high - at_low)
        value = function(share)
        if abs(value) <= near:
            break
        if value > 0:
            high, at_high = share, value
            at_low = at_low / 2 if side > 0 else at_low
            side = 1
        else:
            low, at_low = share, value
            at_high = at_high / 2 if side < 0 else at_high
            side = -1
    return share


def _host_share(program: Program, times: HostTimes) -> float:
    host, waits = program.host, program.waits
    recorded_ns = float(host.gap_ns.sum() + waits.cost_ns.sum()) + host.tail_ns
    kept_ns = float(times.gap_ns.sum() + times.cost_ns.sum()) + times.tail_ns
    return kept_ns / recorded_ns if recorded_ns else 1.0


def _cautions(program: Program) -> tuple[str, ...]:
    cautions = []
    if program.launching_lanes > 1:
        cautions.append(_TOGETHER)
    stall_ns = float(program.unexplained_ns.max(initial=0.0))
    if stall_ns > max(_STALL_NS, _STALL_SHARE * program.window_ns):
        cautions.append(
            f"One kernel or copy started {stall_ns / 1e6:.1f} ms later than anything "
            "in the trace explains. A stall that happened once makes the bare time "
            "too long."
        )
    return tuple(cautions)


def _misfit(measured_ns: float, middle_ns: float) -> tuple[str, ...]:
    if abs(middle_ns - measured_ns) <= _MISFIT * measured_ns:
        return ()
    return (
        f"The replay of this trace takes {middle_ns / 1e6:.2f} ms at its nearest, and "
        f"{measured_ns / 1e6:.2f} ms were measured without the profiler: the two runs "
        "did different work, or the GPU ran at another clock.",
    )
