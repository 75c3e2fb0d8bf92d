"""The GPUs once more, under the names, labels and units of NVIDIA's dcgm-exporter.

Boards and alert rules that were written for dcgm-exporter then find their series. A
name is given only where we read the same thing. DCGM's units are its own: percent,
MiB, MHz, mJ.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric

from warpbook_monitors.frames import Device, Frame

_MIB = 1 << 20


class _Alias(NamedTuple):
    name: str
    #: ours
    metric: str
    #: what turns our unit into DCGM's
    factor: float
    meaning: str


_ALIASES = tuple(
    _Alias(f"DCGM_FI_{name}", metric, factor, meaning)
    for name, metric, factor, meaning in (
        ("DEV_GPU_TEMP", "temperature_celsius", 1, "GPU temperature (in C)."),
        (
            "DEV_MEMORY_TEMP",
            "memory_temperature_celsius",
            1,
            "Memory temperature (in C).",
        ),
        ("DEV_POWER_USAGE", "power_watts", 1, "Power draw (in W)."),
        (
            "DEV_TOTAL_ENERGY_CONSUMPTION",
            "energy_joules",
            1000,
            "Energy since the driver was loaded (in mJ).",
        ),
        ("DEV_SM_CLOCK", "sm_clock_mhz", 1, "SM clock frequency (in MHz)."),
        ("DEV_MEM_CLOCK", "memory_clock_mhz", 1, "Memory clock frequency (in MHz)."),
        ("DEV_GPU_UTIL", "gpu_utilization_ratio", 100, "GPU utilization (in %)."),
        (
            "DEV_MEM_COPY_UTIL",
            "memory_utilization_ratio",
            100,
            "Memory utilization (in %).",
        ),
        (
            "DEV_ENC_UTIL",
            "encoder_utilization_ratio",
            100,
            "Encoder utilization (in %).",
        ),
        (
            "DEV_DEC_UTIL",
            "decoder_utilization_ratio",
            100,
            "Decoder utilization (in %).",
        ),
        (
            "DEV_FB_USED",
            "memory_used_bytes",
            1 / _MIB,
            "Framebuffer memory used (in MiB).",
        ),
        (
            "DEV_ECC_SBE_VOL_TOTAL",
            "ecc_corrected_count",
            1,
            "Single-bit ECC errors since the driver was loaded.",
        ),
        (
            "DEV_ECC_DBE_VOL_TOTAL",
            "ecc_uncorrected_count",
            1,
            "Double-bit ECC errors since the driver was loaded.",
        ),
        (
            "DEV_CORRECTABLE_REMAPPED_ROWS",
            "remapped_rows_corrected_count",
            1,
            "Rows remapped for correctable errors.",
        ),
        (
            "DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "remapped_rows_uncorrected_count",
            1,
            "Rows remapped for uncorrectable errors.",
        ),
        (
            "DEV_ROW_REMAP_FAILURE",
            "remapped_rows_failed",
            1,
            "Whether remapping of rows has failed.",
        ),
        (
            "PROF_GR_ENGINE_ACTIVE",
            # GPM's SM activity counts idle SMs; this is whether the engine did anything
            "gpu_utilization_ratio",
            1,
            "Ratio of time in which the graphics or compute engine was active.",
        ),
        (
            "PROF_SM_ACTIVE",
            "sm_active_ratio",
            1,
            "Ratio of cycles in which an SM had a warp, averaged over all SMs.",
        ),
        (
            "PROF_SM_OCCUPANCY",
            "sm_occupancy_ratio",
            1,
            "Ratio of warps resident on an SM to the most that it could hold.",
        ),
        (
            "PROF_PIPE_TENSOR_ACTIVE",
            "tensor_active_ratio",
            1,
            "Ratio of cycles in which a tensor pipe was active.",
        ),
        (
            "PROF_PIPE_TENSOR_HMMA_ACTIVE",
            "hmma_active_ratio",
            1,
            "Ratio of cycles in which the tensor pipe for floats was active.",
        ),
        (
            "PROF_PIPE_TENSOR_IMMA_ACTIVE",
            "imma_active_ratio",
            1,
            "Ratio of cycles in which the tensor pipe for integers was active.",
        ),
        (
            "PROF_PIPE_TENSOR_DFMA_ACTIVE",
            "dfma_active_ratio",
            1,
            "Ratio of cycles in which the tensor pipe for doubles was active.",
        ),
        (
            "PROF_PIPE_FP64_ACTIVE",
            "fp64_active_ratio",
            1,
            "Ratio of cycles in which the FP64 pipe was active.",
        ),
        (
            "PROF_PIPE_FP32_ACTIVE",
            "fp32_active_ratio",
            1,
            "Ratio of cycles in which the FP32 pipe was active.",
        ),
        (
            "PROF_PIPE_FP16_ACTIVE",
            "fp16_active_ratio",
            1,
            "Ratio of cycles in which the FP16 pipe was active.",
        ),
        (
            "PROF_DRAM_ACTIVE",
            "dram_active_ratio",
            1,
            "Ratio of cycles in which the memory interface sent or received data.",
        ),
        (
            "PROF_PCIE_TX_BYTES",
            "pcie_tx_bytes_per_s",
            1,
            "Bytes per second sent over PCIe.",
        ),
        (
            "PROF_PCIE_RX_BYTES",
            "pcie_rx_bytes_per_s",
            1,
            "Bytes per second received over PCIe.",
        ),
        (
            "PROF_NVLINK_TX_BYTES",
            "nvlink_tx_bytes_per_s",
            1,
            "Bytes per second sent over all NVLinks.",
        ),
        (
            "PROF_NVLINK_RX_BYTES",
            "nvlink_rx_bytes_per_s",
            1,
            "Bytes per second received over all NVLinks.",
        ),
    )
)
_FREE = ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).")
_XID = ("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.")


def families(
    devices: Sequence[Device], frame: Frame, xids: Mapping[tuple[str, int], int]
) -> Iterable[Metric]:
    """Give the series of a fresh frame.

    Args:
        devices: as the frame's readings name them.
        frame: the newest.
        xids: by id of the device and number, the newest last.
    """
    metrics: dict[str, Metric] = {}

    def add(name: str, meaning: str, labels: dict[str, str], value: float) -> None:
        if name not in metrics:
            # "unknown" also where DCGM says counter: a counter of ours ends in _total
            metrics[name] = Metric(name, meaning, "unknown")
        metrics[name].add_sample(name, labels, value)

    by_id = {device.id: device for device in devices}
    last_xids = dict(xids.keys())
    for reading in frame.readings:
        device = devices[reading.device]
        if reading.state != "ok" or device.origin == "replay":
            continue
        labels = _labels(device, by_id)
        if labels is None:
            continue
        names = [metric.name for metric in device.metrics]
        values = dict(zip(names, reading.values, strict=False))
        for alias in _ALIASES:
            value = values.get(alias.metric)
            if value is not None:
                add(alias.name, alias.meaning, labels, value * alias.factor)
        free = _free_bytes(device, values)
        if free is not None:
            add(*_FREE, labels, free / _MIB)
        if device.id in last_xids:
            add(*_XID, labels, last_xids[device.id])
    return metrics.values()


def _free_bytes(device: Device, values: Mapping[str, float | None]) -> float | None:
    """What is free; older drivers count what they reserve as used."""
    free, used = values.get("memory_free_bytes"), values.get("memory_used_bytes")
    total = device.facts.get("memory_total_bytes")
    if free is None and used is not None and isinstance(total, int | float):
        return total - used
    return free


def _labels(device: Device, by_id: Mapping[str, Device]) -> dict[str, str] | None:
    """Name a GPU as dcgm-exporter does; None for what it knows nothing of."""
    if device.kind == "mig":
        parent = by_id.get(str(device.facts.get("parent", "")))
        if parent is None:
            return None
        # NVML names an instance "NVIDIA H200 MIG 1g.18gb"
        part = {
            "GPU_I_PROFILE": device.name.partition(" MIG ")[2],
            "GPU_I_ID": str(device.facts.get("gpu_instance_id", "")),
        }
        return {**(_labels(parent, by_id) or {}), **part}
    if device.index is None:
        return None
    return {
        "gpu": str(device.index),
        "UUID": str(device.facts.get("uuid", "")),
        "device": f"nvidia{device.index}",
        "modelName": device.name,
        "Hostname": socket.gethostname(),
        "DCGM_FI_DRIVER_VERSION": str(device.facts.get("driver_version", "")),
    }
