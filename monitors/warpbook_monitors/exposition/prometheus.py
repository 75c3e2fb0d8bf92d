"""The newest frame as Prometheus metrics: base units, and nothing that is not known.

A device that is stale or lost, a metric without a reading and every replay are left
out: a series that ends is told by Prometheus as such, a number that stays is not.
`warpbook_last_collect_success` says whether there was a fresh frame at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from warpbook_monitors import metrics
from warpbook_monitors.exposition import dcgm
from warpbook_monitors.frames import Device, DeviceKind, Event, Frame, Unit
from warpbook_monitors.frames import Metric as Column
from warpbook_monitors.sampling.sampler import Message, Sampler

#: an older frame says how things were, not how they are
FRESH_MS = 5000.0

#: Prometheus scrapes every 15 to 60 s; after two that did not come, nobody watches
SCRAPE_WATCH_S = 150.0

#: Prometheus wants base units: the ending of the name, and what to multiply with
_BASE_UNITS: dict[Unit, tuple[str, str, float]] = {
    "mhz": ("_mhz", "_hertz", 1e6),
    "hz": ("_hz", "_hertz", 1.0),
    "ms": ("_ms", "_seconds", 1e-3),
    "bytes_per_s": ("_bytes_per_s", "_bytes_per_second", 1.0),
}
#: what only grows, until the driver is loaded again or the server starts
_COUNTERS = {"energy_joules", "frames_dropped"}
#: Prometheus keeps the ending "_count" for histograms
_PLURALS = {"process_count": "processes"}

_MEANINGS: dict[DeviceKind, dict[str, metrics.MetricKind]] = {
    "gpu": {**metrics.NVML, **metrics.GPM},
    "mig": {**metrics.NVML, **metrics.GPM},
    "host": metrics.HOST,
    "monitor": metrics.MONITOR,
}


class SamplerCollector(Collector):
    """Gives what the sampler read last; a scrape never waits for a device."""

    def __init__(
        self,
        sampler: Sampler,
        on_scrape: Callable[[], None],
        dcgm_aliases: bool = False,
    ) -> None:
        """Call `on_scrape` each time, so that the sampler is kept running.

        Args:
            dcgm_aliases: tell the GPUs under dcgm-exporter's names as well.
        """
        self._sampler = sampler
        self._on_scrape = on_scrape
        self._dcgm_aliases = dcgm_aliases
        #: how often each XID came, by id of the device and its number; the newest last
        self._xids: dict[tuple[str, int], int] = {}
        sampler.listen(self._count)

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not scrape when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Give every family that has a sample now."""
        self._on_scrape()
        frame = self._sampler.newest
        devices = self._sampler.devices
        # absolute, because the clock may be set back
        is_fresh = (
            frame is not None and abs(time.time() * 1000 - frame.time_ms) < FRESH_MS
        )
        yield GaugeMetricFamily(
            "warpbook_last_collect_success",
            "Whether a fresh frame was available: 0 on the scrape that starts the "
            "sampler, and where GPUs are found but none reports anything.",
            value=float(frame is not None and is_fresh and _tells(devices, frame)),
        )
        xids = self._xids
        yield from _infos(devices)
        yield _xid_errors(xids)
        if frame is None or not is_fresh:
            return
        yield from _families(devices, frame)
        if self._dcgm_aliases:
            yield from dcgm.families(devices, frame, xids)

    def _count(self, message: Message) -> None:
        if not isinstance(message, Event) or message.kind != "xid":
            return
        if message.code is not None:
            # a copy: a scrape on another thread may be reading it
            xids = dict(self._xids)
            count = xids.pop((message.device, message.code), 0)
            self._xids = {**xids, (message.device, message.code): count + 1}


def _tells(devices: Sequence[Device], frame: Frame) -> bool:
    """Whether a frame has any value of a GPU, where there is a GPU."""
    gpus = {at for at, device in enumerate(devices) if device.kind in ("gpu", "mig")}
    return not gpus or any(
        any(value is not None for value in reading.values)
        for reading in frame.readings
        if reading.device in gpus
    )


def _infos(devices: Iterable[Device]) -> Iterable[Metric]:
    gpus = InfoMetricFamily("warpbook_gpu", "The GPUs that are read.", labels=["uuid"])
    parts = InfoMetricFamily(
        "warpbook_mig", "The MIG instances that are read.", labels=["uuid", "gpu_uuid"]
    )
    for device in devices:
        if device.origin == "replay" or device.kind not in ("gpu", "mig"):
            continue
        labels = {"name": device.name}
        if device.index is not None:
            labels["index"] = str(device.index)
        if "driver_version" in device.facts:
            labels["driver_version"] = str(device.facts["driver_version"])
        family = gpus if device.kind == "gpu" else parts
        family.add_metric(list(_labels(device).values()), labels)
    return gpus, parts


def _xid_errors(xids: dict[tuple[str, int], int]) -> Metric:
    family = CounterMetricFamily(
        "warpbook_gpu_xid_errors",
        "XID errors that the driver reported while the GPU was read, by their number.",
        labels=["uuid", "xid"],
    )
    for (device, code), count in xids.items():
        family.add_metric([_uuid(device), str(code)], count)
    return family


def _families(devices: tuple[Device, ...], frame: Frame) -> Iterable[Metric]:
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for reading in frame.readings:
        device = devices[reading.device]
        if reading.state != "ok" or device.origin == "replay":
            continue
        if len(reading.values) != len(device.metrics):
            continue  # described anew since the frame
        labels = _labels(device)
        for column, value in zip(device.metrics, reading.values, strict=True):
            if value is None:
                continue
            name, factor = _name(device.kind, column)
            if name not in families:
                known = _MEANINGS[device.kind].get(column.name)
                family = CounterMetricFamily if _grows(column) else GaugeMetricFamily
                families[name] = family(
                    name, known.meaning if known else column.label, labels=list(labels)
                )
            families[name].add_metric(list(labels.values()), value * factor)
    return families.values()


def _grows(column: Column) -> bool:
    counts = column.name.endswith("_count") and column.name not in _PLURALS
    return counts or column.name in _COUNTERS


def _name(kind: DeviceKind, column: Column) -> tuple[str, float]:
    ours, base, factor = _BASE_UNITS.get(column.unit, ("", "", 1.0))
    stem = _PLURALS.get(column.name, column.name.removesuffix("_count"))
    return f"warpbook_{kind}_{stem.removesuffix(ours)}{base}", factor


def _labels(device: Device) -> dict[str, str]:
    if device.kind == "mig":
        parent = str(device.facts.get("parent", ""))
        return {"uuid": _uuid(device.id), "gpu_uuid": _uuid(parent)}
    return {"uuid": _uuid(device.id)} if device.kind == "gpu" else {}


def _uuid(device_id: str) -> str:
    return device_id.removeprefix("gpu:").removeprefix("mig:")
