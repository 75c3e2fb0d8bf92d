"""Which lines stand together when a span is explored: those of the live charts.

The live charts' own table is `frontend/src/dashboard/tiles/tiles.ts`, their colours
are in `frontend/style/colours.css`; a test holds these against both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpbook.colours import SERIES
from warpbook_monitors.frames import Device, Metric, Unit

#: by title, the metrics of each chart in the order of their colours
CHARTS: dict[str, tuple[str, ...]] = {
    "NVML says": ("gpu_utilization_ratio", "memory_utilization_ratio"),
    "What the chip does": (
        "sm_active_ratio",
        "sm_occupancy_ratio",
        "tensor_active_ratio",
        "fp32_active_ratio",
        "dram_active_ratio",
    ),
    "Memory": ("memory_used_bytes",),
    "Power": ("power_watts",),
    "Temperature": ("temperature_celsius", "memory_temperature_celsius"),
    "PCIe": ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"),
    "NVLink": ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"),
    "Clocks": ("sm_clock_mhz", "memory_clock_mhz"),
    "Tensor pipes": ("hmma_active_ratio", "imma_active_ratio", "dfma_active_ratio"),
    "CUDA-core pipes": (
        "fp32_active_ratio",
        "fp16_active_ratio",
        "fp64_active_ratio",
        "integer_active_ratio",
    ),
    "Video and images": (
        "encoder_utilization_ratio",
        "decoder_utilization_ratio",
        "jpeg_utilization_ratio",
        "optical_flow_utilization_ratio",
    ),
    "CPU": ("cpu_ratio",),
    "Disk": ("disk_read_bytes_per_s", "disk_write_bytes_per_s"),
    "Network": ("network_rx_bytes_per_s", "network_tx_bytes_per_s"),
}
#: what no chart has, by unit; what is not named here is a state or a count
_REST: dict[Unit, str] = {
    "ratio": "More shares",
    "bytes_per_s": "More traffic",
    "bytes": "More memory",
    "watts": "More power",
    "mhz": "More clocks",
    "celsius": "More temperatures",
    "hz": "Rates",
    "ms": "Times",
}
#: more lines than this could not be told apart
MOST_LINES = len(SERIES["light"])


@dataclass(frozen=True)
class HistoryChart:
    """One plot: its title, and its metrics with their places in the description."""

    title: str
    unit: Unit
    lines: Sequence[tuple[int, Metric]]


def history_charts(device: Device) -> Iterator[HistoryChart]:
    """Give the plots of a device; a metric that it does not have has no line."""
    places = {
        metric.name: (place, metric)
        for place, metric in enumerate(device.metrics)
        if metric.state == "ok"
    }
    for title, names in CHARTS.items():
        lines = [places[name] for name in names if name in places]
        if lines:
            yield HistoryChart(title, lines[0][1].unit, lines)
    charted = {name for names in CHARTS.values() for name in names}
    for unit, title in _REST.items():
        rest = [
            place
            for name, place in places.items()
            if place[1].unit == unit and name not in charted
        ]
        for first in range(0, len(rest), MOST_LINES):
            yield HistoryChart(title, unit, rest[first : first + MOST_LINES])
