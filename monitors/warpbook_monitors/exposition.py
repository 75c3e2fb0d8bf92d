"""The newest frame as Prometheus metrics: base units, and nothing that is not known.

A device that is stale or lost, a metric without a reading and every replay are left
out: a series that ends is told by Prometheus as such, a number that stays is not.
`warpbook_last_collect_success` says whether there was a fresh frame at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from warpbook_monitors.frames import Device, Frame, Unit
from warpbook_monitors.metrics import GPM, HOST, MONITOR, NVML, MetricKind
from warpbook_monitors.sampler import Sampler

#: an older frame says how things were, not how they are
FRESH_MS = 5000.0

#: Prometheus scrapes every 15 to 60 s; after two that did not come, nobody watches
SCRAPE_WATCH_S = 150.0

_KINDS: dict[str, dict[str, MetricKind]] = {
    "gpu": {**NVML, **GPM},
    "host": HOST,
    "monitor": MONITOR,
}
#: Prometheus wants base units: the ending of the name, and what to multiply with
_BASE_UNITS: dict[Unit, tuple[str, str, float]] = {
    "mhz": ("_mhz", "_hertz", 1e6),
    "ms": ("_ms", "_seconds", 1e-3),
    "bytes_per_s": ("_bytes_per_s", "_bytes_per_second", 1.0),
}
_COUNTERS = {"energy_joules", "frames_dropped"}


class SamplerCollector(Collector):
    """Gives what the sampler read last; a scrape never waits for a device."""

    def __init__(self, sampler: Sampler, on_scrape: Callable[[], None]) -> None:
        """Call `on_scrape` each time, so that the sampler is kept running."""
        self._sampler = sampler
        self._on_scrape = on_scrape

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not scrape when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Give every family that has a sample now."""
        self._on_scrape()
        frame = self._sampler.newest
        is_fresh = frame is not None and time.time() * 1000 - frame.time_ms < FRESH_MS
        yield GaugeMetricFamily(
            "warpbook_last_collect_success",
            "Whether a fresh frame was there: 0 on the scrape that wakes the sampler.",
            value=float(is_fresh),
        )
        devices = self._sampler.devices
        yield _info(devices)
        if frame is not None and is_fresh:
            yield from _families(devices, frame)


def _info(devices: Iterable[Device]) -> Metric:
    family = InfoMetricFamily(
        "warpbook_gpu", "The GPUs that are read.", labels=["uuid"]
    )
    for device in devices:
        if device.kind == "gpu" and device.origin == "live":
            told = {
                "index": str(device.index),
                "name": device.name,
                "driver_version": str(device.facts.get("driver_version", "")),
            }
            family.add_metric([_uuid(device)], told)
    return family


def _families(devices: tuple[Device, ...], frame: Frame) -> Iterable[Metric]:
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for reading in frame.readings:
        device = devices[reading.device]
        if reading.state != "ok" or device.origin == "replay":
            continue
        labels = {"uuid": _uuid(device)} if device.kind == "gpu" else {}
        for metric, value in zip(device.metrics, reading.values, strict=True):
            if value is None:
                continue
            kind = _KINDS[device.kind].get(metric.name)
            if kind is None:
                continue
            name, factor = _name(device.kind, kind)
            if name not in families:
                make = (
                    CounterMetricFamily if kind.name in _COUNTERS else GaugeMetricFamily
                )
                families[name] = make(name, kind.meaning, labels=list(labels))
            families[name].add_metric(list(labels.values()), value * factor)
    return families.values()


def _name(device_kind: str, kind: MetricKind) -> tuple[str, float]:
    ours, base, factor = _BASE_UNITS.get(kind.unit, ("", "", 1.0))
    return f"warpbook_{device_kind}_{kind.name.removesuffix(ours)}{base}", factor


def _uuid(device: Device) -> str:
    return device.id.removeprefix("gpu:")
