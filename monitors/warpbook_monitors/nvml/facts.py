"""What does not change about a GPU, read once: only what NVML answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gate import NotSupported, NvmlError, call

Handle = Any
Fact = str | float | int

# NVML's enums
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_SHUTDOWN, _SLOWDOWN, _MEMORY_MOST = 0, 1, 2
_LINK_ACTIVE = 1

#: FP32 cores per multiprocessor by compute capability (CUDA programming guide,
#: throughput of arithmetic instructions); NVML gives the cores of the whole GPU.
#: Checked on the H200 (16,896 cores, 132 SMs).
_CORES_PER_SM = {"7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128}


def read_facts(gpu: Handle) -> dict[str, Fact]:
    """Read everything; what NVML does not answer is left out.

    Raises:
        DeviceLost: the GPU is gone.
    """
    facts: dict[str, Fact] = {}
    for read in _FACTS:
        try:
            facts.update(read(gpu))
        except NvmlError:
            continue
    cores_per_sm = _CORES_PER_SM.get(str(facts.get("compute_capability")))
    if cores_per_sm and "cuda_core_count" in facts:
        facts["sm_count"] = int(facts["cuda_core_count"]) // cores_per_sm
    return facts


def active_nvlinks(gpu: Handle) -> int | None:
    """Count the NVLinks that are up; None if NVML does not say.

    Raises:
        DeviceLost: the GPU is gone.
    """
    active = 0
    for link in range(nvml.constant("NVML_NVLINK_MAX_LINKS")):
        try:
            active += call("nvmlDeviceGetNvLinkState", gpu, link) == _LINK_ACTIVE
        except nvml.FunctionMissing:
            return None
        except NotSupported:
            return active
        except NvmlError:
            # the first link number that the GPU does not have
            return active if link else None
    return active


def _system(_gpu: Handle) -> Iterator[tuple[str, Fact]]:
    yield "driver_version", call("nvmlSystemGetDriverVersion")
    cuda = call("nvmlSystemGetCudaDriverVersion")
    yield "cuda_version", f"{cuda // 1000}.{cuda % 1000 // 10}"


def memory_total(device: Handle) -> dict[str, Fact]:
    """The size of the memory of a GPU or a MIG instance, if NVML counts it.

    Raises:
        DeviceLost: the device is gone.
    """
    for function in (nvml.MEMORY_V2, "nvmlDeviceGetMemoryInfo"):
        try:
            return {"memory_total_bytes": call(function, device).total}
        except NvmlError:
            continue
    return {}


def _memory(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    yield from memory_total(gpu).items()


def _compute_capability(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    major, minor = call("nvmlDeviceGetCudaComputeCapability", gpu)
    yield "compute_capability", f"{major}.{minor}"


def _mig_mode(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    current, _pending = call("nvmlDeviceGetMigMode", gpu)
    yield "mig_mode", "enabled" if current else "disabled"


def _ecc_mode(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    current, _pending = call("nvmlDeviceGetEccMode", gpu)
    yield "ecc_mode", "enabled" if current else "disabled"


def _nvlinks(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    count = active_nvlinks(gpu)
    if count is not None:
        yield "nvlink_count", count


def _one(name: str, function: str, *arguments: int) -> Callable[[Handle], Any]:
    def read(gpu: Handle) -> Iterator[tuple[str, Fact]]:
        yield name, call(function, gpu, *arguments)

    return read


def _power_limit(gpu: Handle) -> Iterator[tuple[str, Fact]]:
    yield "power_limit_watts", call("nvmlDeviceGetEnforcedPowerLimit", gpu) / 1000


_FACTS: tuple[Callable[[Handle], Iterator[tuple[str, Fact]]], ...] = (
    _one("uuid", "nvmlDeviceGetUUID"),
    _system,
    _memory,
    _power_limit,
    _one(
        "temperature_slowdown_celsius", "nvmlDeviceGetTemperatureThreshold", _SLOWDOWN
    ),
    _one(
        "temperature_shutdown_celsius", "nvmlDeviceGetTemperatureThreshold", _SHUTDOWN
    ),
    _one(
        "memory_temperature_max_celsius",
        "nvmlDeviceGetTemperatureThreshold",
        _MEMORY_MOST,
    ),
    _one("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
    _one("memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY),
    _compute_capability,
    _one("cuda_core_count", "nvmlDeviceGetNumGpuCores"),
    _one("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth"),
    # the most that GPU and board can do together: an idle link slows down
    _one("pcie_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetMaxPcieLinkWidth"),
    _mig_mode,
    _ecc_mode,
    _nvlinks,
)
