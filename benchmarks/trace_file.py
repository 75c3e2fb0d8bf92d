"""Writes a Chrome trace as torch.profiler does: of any size, always the same.

A training loop that never ends: three nested operators with their shapes, a launch
with its two records of flow, a kernel; sometimes a copy, an `.item()`, an all-reduce.
The records come in Kineto's order (operators, calls, work) and in its layout.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HEAD = {
    "schemaVersion": 1,
    "deviceProperties": [
        {
            "id": 0,
            "name": "NVIDIA H200",
            "computeMajor": 9,
            "computeMinor": 0,
            "maxThreadsPerMultiprocessor": 2048,
            "numSms": 132,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerMultiprocessor": 233472,
        }
    ],
    "record_shapes": 1,
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1790857026000000000,
}
_PROCESS, _BEGIN_US = 31337, 4_395_777_568_010.441
_HALF = "c10::BFloat16"
#: operators from outermost to innermost, kernel, typical µs, shapes, stream
_STEPS: list[tuple[tuple[str, ...], str, float, list[list[int]], int]] = [
    (
        ("aten::linear", "aten::matmul", "aten::mm"),
        "nvjet_sm90_tst_192x192_64x4_1x2_h_bz_coopA_NTN",
        400.0,
        [[8192, 4096], [4096, 4096]],
        7,
    ),
    (
        ("aten::gelu", "aten::mul", "aten::add"),
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add"
        "<c10::BFloat16>, std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add)",
        60.0,
        [[8192, 4096], [8192, 4096]],
        7,
    ),
    (
        ("aten::scaled_dot_product_attention", "aten::sdpa", "aten::bmm"),
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>"
        "(pytorch_flash::Flash_fwd_params)",
        100.0,
        [[256, 1024, 128], [256, 128, 1024]],
        7,
    ),
    (
        ("c10d::allreduce_", "record_param_comms", "nccl:all_reduce"),
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        300.0,
        [[16777216]],
        20,
    ),
]
_WEIGHTS = (24, 64, 8, 4)


def write_trace(path: Path, events: int) -> None:
    """Write so many records, and a few more."""
    operators: list[str] = []
    calls: list[str] = []
    work: list[str] = []
    for kind, text in _records(random.Random(1)):
        {"operator": operators, "call": calls, "work": work}[kind].append(text)
        if len(operators) + len(calls) + len(work) >= events and kind == "work":
            break
    with path.open("w") as file:
        head = json.dumps(_HEAD)
        file.write(head[:-1] + ', "traceEvents": [\n')
        for number, text in enumerate(operators + calls + work):
            file.write((",\n" if number else "") + text)
        file.write('\n], "traceName": "trace.json"}')


def _records(dice: random.Random) -> Iterator[tuple[str, str]]:
    """Simulate; times in µs since the beginning."""
    host, external, correlation = 50.0, 0, 100
    free = {7: 0.0, 20: 0.0}
    step = 0

    def launched(
        api: str, cat: str, name: str, stream: int, took: float, args: dict[str, Any]
    ) -> Iterator[tuple[str, str]]:
        nonlocal host, correlation
        correlation += 1
        cost = dice.uniform(3.5, 7.0)
        linked = {"External id": external, "correlation": correlation}
        yield (
            "call",
            _complete("cuda_runtime", api, _PROCESS, _PROCESS, host, cost, linked),
        )
        yield "call", _flow("s", correlation, _PROCESS, _PROCESS, host)
        start = max(host + cost + dice.uniform(1.0, 4.0), free[stream] + 1.1)
        host += cost
        free[stream] = start + took
        args = linked | {"device": 0, "context": 1, "stream": stream} | args
        yield "work", _complete(cat, name, 0, stream, start, took, args)
        yield "work", _flow("f", correlation, 0, stream, start)

    while True:
        step += 1
        names, kernel, typical, dims, stream = dice.choices(_STEPS, _WEIGHTS)[0]
        begin = host
        external += len(names)
        shape = {
            "queued": 0,
            "registers per thread": 168,
            "shared memory": 213_248,
            "blocks per SM": 0.969697,
            "warps per SM": 11.636364,
            "grid": [128, 1, 1],
            "block": [384, 1, 1],
            "est. achieved occupancy %": 0,
        }
        host += dice.uniform(4.0, 10.0)
        took = typical * dice.uniform(0.5, 1.5)
        yield from launched("cudaLaunchKernel", "kernel", kernel, stream, took, shape)
        for depth, name in enumerate(names):
            args = {
                "External id": external - len(names) + depth + 1,
                "Record function id": 0,
                "Concrete Inputs": [""] * len(dims),
                "Input type": [_HALF] * len(dims),
                "Input Strides": [[*dim[1:], 1] for dim in dims],
                "Input Dims": dims,
                "Ev Idx": external - len(names) + depth,
            }
            start, took = begin + depth, host - begin - 2 * depth + 4
            yield (
                "operator",
                _complete("cpu_op", name, _PROCESS, _PROCESS, start, took, args),
            )
        host += 5
        if step % 60 == 0:
            name, size = "Memcpy DtoH (Device -> Pageable)", {"bytes": 4}
            yield from launched("cudaMemcpyAsync", "gpu_memcpy", name, 7, 1.4, size)
            correlation += 1
            waited = max(2.0, free[7] + 3 - host)
            ids = {"External id": external, "correlation": correlation}
            name = "cudaStreamSynchronize"
            yield (
                "call",
                _complete("cuda_runtime", name, _PROCESS, _PROCESS, host, waited, ids),
            )
            host += waited
        if step % 300 == 0:
            name, size = "Memcpy HtoD (Pinned -> Device)", {"bytes": 67_108_864}
            yield from launched("cudaMemcpyAsync", "gpu_memcpy", name, 7, 1220.2, size)


def _complete(
    cat: str,
    name: str,
    pid: int,
    tid: int,
    start: float,
    took: float,
    args: dict[str, Any],
) -> str:
    body = ",\n      ".join(
        f'"{key}": {json.dumps(value)}' for key, value in args.items()
    )
    return (
        f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, '
        f'"tid": {tid},\n    "ts": {_BEGIN_US + start:.3f}, "dur": {took:.3f},\n'
        f'    "args": {{\n      {body}\n    }}\n  }}'
    )


def _flow(phase: str, number: int, pid: int, tid: int, at: float) -> str:
    bound = ', "bp": "e"' if phase == "f" else ""
    return (
        f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, '
        f'"ts": {_BEGIN_US + at:.3f},\n    "cat": "ac2g", "name": "ac2g"{bound}\n  }}'
    )
