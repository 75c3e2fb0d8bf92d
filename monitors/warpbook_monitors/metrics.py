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
    ("memory_free_bytes", "bytes", "Memory free", "Device memory that nobody holds."),
    (
        "memory_reserved_bytes",
        "bytes",
        "Memory reserved",
        "Device memory that the driver and its firmware keep for themselves.",
    ),
    ("power_watts", "watts", "Power", "Electrical power of the whole board."),
    (
        "power_limit_watts",
        "watts",
        "Power limit",
        "The power that the board may draw, the lowest of all limits that are set.",
    ),
    ("temperature_celsius", "celsius", "Temperature", "Temperature of the GPU die."),
    (
        "memory_temperature_celsius",
        "celsius",
        "Memory temperature",
        "Temperature of device memory.",
    ),
    ("sm_clock_mhz", "mhz", "SM clock", "Present clock of the multiprocessors."),
    ("memory_clock_mhz", "mhz", "Memory clock", "Present clock of device memory."),
    (
        "clocks_event_reasons",
        "flags",
        "Clocks-event reasons",
        "Bits of NVML's nvmlClocksEventReasons: why the clock is below its maximum.",
    ),
    (
        "performance_state",
        "count",
        "Performance state",
        "Number of the P-state: 0 is the fastest, 15 the slowest.",
    ),
    (
        "encoder_utilization_ratio",
        "ratio",
        "Video encoder",
        "Share of time in which the video encoders (NVENC) were busy.",
    ),
    (
        "decoder_utilization_ratio",
        "ratio",
        "Video decoder",
        "Share of time in which the video decoders (NVDEC) were busy.",
    ),
    (
        "jpeg_utilization_ratio",
        "ratio",
        "JPEG decoder",
        "Share of time in which the JPEG decoders (NVJPG) were busy.",
    ),
    (
        "optical_flow_utilization_ratio",
        "ratio",
        "Optical flow",
        "Share of time in which the optical-flow accelerator (OFA) was busy.",
    ),
    (
        "pcie_link_generation",
        "count",
        "PCIe generation now",
        "Generation at which the PCIe link runs now; it is lowered while idle.",
    ),
    (
        "pcie_link_width",
        "count",
        "PCIe lanes now",
        "Number of lanes with which the PCIe link runs now.",
    ),
    ("process_count", "count", "Processes", "Processes with a compute context."),
    ("energy_joules", "joules", "Energy", "Energy used since the driver was loaded."),
    (
        "ecc_corrected_count",
        "count",
        "ECC corrected",
        "Memory errors that ECC corrected since the driver was loaded.",
    ),
    (
        "ecc_uncorrected_count",
        "count",
        "ECC uncorrected",
        "Memory errors that ECC could not correct since the driver was loaded.",
    ),
    (
        "ecc_corrected_lifetime_count",
        "count",
        "ECC corrected, ever",
        "Memory errors that ECC corrected in the life of the GPU.",
    ),
    (
        "ecc_uncorrected_lifetime_count",
        "count",
        "ECC uncorrected, ever",
        "Memory errors that ECC could not correct in the life of the GPU.",
    ),
    (
        "remapped_rows_corrected_count",
        "count",
        "Rows remapped, corrected",
        "Rows of memory replaced by spare ones after errors that were corrected.",
    ),
    (
        "remapped_rows_uncorrected_count",
        "count",
        "Rows remapped, uncorrected",
        "Rows of memory replaced by spare ones after errors that were not corrected.",
    ),
    (
        "remapped_rows_pending",
        "count",
        "Row remapping pending",
        "1 if a row waits for the next reset of the GPU to be replaced, else 0.",
    ),
    (
        "remapped_rows_failed",
        "count",
        "Row remapping failed",
        "1 if a row could not be replaced (the GPU needs service), else 0.",
    ),
    (
        "retired_pages_count",
        "count",
        "Pages retired",
        "Pages of memory that are not used any more (GPUs before Ampere).",
    ),
    (
        "retired_pages_pending",
        "count",
        "Page retirement pending",
        "1 if a page waits for the next reset of the GPU to be retired, else 0.",
    ),
)

#: From NVML's GPU performance monitoring (GPM), on Hopper and newer; elsewhere the
#: links' figures, which come last, are read by other means.
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
        "hmma_active_ratio",
        "ratio",
        "Tensor, HMMA",
        "Share of time in which the tensor pipe for fp16, bf16, tf32 and fp8 was "
        "active.",
    ),
    (
        "imma_active_ratio",
        "ratio",
        "Tensor, IMMA",
        "Share of time in which the tensor pipe for integers was active.",
    ),
    (
        "dfma_active_ratio",
        "ratio",
        "Tensor, DFMA",
        "Share of time in which the tensor pipe for fp64 was active.",
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

#: What a GPU of any maker may have.
GPU = {**NVML, **GPM}

#: What a MIG instance has for itself: its memory, and what GPM says of its part of
#: the chip; links, clocks, power and temperature belong to the whole GPU.
MIG = {
    **{
        name: NVML[name]
        for name in (
            "memory_used_bytes",
            "memory_free_bytes",
            "memory_reserved_bytes",
            "process_count",
        )
    },
    **{name: kind for name, kind in GPM.items() if kind.unit == "ratio"},
}

#: From the operating system.
HOST = _table(
    ("cpu_ratio", "ratio", "CPU", "Busy share of all CPU cores together."),
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
        "Share of one CPU core that the sampler's threads used.",
    ),
    ("tick_ms", "ms", "Tick", "Time from the tick to the last device's answer."),
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

#: What no GPU can mean is more: NVML fills what it does not know with all bits set.
MOST: dict[Unit, float] = {
    "ratio": 1.05,
    "bytes": 2.0**50,
    "bytes_per_s": 1e13,
    "watts": 1e5,
    "celsius": 200.0,
    "mhz": 1e5,
    "joules": 1e15,
    "count": 2.0**32 - 2,
    "flags": 2.0**53,
}

#: Why the two kinds of "utilization" differ, for every view that shows both.
UTILIZATION_NOTE = (
    "NVML's “GPU utilization” counts any moment in which a kernel or a copy was "
    "running, so one tiny kernel or a copy reads 100 %; SM active, tensor and DRAM "
    "say how much of the chip was really working."
)
