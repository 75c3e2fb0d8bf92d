"""The thread that reads one device, and what is known of it meanwhile."""

from __future__ import annotations

import logging
import queue
import threading
import time

from warpbook_monitors.errors import NoReading
from warpbook_monitors.frames import Device, Reading, State
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.source import Probe

_log = logging.getLogger(__name__)

#: why a device that was not read yet has no values
UNREAD = "Not read yet."
_REST = -1
_STOP = -2


class Reader:
    """Asks one probe, on a thread of its own, and keeps the newest answer."""

    def __init__(
        self, position: int, probe: Probe, answered: threading.Condition, costs: Costs
    ) -> None:
        """Start the thread; `answered` is notified after each read."""
        self._position = position
        self._probe = probe
        self._answered = answered
        self._costs = costs
        self._orders: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._told_device = probe.device
        self._unread = Reading(position, "unavailable", why=UNREAD)
        self._reading = self._unread
        self._asked_ns: int | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"warpbook-{probe.device.id}", daemon=True
        )
        self._thread.start()

    @property
    def device(self) -> Device:
        return self._probe.device

    @property
    def unread(self) -> Reading:
        """What stands for the device at a time at which it was not read."""
        return self._unread

    @property
    def idle(self) -> bool:
        """Whether no read is under way."""
        return self._asked_ns is None

    def ask(self, tick_ns: int) -> bool:
        """Order a read for this tick, unless an earlier one still runs."""
        if not self.idle:
            return False
        self._asked_ns = tick_ns
        self._orders.put(tick_ns)
        return True

    def rest(self) -> None:
        """Let the probe forget what a window must not span."""
        self._orders.put(_REST)

    def stop(self, deadline_s: float) -> bool:
        """End the thread; False if its last read has not come back by then."""
        self._orders.put(_STOP)
        self._thread.join(max(deadline_s - time.monotonic(), 0))
        return not self._thread.is_alive()

    def take_change(self) -> bool:
        """Whether the description changed since this was last asked."""
        device = self._probe.device
        changed = device is not self._told_device
        self._told_device = device
        return changed

    def newest(self, tick_ns: int, stale_after_ns: int) -> Reading:
        """The newest reading, or "stale" if the device has been silent too long."""
        asked_ns = self._asked_ns
        if asked_ns is None or tick_ns - asked_ns < stale_after_ns:
            return self._reading
        silent_s = (tick_ns - asked_ns) / 1e9
        return Reading(
            self._position,
            "stale",
            why=f"The driver has not answered for {silent_s:.1f} s.",
        )

    def _run(self) -> None:
        while (order := self._orders.get()) != _STOP:
            if order == _REST:
                self._probe.rest()
                self._reading = self._unread
                continue
            cpu_s = time.thread_time()
            self._reading = self._read(order)
            self._costs.add_cpu(time.thread_time() - cpu_s)
            with self._answered:
                self._asked_ns = None
                self._answered.notify_all()

    def _read(self, tick_ns: int) -> Reading:
        try:
            values = self._probe.read(tick_ns)
        except NoReading as nothing:
            return Reading(self._position, nothing.state, why=str(nothing))
        except Exception as error:  # noqa: BLE001 - a probe's defect must not end its thread
            why = f"warpbook failed to read it: {error!r}"[:300]
            if self._reading.why != why:
                _log.exception("Reading %s failed.", self._probe.device.id)
            return Reading(self._position, "unavailable", why=why)
        if any(value is not None for value in values):
            return Reading(self._position, "ok", values)
        state, why = self._silence()
        return Reading(self._position, state, why=why)

    def _silence(self) -> tuple[State, str]:
        """Say why none of the metrics has a value."""
        refused = [metric for metric in self.device.metrics if metric.state != "ok"]
        if len(refused) < len(self.device.metrics) or not refused:
            return "unavailable", "None of its metrics currently has a value."
        return refused[0].state, refused[0].why
