"""What each chart of jupyterlab-nvdashboard is sent, computed from our frames.

The keys, and the units behind them, are those of its release 0.15. An unknown value is
null: its charts leave a hole there. Only GPUs that are measured now are told, because
its front end has no way of saying "replay".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from warpbook.protocol import Device, Frame
from warpbook_monitors.verdicts.link_speeds import nvlink_bytes_per_s, pcie_bytes_per_s

#: the slowest that a chart may be fed is once in ten seconds
_HOLE_S = 15.0

Values = Mapping[str, float | None]
Sample = dict[str, Any]


class Now:
    """A frame as these charts look at it: the live GPUs in order, and the host."""

    def __init__(self, frame: Frame, devices: Sequence[Device]) -> None:
        """Name the values of each device."""
        self.time_ms = frame.time_ms
        self.gpus: list[tuple[Device, Values]] = []
        self.host: Values = {}
        for reading in frame.readings:
            device = devices[reading.device]
            names = [metric.name for metric in device.metrics]
            values = dict(zip(names, reading.values, strict=False))
            if device.kind == "host":
                self.host = values
            elif is_live_gpu(device):
                self.gpus.append((device, values))

    def per_gpu(self, metric: str, factor: float = 1) -> list[float | None]:
        """One value for each GPU."""
        return [_times(values.get(metric), factor) for _, values in self.gpus]

    def fact(self, name: str) -> list[float | None]:
        """One fact for each GPU."""
        facts = [device.facts.get(name) for device, _ in self.gpus]
        return [fact if isinstance(fact, int | float) else None for fact in facts]


def is_live_gpu(device: Device) -> bool:
    """Whether it is a whole GPU that is measured now."""
    return device.kind == "gpu" and device.origin == "live"


class HostBytes:
    """Bytes since the server began: its front end takes differences by itself."""

    _RATES = {
        "disk_read": "disk_read_bytes_per_s",
        "disk_write": "disk_write_bytes_per_s",
        "network_read": "network_rx_bytes_per_s",
        "network_write": "network_tx_bytes_per_s",
    }

    def __init__(self) -> None:
        """Nothing was counted yet."""
        self.total = dict.fromkeys(self._RATES, 0)
        self._last_ms: float | None = None

    def add(self, now: Now) -> None:
        """Count what went since the frame before."""
        elapsed_s = (now.time_ms - (self._last_ms or now.time_ms)) / 1000
        self._last_ms = now.time_ms
        if not 0 <= elapsed_s <= _HOLE_S:
            return  # nobody watched, or the clock was set
        for name, rate in self._RATES.items():
            self.total[name] += round((now.host.get(rate) or 0) * elapsed_s)


def gpu_utilization(now: Now) -> Sample:
    """NVML's utilization in percent."""
    return {"gpu_utilization": now.per_gpu("gpu_utilization_ratio", 100)}


def gpu_usage(now: Now) -> Sample:
    """Memory in bytes."""
    return {
        "memory_usage": now.per_gpu("memory_used_bytes"),
        "total_memory": now.fact("memory_total_bytes"),
    }


def gpu_resource(now: Now) -> Sample:
    """All GPUs together, and each for itself."""
    utilization = now.per_gpu("gpu_utilization_ratio", 100)
    used = now.per_gpu("memory_used_bytes")
    known = [ratio for ratio in utilization if ratio is not None]
    # a GPU that tells only one of the two would bend the share of all
    both = [
        (part, whole)
        for part, whole in zip(used, now.fact("memory_total_bytes"), strict=True)
        if part is not None and whole
    ]
    return {
        "time": now.time_ms,
        "gpu_utilization_total": sum(known) / len(known) if known else None,
        "gpu_memory_total": round(
            100 * sum(part for part, _ in both) / sum(whole for _, whole in both), 2
        )
        if both
        else None,
        "rx_total": _sum(now.per_gpu("pcie_rx_bytes_per_s")),
        "tx_total": _sum(now.per_gpu("pcie_tx_bytes_per_s")),
        "gpu_memory_individual": used,
        "gpu_utilization_individual": utilization,
    }


def pci_stats(now: Now) -> Sample:
    """PCIe in bytes per second, beside what the first GPU's link could do."""
    return {
        "pci_tx": now.per_gpu("pcie_tx_bytes_per_s"),
        "pci_rx": now.per_gpu("pcie_rx_bytes_per_s"),
        "max_rxtx_tp": pcie_bytes_per_s(now.gpus[0][0]) if now.gpus else None,
    }


def nvlink_throughput(now: Now) -> Sample:
    """NVLink in bytes per second, at every rate, beside what the links could do."""
    most = [nvlink_bytes_per_s(device) or 0 for device, _ in now.gpus]
    return {
        "nvlink_rx": now.per_gpu("nvlink_rx_bytes_per_s"),
        "nvlink_tx": now.per_gpu("nvlink_tx_bytes_per_s"),
        "max_rxtx_bw": max(most, default=0) or None,
    }


#: those that need a GPU, by the last part of their route
GPU_CHARTS: dict[str, Callable[[Now], Sample]] = {
    chart.__name__: chart
    for chart in (
        gpu_utilization,
        gpu_usage,
        gpu_resource,
        pci_stats,
        nvlink_throughput,
    )
}


def cpu_resource(now: Now, host_bytes: HostBytes) -> Sample:
    """The host: processors in percent, memory in bytes, traffic in bytes so far."""
    return {
        "time": now.time_ms,
        "cpu_utilization": _times(now.host.get("cpu_ratio"), 100),
        "memory_usage": now.host.get("memory_used_bytes"),
        **host_bytes.total,
    }


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
