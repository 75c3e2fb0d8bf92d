"""What a span of time was like, as it is told; `span_statistics` finds it out."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_monitors.verdicts.health import Condition


class MetricSpan(Struct, frozen=True):
    """One metric over a span; None where there was no reading."""

    mean: float | None
    least: float | None
    most: float | None
    #: share of the span that readings cover
    covered_ratio: float


class DeviceSpan(Struct, frozen=True):
    """One device over a span."""

    device: str
    #: by metric name; flags and counters that only grow are left out
    metrics: dict[str, MetricSpan]
    #: None where neither the counter nor the power was read
    energy_joules: float | None
    #: "counter" is NVML's, with at most a quarter of the span filled in from the
    #: power; "power" is reckoned from the power that was read, an estimate
    energy_basis: Literal["counter", "power"] | None
    #: clocks-event reasons that held in the span, with their share of it
    conditions: tuple[Condition, ...]
