"""Measures a limit card. `python -m` this with a GPU's UUID, apart from all else.

The fastest of several turns counts: a limit is what was reached, not what is usual.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from warpbook_labs.cases import execution
from warpbook_labs.compiler.nvrtc import CompileError, compile_to_ptx
from warpbook_labs.errors import NotInstalled
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.results.measurements import LimitCard
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call

_MIB = 2**20
_COPY_BYTES = 1024 * _MIB
#: less would stay in the chip's cache
_LEAST_COPY_BYTES = 256 * _MIB
_TURNS = 8
_COPIES = 10
_LAUNCHES = 500
_PATIENCE_S = 20.0
_BLOCK = 512
_BLOCKS = 4096
# NVML's enums
_CLOCK_SM, _CLOCK_MEMORY = 1, 2

_KERNELS = """
extern "C" __global__ void nothing() {}
extern "C" __global__ void copy(uint4* to, const uint4* from, unsigned long long count)
{
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += step) to[i] = from[i];
}
extern "C" __global__ void read(unsigned* to, const uint4* from,
                                unsigned long long count)
{
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (; i < count; i += step) {
        uint4 held = from[i];
        sum += held.x ^ held.y ^ held.z ^ held.w;
    }
    // else the compiler would leave out the reading
    if (sum == 0x5eed1234u) *to = sum;
}
"""


class _NotNow(Exception):
    """It can't be measured as things are; the message says what to do."""


def measure(uuid: str) -> LimitCard:
    """Measure the only GPU that this process sees.

    Raises:
        DriverError: the driver refused.
        NotInstalled: NVRTC is not installed.
        CompileError: NVRTC and the GPU do not fit together.
    """
    device = Device()
    program = device.load(compile_to_ptx(_KERNELS, device.architecture).cubin)
    copy, read, to_device, to_host = _copies(device, program)
    sm_mhz = _number(uuid, "nvmlDeviceGetClockInfo", _CLOCK_SM)
    memory_mhz = _number(uuid, "nvmlDeviceGetClockInfo", _CLOCK_MEMORY)
    power_mw = _number(uuid, "nvmlDeviceGetEnforcedPowerLimit")
    latency_ns = _latency_ns(device, program)
    return LimitCard(
        gpu=device.name,
        uuid=uuid,
        driver=_told("nvmlSystemGetDriverVersion"),
        measured_ms=time.time() * 1000,
        copy_bytes_per_s=copy,
        read_bytes_per_s=read,
        host_to_device_bytes_per_s=to_device,
        device_to_host_bytes_per_s=to_host,
        launch_latency_ns=latency_ns,
        sm_clock_mhz=sm_mhz,
        memory_clock_mhz=memory_mhz,
        power_limit_watts=None if power_mw is None else power_mw / 1000,
        has_ecc=_is_on(uuid, "nvmlDeviceGetEccMode"),
        has_mig=_is_on(uuid, "nvmlDeviceGetMigMode"),
    )


def _copies(device: Device, program: Any) -> tuple[float, float, float, float]:
    """Give bytes per second: copied and read on the device, copied to and from it."""
    size_bytes = min(_COPY_BYTES, device.free_bytes // 8) // _MIB * _MIB
    if size_bytes < _LEAST_COPY_BYTES:
        raise _NotNow("The GPU has too little free memory: stop what holds it.")
    one, other = device.allocate(size_bytes), device.allocate(size_bytes)
    pinned = int(_call(device, "cuMemHostAlloc", size_bytes, 0))
    # no zeros: they draw less power, and may be moved faster
    rng = np.random.default_rng(0).integers(0, 256, 16 * _MIB, dtype=np.uint8)
    for begin in range(0, size_bytes - len(rng) + 1, len(rng)):
        device.upload(one + begin, rng)
    arguments = (
        execution.BufferArgument("to"),
        execution.BufferArgument("from"),
        execution.IntegerArgument(size_bytes // 16),
    )
    copy, read = (
        device.prepare(
            program,
            execution.Launch(name, (_BLOCKS, 1, 1), (_BLOCK, 1, 1), arguments),
            {"to": other, "from": one},
        )
        for name in ("copy", "read")
    )
    driver, stream = device.driver, device.stream

    def on_stream(function: str, to: int, source: int) -> float:
        ask = getattr(driver, function)
        return _fastest_s(device, lambda: ask(to, source, size_bytes, stream))

    within_s = min(
        on_stream("cuMemcpyDtoDAsync", other, one),
        _fastest_s(device, lambda: device.launch(copy)),
    )
    read_s = _fastest_s(device, lambda: device.launch(read))
    to_device_s = on_stream("cuMemcpyHtoDAsync", one, pinned)
    to_host_s = on_stream("cuMemcpyDtoHAsync", pinned, one)
    _call(device, "cuMemFreeHost", pinned)
    device.free(one)
    device.free(other)
    return (
        2 * size_bytes / within_s,
        size_bytes / read_s,
        size_bytes / to_device_s,
        size_bytes / to_host_s,
    )


def _latency_ns(device: Device, program: Any) -> float:
    """Give how long an empty kernel takes from its launch until it is known to end."""
    launch = execution.Launch("nothing", (1, 1, 1), (1, 1, 1), ())
    nothing = device.prepare(program, launch, {})
    took_ns = []
    for _ in range(_LAUNCHES):
        begun_ns = time.perf_counter_ns()
        device.launch(nothing)
        _call(device, "cuStreamSynchronize", device.stream)
        took_ns.append(time.perf_counter_ns() - begun_ns)
    return float(statistics.median(took_ns))


def _fastest_s(device: Device, work: Callable[[], object]) -> float:
    """Time turns of equal work on the GPU's own clock; give the fastest, per work."""
    begin, end = (_call(device, "cuEventCreate", 0) for _ in range(2))
    times_s = []
    for turn in range(_TURNS + 1):
        _call(device, "cuEventRecord", begin, device.stream)
        for _ in range(_COPIES):
            work()
        _call(device, "cuEventRecord", end, device.stream)
        device.wait(_PATIENCE_S)
        # the first one sets up what is set up once
        if turn:
            times_s.append(
                float(_call(device, "cuEventElapsedTime", begin, end)) / 1000
            )
    return min(times_s) / _COPIES


def _call(device: Device, function: str, *given: Any) -> Any:
    error, *values = getattr(device.driver, function)(*given)
    if error:
        raise DriverError(f"CUDA's driver: {function}: {error.name}.")
    return values[0] if values else None


def _told(function: str, *given: Any) -> Any:
    try:
        return call(function, *given)
    except MonitorError:
        return None


def _asked(uuid: str, function: str, *given: Any) -> Any:
    gpu = _told("nvmlDeviceGetHandleByUUID", uuid.encode())
    return None if gpu is None else _told(function, gpu, *given)


def _number(uuid: str, function: str, *given: Any) -> float | None:
    values = _asked(uuid, function, *given)
    return float(values) if values else None


def _is_on(uuid: str, function: str) -> bool | None:
    """Read a mode, which NVML tells together with the one after a reboot."""
    values = _asked(uuid, function)
    return None if values is None else bool(values[0])


def main() -> None:
    """Write the card, or in one line why there is none."""
    try:
        card = measure(sys.argv[1])
    except (DriverError, NotInstalled, CompileError, _NotNow) as problem:
        sys.exit(" ".join(str(problem).split()))
    sys.stdout.buffer.write(msgspec.json.encode(card))


if __name__ == "__main__":
    main()
