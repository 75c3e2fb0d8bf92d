"""When a live profile may open its next window, and how long that may be.

All that profiling takes is added up. The next window waits until this, and what the
window itself will take, is below the share of the run that it may take.
"""

from __future__ import annotations

import math

_LONGEST_NS = 1_000_000_000
#: reading takes some 8 µs an event, on the cell's own thread
_MOST_EVENTS = 40_000
#: longer windows come more rarely; so long a person waits to see the report grow
_MOST_WAIT_NS = 10_000_000_000
#: nobody reads reports that come more often
_PAUSE_NS = 2_000_000_000
#: after a window that went wrong
_LONG_PAUSE_NS = 10_000_000_000
#: also before anything is known: 100 ms hold fewer than 50,000 events of any program
_SHORTEST_NS = 100_000_000
_FIXED_COST_NS = 20_000_000
_FIRST_COST_RATE = 0.3
#: a window may cost more than the one before
_CAUTION = 1.5
#: buckets for each factor of e: neighbours are 2 % apart, so a middle is 1 % off
_RESOLUTION = 50


class Plan:
    """Bounds what the windows of one cell take; times are in ns of one clock."""

    def __init__(self, share: float, start_ns: int) -> None:
        """Bound it to this share of the time since the start."""
        self.share = share
        #: of the next window
        self.length_ns = _SHORTEST_NS
        self.overhead_ns = 0
        self._start_ns = start_ns
        self._cost_rate = _FIRST_COST_RATE
        self._not_before_ns = start_ns

    def may_open(self, now_ns: int, step_ns: float, beside_ns: int = 0) -> bool:
        """Whether a window may open now.

        Args:
            now_ns: now.
            step_ns: of a step, which is never cut.
            beside_ns: what was taken elsewhere, and counts too.
        """
        if now_ns < self._not_before_ns:
            return False
        cost_ns = _FIXED_COST_NS + self._cost_rate * max(self.length_ns, step_ns)
        taken_ns = self.overhead_ns + beside_ns + _CAUTION * cost_ns
        return taken_ns <= self.share * (now_ns - self._start_ns)

    def took(
        self, now_ns: int, recorded_ns: int, overhead_ns: int, events: int
    ) -> None:
        """Take what a window was like, and plan the next."""
        self.overhead_ns += overhead_ns
        self._not_before_ns = now_ns + _PAUSE_NS
        if recorded_ns > 0:
            self._cost_rate = overhead_ns / recorded_ns
            readable_ns = round(_MOST_EVENTS * recorded_ns / max(events, 1))
            budget_ns = self.share * _MOST_WAIT_NS / _CAUTION
            affordable_ns = round(budget_ns * recorded_ns / max(overhead_ns, 1))
            wanted_ns = min(max(affordable_ns, _SHORTEST_NS), _LONGEST_NS)
            self.length_ns = min(readable_ns, wanted_ns)

    def failed(self, now_ns: int, overhead_ns: int) -> None:
        """Take that a window gave nothing."""
        self.overhead_ns += overhead_ns
        self._not_before_ns = now_ns + _LONG_PAUSE_NS


class Durations:
    """A histogram with buckets of equal ratio; some hundred numbers at most."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_ns = 0
        self._counts: dict[int, int] = {}

    def add(self, duration_ns: int) -> None:
        bucket = int(math.log(max(duration_ns, 1)) * _RESOLUTION)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        self.longest_ns = max(self.longest_ns, duration_ns)

    def quantile(self, share: float) -> float:
        """Give the duration in ns that this share of all does not exceed; 0 of none.

        Any thread may ask while another counts.
        """
        counts = sorted(self._counts.copy().items())
        wanted = share * sum(count for _, count in counts)
        for bucket, count in counts:
            wanted -= count
            if wanted <= 0:
                middle = math.exp((bucket + 0.5) / _RESOLUTION)
                return min(middle, float(self.longest_ns))
        return 0.0
