"""What watching costs: the monitor's own figures, as one more device."""

from __future__ import annotations

import threading
import time

from warpbook_monitors.frames import Device
from warpbook_monitors.metrics import MONITOR
from warpbook_monitors.source import Discovery


class Costs:
    """Where the sampler and the server put what they measure of themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cpu_s = 0.0
        #: how long the last tick took, by the sampler
        self.tick_ms: float | None = None
        #: the worst lag of the last second, by the server; None outside one
        self.loop_lag_ms: float | None = None
        #: how often the devices are read now, and why less often than asked, in words
        self.rate_hz: float | None = None
        self.back_off = ""
        self.viewers: int | None = None
        self.frames_dropped: int | None = None

    def add_cpu(self, seconds: float) -> None:
        """Add CPU time that one of the sampler's threads used."""
        with self._lock:
            self._cpu_s += seconds

    @property
    def cpu_s(self) -> float:
        """CPU time of all of the sampler's threads so far, in seconds."""
        with self._lock:
            return self._cpu_s


class OwnCostSource:
    """Gives the device "monitor"."""

    what = "warpbook's own cost"

    def __init__(self, costs: Costs) -> None:
        """Read from `costs`, which others fill."""
        self._costs = costs

    def open(self) -> Discovery:
        """Give the one probe; it is always there."""
        return Discovery([OwnCostProbe(self._costs)])

    def close(self) -> None:
        """Nothing to give back."""


class OwnCostProbe:
    """Turns the costs into readings; the CPU share is over a second."""

    device = Device(
        id="monitor",
        kind="monitor",
        name="warpbook's own cost",
        index=None,
        origin="live",
        metrics=tuple(kind.on_device() for kind in MONITOR.values()),
    )

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._cpu_ratio: float | None = None
        self._cpu_s = 0.0
        self._since_s = 0.0
        self.rest()

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give the figures in the order of `metrics.MONITOR`."""
        del now_ns
        elapsed_s = time.monotonic() - self._since_s
        if elapsed_s >= 1.0:
            cpu_s = self._costs.cpu_s
            self._cpu_ratio = round((cpu_s - self._cpu_s) / elapsed_s, 5)
            self._cpu_s, self._since_s = cpu_s, time.monotonic()
        costs = self._costs
        return (
            self._cpu_ratio,
            costs.tick_ms,
            costs.loop_lag_ms,
            costs.rate_hz,
            costs.viewers,
            costs.frames_dropped,
        )

    def rest(self) -> None:
        self._cpu_ratio = None
        self._cpu_s = self._costs.cpu_s
        self._since_s = time.monotonic()
