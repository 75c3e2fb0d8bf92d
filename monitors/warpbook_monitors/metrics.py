"""Every metric by name: unit, label, and what it means in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from warpbook_monitors.frames import Metric, State, Unit


@dataclass(frozen=True)
class MetricKind:
    """What a metric is, whatever device it is read from."""

    name: str
    unit: Unit
    label: str
    meaning: str

    def on_device(self, state: State = "ok", why: str = "") -> Metric:
        """Describe this metric for one device."""
        return Metric(self.name, self.unit, self.label, state, why)


def _table(*rows: tuple[str, Unit, str, str]) -> dict[str, MetricKind]:
    return {row[0]: MetricKind(*row) for row in rows}


#: From NVML proper, on every NVIDIA GPU that supports the call.
NVML = _table(
    (
        "gpu_utilization_ratio",
        "ratio",
        "GPU utilization (NVML)",
        "Share of time in which at least one kernel or copy was running, however "
        "little of the chip it used.",
    ),
    (
        "memory_utilization_ratio",
        "ratio",
        "Memory utilization (NVML)",
        "Share of time in which device memory was being read or written at all.",
    ),
    ("memory_used_bytes", "bytes", "Memory used", "Device memory held by processes."),
    ("power_watts", "watts", "Power", "Electrical power of the whole board."),
    ("temperature_celsius", "celsius", "Temperature", "Temperature of the GPU die."),
    ("sm_clock_mhz", "mhz", "SM clock", "Present clock of the multiprocessors."),
    ("memory_clock_mhz", "mhz", "Memory clock", "Present clock of device memory."),
    (
        "clocks_event_reasons",
        "flags",
        "Clocks-event reasons",
        "Bits of NVML's nvmlClocksEventReasons: why the clock is below its maximum.",
    ),
    ("process_count", "count", "Processes", "Processes with a compute context."),
    (
        "energy_joules",
        "joules",
        "Energy",
        "Energy used since the driver was loaded.",
    ),
)

#: From NVML's GPU performance monitoring (GPM), on Hopper and newer.
GPM = _table(
    (
        "sm_active_ratio",
        "ratio",
        "SM active",
        "Share of time in which a multiprocessor had at least one warp, "
        "averaged over all of them.",
    ),
    (
        "sm_occupancy_ratio",
        "ratio",
        "Occupancy",
        "Warps resident on the multiprocessors over the most they could hold.",
    ),
    (
        "tensor_active_ratio",
        "ratio",
        "Tensor",
        "Share of time in which a tensor pipe was active.",
    ),
    (
        "fp32_active_ratio",
        "ratio",
        "FP32",
        "Share of time in which the FP32 pipe was active.",
    ),
    (
        "fp64_active_ratio",
        "ratio",
        "FP64",
        "Share of time in which the FP64 pipe was active.",
    ),
    (
        "fp16_active_ratio",
        "ratio",
        "FP16",
        "Share of time in which the FP16 pipe (not the tensor cores) was active.",
    ),
    (
        "integer_active_ratio",
        "ratio",
        "Integer",
        "Share of time in which the integer pipe was active.",
    ),
    (
        "dram_active_ratio",
        "ratio",
        "DRAM",
        "Device-memory traffic over the most that the memory could move.",
    ),
    (
        "pcie_rx_bytes_per_s",
        "bytes_per_s",
        "PCIe in",
        "Bytes per second that the GPU received over PCIe.",
    ),
    (
        "pcie_tx_bytes_per_s",
        "bytes_per_s",
        "PCIe out",
        "Bytes per second that the GPU sent over PCIe.",
    ),
    (
        "nvlink_rx_bytes_per_s",
        "bytes_per_s",
        "NVLink in",
        "Bytes per second that the GPU received over all NVLinks.",
    ),
    (
        "nvlink_tx_bytes_per_s",
        "bytes_per_s",
        "NVLink out",
        "Bytes per second that the GPU sent over all NVLinks.",
    ),
)

#: From the operating system.
HOST = _table(
    ("cpu_ratio", "ratio", "CPU", "Busy share of all processors together."),
    ("memory_used_bytes", "bytes", "Memory used", "Host memory that is not available."),
    (
        "disk_read_bytes_per_s",
        "bytes_per_s",
        "Disk read",
        "Bytes per second read from all disks.",
    ),
    (
        "disk_write_bytes_per_s",
        "bytes_per_s",
        "Disk write",
        "Bytes per second written to all disks.",
    ),
    (
        "network_rx_bytes_per_s",
        "bytes_per_s",
        "Network in",
        "Bytes per second received on all interfaces but loopback.",
    ),
    (
        "network_tx_bytes_per_s",
        "bytes_per_s",
        "Network out",
        "Bytes per second sent on all interfaces but loopback.",
    ),
)

#: What watching costs, measured by the monitor itself.
MONITOR = _table(
    (
        "sampler_cpu_ratio",
        "ratio",
        "Sampler",
        "Share of one processor core that the sampler's threads used.",
    ),
    (
        "tick_ms",
        "ms",
        "Tick",
        "Time from the tick to the last device's answer.",
    ),
    (
        "loop_lag_ms",
        "ms",
        "Event-loop lag",
        "How late the server's event loop ran a timer, the worst of the last second.",
    ),
    (
        "rate_hz",
        "hz",
        "Rate",
        "How often the devices are read now: less than asked while reading disturbs.",
    ),
    ("viewers", "count", "Viewers", "Open subscriptions to the stream."),
    (
        "frames_dropped",
        "count",
        "Frames dropped",
        "Frames that slow viewers did not get, since the server started.",
    ),
)

#: Why the two kinds of "utilization" differ, for every view that shows both.
UTILIZATION_NOTE = (
    "NVML's “GPU utilization” counts any moment in which a kernel or a copy was "
    "running, so one tiny kernel or a copy reads 100 %; SM active, tensor and DRAM "
    "say how much of the chip was really working."
)
