"""Reads less often while reading disturbs, and says so.

Judged once a second, from what the monitor measures of itself. A few bad seconds in a
row halve the rate; a longer calm, in which twice the rate would still be within the
bounds, doubles it again.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from warpbook_monitors.sampling.own_cost import Costs

#: of one CPU core, by all of the sampler's threads together
MOST_CPU_RATIO = 0.2
#: of the period between two ticks, until every device has answered
MOST_TICK_RATIO = 0.5
#: every request of the server, kernels' messages included, waits that long
MOST_LAG_MS = 200.0

BAD_SECONDS = 3
CALM_SECONDS = 10
#: what is shown as live is not read less often than this
LEAST_RATE_HZ = 1.0


@dataclass(frozen=True)
class Second:
    """What one second of reading cost."""

    cpu_ratio: float
    #: the median tick
    tick_ms: float
    #: None where no event loop is served
    loop_lag_ms: float | None


class BackOff:
    """How many periods of the base rate lie between two ticks: 1, 2, 4 or 8."""

    def __init__(self, rate_hz: float, most_cpu_ratio: float = MOST_CPU_RATIO) -> None:
        self.step = 1
        #: why it is slower than asked, for a person; empty at the base rate
        self.reason = ""
        self._rate_hz = rate_hz
        self._most_cpu_ratio = most_cpu_ratio
        self._bad_seconds = 0
        self._calm_seconds = 0
        self._ticks_ms: list[float] = []
        #: when the present second began, and the CPU time that was used by then
        self._begin: tuple[float, float] | None = None

    @property
    def rate_hz(self) -> float:
        """How often the devices are read now."""
        return self._rate_hz / self.step

    def sentence(self) -> str:
        """Tell a person; empty at the base rate."""
        if not self.reason:
            return ""
        return (
            f"The devices are read {self.rate_hz:g} times a second instead of "
            f"{self._rate_hz:g}, to reduce overhead: {self.reason}. The rate rises "
            "again when the load allows it."
        )

    def after_tick(self, now_s: float, costs: Costs) -> None:
        """Take what a tick cost, and put into `costs` what comes of it."""
        self._ticks_ms.append(costs.tick_ms or 0.0)
        self._begin = self._begin or (now_s, costs.cpu_s)
        begin_s, begin_cpu_s = self._begin
        if now_s - begin_s >= 1.0:
            cpu_ratio = (costs.cpu_s - begin_cpu_s) / (now_s - begin_s)
            tick_ms = statistics.median(self._ticks_ms)
            self.judge(Second(cpu_ratio, tick_ms, costs.loop_lag_ms))
            self._begin = (now_s, costs.cpu_s)
            self._ticks_ms = []
        costs.rate_hz = self.rate_hz
        costs.back_off = self.sentence()

    def rest(self) -> None:
        """Nobody watches for a while: begin anew."""
        self.step = 1
        self.reason = ""
        self._bad_seconds = self._calm_seconds = 0
        self._ticks_ms = []
        self._begin = None

    def judge(self, second: Second) -> None:
        """Take what a second cost, and change the rate where it must."""
        complaint = self._complaint(second)
        self._bad_seconds = self._bad_seconds + 1 if complaint else 0
        self._calm_seconds = self._calm_seconds + 1 if self._is_calm(second) else 0
        if self._bad_seconds >= BAD_SECONDS and self.rate_hz / 2 >= LEAST_RATE_HZ:
            self._become(self.step * 2, complaint)
        elif self._calm_seconds >= CALM_SECONDS and self.step > 1:
            self._become(self.step // 2, self.reason)

    def _become(self, step: int, reason: str) -> None:
        self.step = step
        self.reason = reason if step > 1 else ""
        self._bad_seconds = self._calm_seconds = 0

    def _complaint(self, second: Second) -> str:
        """What is out of its bounds, in words; empty if nothing is."""
        if second.cpu_ratio > self._most_cpu_ratio:
            return (
                f"reading took {100 * second.cpu_ratio:.1f} % of a CPU core, and "
                f"{100 * self._most_cpu_ratio:.3g} % is the most"
            )
        if second.tick_ms > MOST_TICK_RATIO * 1000 / self.rate_hz:
            return f"the devices took {second.tick_ms:.0f} ms to answer"
        if second.loop_lag_ms is not None and second.loop_lag_ms > MOST_LAG_MS:
            return f"the server's event loop ran {second.loop_lag_ms:.0f} ms late"
        return ""

    def _is_calm(self, second: Second) -> bool:
        """Whether twice the rate would be within the bounds, with room to spare."""
        return (
            second.cpu_ratio * 2 < 0.8 * self._most_cpu_ratio
            and second.tick_ms < 0.8 * MOST_TICK_RATIO * 500 / self.rate_hz
            and (second.loop_lag_ms or 0.0) < MOST_LAG_MS / 2
        )
