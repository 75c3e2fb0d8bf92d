"""What the lab "occupancy" claims, measured: a kernel with fewer warps may be faster.

    python -m benchmarks.lab_occupancy

Needs a GPU with cuda-bindings and NVRTC. The lab's own kernels are compiled for it; the
driver's count of resident blocks is held against ours; each is timed with CUDA events,
after a warm-up, the variants in turns, and the median is told.
"""

from __future__ import annotations

import ctypes
import statistics
from pathlib import Path
from typing import Any

from cuda.bindings import driver, nvrtc

from warpbook_labs.compiler.nvrtc import VERBOSE
from warpbook_labs.results.occupancy import held, read_log

_LAB = Path(__file__).parents[1] / "labs/catalogue/memory/occupancy"
_COLUMNS, _ROWS = 1 << 22, 64
_STREAM_BYTES = 1 << 30
_TURNS = 30
#: each thread reads LOADS numbers, all asked for before the first is used
_STREAM = """
#define STREAM(NAME, LOADS) \\
extern "C" __global__ void __launch_bounds__(256) \\
NAME(const float* x, float* y, int n) { \\
    long long base = (long long)blockIdx.x * 256 * LOADS + threadIdx.x; \\
    float v[LOADS]; \\
    _Pragma("unroll") \\
    for (int k = 0; k < LOADS; k++) v[k] = __ldcs(x + base + k * 256); \\
    _Pragma("unroll") \\
    for (int k = 0; k < LOADS; k++) __stcs(y + base + k * 256, v[k]); \\
}
STREAM(stream_1, 1)
STREAM(stream_4, 4)
STREAM(stream_8, 8)
"""


def main() -> None:
    """Measure, and print two tables."""
    _ask(driver.cuInit(0))
    device = _ask(driver.cuDeviceGet(0))
    context = _ask(driver.cuDevicePrimaryCtxRetain(device))
    _ask(driver.cuCtxSetCurrent(context))
    kind = driver.CUdevice_attribute
    major, minor = (
        _ask(driver.cuDeviceGetAttribute(attribute, device))
        for attribute in (
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    name = _ask(driver.cuDeviceGetName(96, device)).decode().strip("\0 ")
    print(f"{name}, sm_{major}{minor}")
    x, y, w = (_ask(driver.cuMemAlloc(_STREAM_BYTES)) for _ in range(3))
    for buffer in (x, y, w):
        _ask(driver.cuMemsetD32(buffer, 0x3F800000, _STREAM_BYTES // 4))
    architecture = f"sm_{major}{minor}"
    rows = _variants(
        (_LAB / "kernels.cu").read_text(encoding="utf-8"),
        architecture,
        [
            (f"sums_{outputs}_held_{blocks}", 0)
            for outputs in (32, 64)
            for blocks in (8, 4, 2)
        ],
        lambda kernel: (
            _COLUMNS // 256,
            (x, w, y, _COLUMNS, _ROWS),
            (None, None, None, ctypes.c_int, ctypes.c_int),
        ),
    )
    # out has as many rows as outputs: 64 * 2^22 floats are 1 GiB, as x
    for row, flops in zip(rows, (32, 32, 32, 64, 64, 64), strict=True):
        row.append(f"{2 * flops * _ROWS * _COLUMNS / row[-1] / 1e3:,.1f} TFLOP/s")
    _table(rows)
    shared = (0, 24 << 10, 48 << 10, 100 << 10)
    rows = _variants(
        _STREAM,
        architecture,
        [(f"stream_{loads}", size) for loads in (1, 4, 8) for size in shared],
        lambda kernel: (
            _STREAM_BYTES // 4 // 256 // int(kernel.rsplit("_", 1)[1]),
            (x, y, 0),
            (None, None, ctypes.c_int),
        ),
    )
    for row in rows:
        row.append(f"{2 * _STREAM_BYTES / row[-1] / 1e3:,.2f} TB/s")
    _table(rows)


def _variants(source: str, architecture: str, kernels: Any, launch: Any) -> list[Any]:
    cubin, log = _compiled(source, architecture)
    resources, _ = read_log(log)
    module = _ask(driver.cuModuleLoadData(cubin))
    prepared = []
    for name, shared in kernels:
        function = _ask(driver.cuModuleGetFunction(module, name.encode()))
        if shared:
            most = driver.CUfunction_attribute
            which = most.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _ask(driver.cuFuncSetAttribute(function, which, shared))
        ours = held(resources[name], 256, shared)
        theirs = _ask(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 256, shared)
        )
        grid, values, types = launch(name)
        arguments = (tuple(map(_plain, values)), tuple(map(_type, types)))
        row = [name, shared, resources[name].registers]
        row += [
            resources[name].spill_store_bytes,
            f"{ours.occupancy:.0%}" if ours else "?",
        ]
        row += [ours.blocks if ours else "?", theirs]
        prepared.append((function, grid, shared, arguments, row))
    times: list[list[float]] = [[] for _ in prepared]
    for turn in range(_TURNS + 3):
        for number, (function, grid, shared, arguments, _) in enumerate(prepared):
            taken = _timed(function, grid, shared, arguments)
            if turn >= 3:
                times[number].append(taken)
    return [
        [*variant[-1], round(statistics.median(taken) * 1e6)]
        for variant, taken in zip(prepared, times, strict=True)
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else int(value)


def _type(kind: Any) -> Any:
    return ctypes.c_void_p if kind is None else kind


def _timed(function: Any, grid: int, shared: int, arguments: Any) -> float:
    start, end = (_ask(driver.cuEventCreate(0)) for _ in range(2))
    _ask(driver.cuEventRecord(start, 0))
    _ask(
        driver.cuLaunchKernel(function, grid, 1, 1, 256, 1, 1, shared, 0, arguments, 0)
    )
    _ask(driver.cuEventRecord(end, 0))
    _ask(driver.cuEventSynchronize(end))
    taken = _ask(driver.cuEventElapsedTime(start, end))
    for event in (start, end):
        _ask(driver.cuEventDestroy(event))
    return float(taken)


def _compiled(source: str, architecture: str) -> tuple[bytes, str]:
    program = _ask(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
    options = [f"--gpu-architecture={architecture}".encode(), VERBOSE.encode()]
    _ask(nvrtc.nvrtcCompileProgram(program, len(options), options))
    log = bytearray(_ask(nvrtc.nvrtcGetProgramLogSize(program)))
    _ask(nvrtc.nvrtcGetProgramLog(program, log))
    cubin = bytearray(_ask(nvrtc.nvrtcGetCUBINSize(program)))
    _ask(nvrtc.nvrtcGetCUBIN(program, cubin))
    return bytes(cubin), log.decode()


def _ask(answer: Any) -> Any:
    """Give what a call of CUDA returned, or raise its error."""
    error, *rest = answer
    if int(error):
        raise RuntimeError(str(error))
    return rest[0] if len(rest) == 1 else rest


def _table(rows: list[Any]) -> None:
    head = ["kernel", "shared", "regs", "spilled", "occupancy", "ours", "driver", "ns"]
    for row in [[*head, "rate"], *rows]:
        print("  ".join(f"{cell!s:>14}" for cell in row))
    print()


if __name__ == "__main__":
    main()
