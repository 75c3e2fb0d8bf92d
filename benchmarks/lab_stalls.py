"""Samples the kernels of the lab "where-do-the-warps-wait", for its recordings.

    python -m benchmarks.lab_stalls FILE

Needs a GPU with cuda-bindings, NVRTC and CUPTI. Each kernel is timed, then sampled in a
launch of its own, and FILE, the lab's recorded.json, gets what was sampled: by
instruction, with CUPTI's own names of reasons.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from warpbook_labs.cases.execution import BufferArgument, IntegerArgument, Launch
from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.gpu.driver import Device, Prepared
from warpbook_profiler.stalls.line_table import LineTable
from warpbook_profiler.stalls.sampler import sampling

_LAB = Path(__file__).parents[1] / "labs/catalogue/profile/where_do_the_warps_wait"
_ROWS, _THREADS, _PATIENCE_S = 1 << 19, 256, 10.0
#: blocks, where they are few
_BLOCKS = {"long_chain": 132, "rows_by_warps": _ROWS // 8}
_SMALL = {"long_chain": 32}
_TURNS = 20
#: a sample of each multiprocessor every two to the power of this many cycles
_PERIOD = 10
_STALLED = "smsp__pcsamp_warps_issue_stalled_"


def main(to: Path) -> None:
    """Record all kernels of the lab."""
    source = (_LAB / "kernels.cu").read_text(encoding="utf-8")
    device = Device()
    cubin = compile_to_ptx(source, device.architecture).cubin
    table, program = LineTable(cubin), device.load(cubin)
    addresses = {
        "x": device.allocate(_ROWS * 64 * 4),
        "out": device.allocate(_ROWS * 4),
    }
    values = np.random.default_rng(0).random(_ROWS * 64, np.float32)
    device.upload(addresses["x"], values)
    kernels: list[dict[str, Any]] = []
    launches: list[Prepared] = []
    for name in sorted(table.functions):
        blocks = _BLOCKS.get(name, _ROWS // _THREADS)
        threads = _SMALL.get(name, _THREADS)
        given = BufferArgument("x"), BufferArgument("out"), IntegerArgument(_ROWS)
        launch = Launch(name, (blocks, 1, 1), (threads, 1, 1), given)
        prepared = device.prepare(program, launch, addresses)
        times = [device.timed_ns([prepared], _PATIENCE_S) for _ in range(_TURNS)]
        launches.append(prepared)
        time_ns = round(statistics.median(times[1:]))
        kernel = {"name": name, "blocks": blocks, "threads": threads}
        kernels.append({**kernel, "time_ns": time_ns})
    with sampling(_PERIOD) as samples:
        for prepared in launches:
            device.launch(prepared)
            device.wait(_PATIENCE_S)
    for kernel in kernels:
        kernel["samples"] = _rows(samples.kernels, kernel["name"], table)
        _show(kernel)
    reasons = sorted({row["reason"] for kernel in kernels for row in kernel["samples"]})
    for kernel in kernels:
        kernel["samples"] = [
            [row["offset"], row["line"], reasons.index(row["reason"]), row["samples"]]
            for row in kernel["samples"]
        ]
    recorded: dict[str, Any] = {"device": device.name, "period_cycles": 1 << _PERIOD}
    recorded |= {"reasons": reasons, "kernels": kernels}
    to.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


def _rows(kernels: Any, name: str, table: LineTable) -> list[dict[str, Any]]:
    return [
        {
            "offset": offset,
            "line": calls[-1].line if (calls := table.calls(name, offset)) else 0,
            "reason": reason.removeprefix(_STALLED),
            "samples": count,
        }
        for (_, function), kernel in kernels.items()
        if function == name
        for offset, reasons in sorted(kernel.offsets.items())
        for reason, count in sorted(reasons.items())
    ]


def _show(kernel: dict[str, Any]) -> None:
    total = sum(row["samples"] for row in kernel["samples"]) or 1
    by: dict[tuple[int, str], int] = {}
    for row in kernel["samples"]:
        place = row["line"], row["reason"]
        by[place] = by.get(place, 0) + row["samples"]
    most = sorted(by.items(), key=lambda pair: -pair[1])[:4]
    print(
        f"{kernel['name']:16} {kernel['time_ns']:>10,} ns {total:>8,} samples  "
        + ", ".join(f"{line} {why} {count / total:.0%}" for (line, why), count in most)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
