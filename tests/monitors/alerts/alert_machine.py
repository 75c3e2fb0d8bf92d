"""A machine on which the alert rules are judged second by second."""

from __future__ import annotations

from warpbook_monitors.alerts.alert import Alert
from warpbook_monitors.alerts.engine import Engine
from warpbook_monitors.alerts.rules import Rules
from warpbook_monitors.alerts.situation import Counters, Situation, look_at
from warpbook_monitors.frames import Device, Frame, Metric, Reading

METRICS = (
    "temperature_celsius",
    "clocks_event_reasons",
    "memory_used_bytes",
    "sm_active_ratio",
    "gpu_utilization_ratio",
    "ecc_corrected_count",
    "ecc_uncorrected_count",
    "remapped_rows_pending",
    "remapped_rows_failed",
)
FACTS = {"memory_total_bytes": 100, "temperature_slowdown_celsius": 90}


def gpu(index: int = 0, origin="live", **facts) -> Device:
    metrics = tuple(Metric(name, "count", name) for name in METRICS)
    name = "NVIDIA H200"
    known = {**FACTS, **facts}
    known = {key: value for key, value in known.items() if value is not None}
    return Device(f"gpu:{index}", "gpu", name, index, origin, metrics, known)


class Machine:
    """One second after the other, as a server would judge them."""

    def __init__(self, *devices: Device, rules: Rules | None = None) -> None:
        self.devices = devices or (gpu(),)
        self.rules = rules or Rules()
        self.engine = Engine()
        self.counters = Counters()
        self.now_ms = 1_000_000.0
        self.changes = 0

    def second(
        self, *readings: dict | str | None, events=(), holders=None, troubles=()
    ) -> tuple[Alert, ...]:
        """Judge a second in which each GPU read these values, or was in this state."""
        self.now_ms += 1000
        rows = tuple(
            Reading(at, values, (), "It does not answer.")
            if isinstance(values, str)
            else Reading(at, "ok", tuple(values.get(name) for name in METRICS))
            for at, values in enumerate(readings)
            if values is not None
        )
        frames = [Frame(0, self.now_ms, rows)] if rows else []
        seen = look_at(self.devices, frames)
        self.counters.follow(self.now_ms, seen)
        situation = Situation(
            self.now_ms, seen, events, holders or {}, self.counters, troubles
        )
        self.changes += self.engine.judge(self.rules, situation)
        return self.holding

    def seconds(self, count: int, *readings, **more) -> tuple[Alert, ...]:
        for _ in range(count):
            self.second(*readings, **more)
        return self.holding

    @property
    def holding(self) -> tuple[Alert, ...]:
        return tuple(a for a in self.engine.alerts if a.until_ms is None)

    @property
    def ended(self) -> tuple[Alert, ...]:
        return tuple(a for a in self.engine.alerts if a.until_ms is not None)


def hot(celsius: float) -> dict:
    return {"temperature_celsius": celsius}
