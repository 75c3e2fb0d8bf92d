"""From how many rows on a filter, groupby and join pay on the GPU, with their copies.

    python benchmarks/groupby_join.py [--repeats 5] [--largest 16777216]

The query is that of the lab `groupby-join`, on the GPU by the lab's reference. The CPU
has pandas where it is installed, else NumPy's sort, on two cores. Rows, probes and
results cross the link, from ordinary memory and from page-locked memory. Every result
is compared. It needs a GPU and CuPy, whose compiler makes the kernels. Columns are
medians in ms; the break-even is where the lines between sizes cross.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

try:
    import pandas as pd
except ImportError:
    pd = None

REFERENCE = Path(__file__).parents[1] / "labs/catalogue/data/groupby_join/reference.cu"
LEAST = -500
THREADS = 256
SMALLEST = 1 << 10
CORES = 2

Columns = dict[str, Any]


def drawn(n: int) -> Columns:
    """Draw n rows in n / 4 groups, and n probes of which half find none."""
    rng = np.random.default_rng(n)
    odd = 1_234_567_891
    rows, probes = rng.integers(0, n // 4, n), rng.integers(0, n // 2, n)
    return {
        "key": (rows * odd & 0x7FFFFFFF).astype(np.int32),
        "amount": rng.integers(-1000, 1001, n).astype(np.int32),
        "probe": (probes * odd & 0x7FFFFFFF).astype(np.int32),
    }


def by_pandas(given: Columns) -> tuple[Any, Any]:
    """Filter, group and merge data frames of the columns."""
    rows = pd.DataFrame({"key": given["key"], "amount": given["amount"]}, copy=False)
    kept = rows[rows.amount >= LEAST]
    groups = kept.groupby("key", sort=False).amount.agg(["count", "sum"])
    probes = pd.DataFrame({"key": given["probe"]}, copy=False)
    joined = probes.merge(groups, how="left", left_on="key", right_index=True)
    return joined["count"].fillna(0).to_numpy(), joined["sum"].fillna(0).to_numpy()


def by_numpy(given: Columns) -> tuple[Any, Any]:
    """Sort the rows, and search the probes among the groups."""
    is_kept = given["amount"] >= LEAST
    groups, of_row = np.unique(given["key"][is_kept], return_inverse=True)
    counts = np.bincount(of_row)
    totals = np.bincount(of_row, weights=given["amount"][is_kept])
    place = np.minimum(np.searchsorted(groups, given["probe"]), len(groups) - 1)
    is_found = groups[place] == given["probe"]
    return np.where(is_found, counts[place], 0), np.where(is_found, totals[place], 0)


class OnTheGpu:
    """The lab's reference, with buffers for n rows and n probes on both sides."""

    def __init__(self, given: Columns, is_pinned: bool) -> None:
        """Compile the kernels, and put the columns into memory of the host."""
        self.n = len(given["key"])
        module = cp.RawModule(
            code=REFERENCE.read_text(encoding="utf-8"),
            options=("--std=c++17",),
            name_expressions=("clear", "build", "look_up"),
        )
        self.clear, self.build, self.look_up = map(
            module.get_function, ("clear", "build", "look_up")
        )
        self.host = {name: _host(self.n, is_pinned) for name in given}
        for name, column in given.items():
            self.host[name][:] = column
        self.results = [_host(self.n, is_pinned) for _ in range(2)]
        self.device = {name: cp.empty(self.n, cp.int32) for name in given}
        self.outputs = [cp.empty(self.n, cp.int32) for _ in range(2)]
        self.table = [cp.empty(2 * self.n, cp.int32) for _ in range(3)]

    def query(self) -> None:
        """Launch the three kernels on what is on the GPU."""
        n, slots = np.int32(self.n), np.int32(2 * self.n)
        grid, block = (math.ceil(self.n / THREADS),), (THREADS,)
        columns = self.device
        self.clear((math.ceil(2 * self.n / THREADS),), block, (*self.table, slots))
        key, amount = columns["key"], columns["amount"]
        rows = (key, amount, np.int32(LEAST), *self.table, n, slots)
        self.build(grid, block, rows)
        probes = (columns["probe"], *self.table, *self.outputs, n, slots)
        self.look_up(grid, block, probes)

    def copied(self) -> None:
        """Copy the columns to the GPU, query, and copy the results back."""
        for name, column in self.host.items():
            self.device[name].set(column)
        self.query()
        for output, result in zip(self.outputs, self.results, strict=True):
            output.get(out=result)


def _host(n: int, is_pinned: bool) -> Any:
    if not is_pinned:
        return np.zeros(n, np.int32)
    memory = cp.cuda.alloc_pinned_memory(4 * n)
    return np.frombuffer(memory, np.int32, n)


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """Time a call until the GPU is idle, the first one left out."""
    times_ms = []
    for _ in range(repeats + 1):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cp.cuda.Device().synchronize()
        times_ms.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times_ms[1:])


def measured(n: int, repeats: int) -> tuple[float, ...]:
    """Give the times of CPU, pageable copies, pinned copies, and kernels, in ms."""
    given = drawn(n)
    on_cpu = by_numpy if pd is None else by_pandas
    right = on_cpu(given)
    times_ms = [median_ms(lambda: on_cpu(given), repeats)]
    for is_pinned in (False, True):
        gpu = OnTheGpu(given, is_pinned)
        times_ms.append(median_ms(gpu.copied, repeats))
        for result, expected in zip(gpu.results, right, strict=True):
            np.testing.assert_array_equal(result, expected)
    times_ms.append(median_ms(gpu.query, repeats))
    return tuple(times_ms)


def break_even(sizes: list[int], cpu_ms: list[float], gpu_ms: list[float]) -> str:
    """Say where the GPU is faster from, by a straight line in logarithms."""
    ratios = [math.log(cpu / gpu) for cpu, gpu in zip(cpu_ms, gpu_ms, strict=True)]
    if ratios[-1] <= 0:
        return f"none up to {sizes[-1]:,} rows"
    slower = [place for place, ratio in enumerate(ratios) if ratio <= 0]
    if not slower:
        return f"below {sizes[0]:,} rows"
    low = slower[-1]
    part = -ratios[low] / (ratios[low + 1] - ratios[low])
    rows = sizes[low] * (sizes[low + 1] / sizes[low]) ** part
    return f"about {round(rows, -2):,.0f} rows"


def main() -> None:
    """Measure sizes four times larger each, and print the table and break-evens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=int, default=1 << 24)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    cpu = f"NumPy {np.__version__}" if pd is None else f"pandas {pd.__version__}"
    print(f"{name}; Python {platform.python_version()}; CPU: {cpu}, {CORES} cores\n")
    print("| rows, and probes | CPU ms | GPU, pageable | GPU, pinned | kernels |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    sizes, rows = [], []
    n = SMALLEST
    while n <= arguments.largest:
        sizes.append(n)
        rows.append(measured(n, arguments.repeats))
        cells = " | ".join(f"{time_ms:.3f}" for time_ms in rows[-1])
        print(f"| {n:,} | {cells} |", flush=True)
        n *= 4
    columns = [list(column) for column in zip(*rows, strict=True)]
    print()
    titles = ("pageable", "pinned", "on the GPU already")
    for title, column in zip(titles, columns[1:], strict=True):
        print(f"Break-even, {title}: {break_even(sizes, columns[0], column)}")


if __name__ == "__main__":
    main()
