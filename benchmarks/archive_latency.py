"""An unrelated request while history is kept on disk, beside the same without.

    python benchmarks/archive_latency.py [--seconds 15] [--repeats 8] [--write FILE]

Two servers take turns, with the archive and without, each with one viewer of eight GPUs
at 10 Hz (the stub library; its calls take as long as those of an H200). Measured:
latency of `GET /api/status`, begun at random times, and CPU time of the server.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, interval, spread, tell
from benchmarks.server import Server
from benchmarks.stream import WARM_UP_S, WARPBOOK, probe, viewing
from tests.stub_nvml import StubNvml, build

GPUS = 8
HEADING = "A request while history is kept"


def measure(is_kept: bool, seconds: float) -> tuple[float, float, float]:
    """Give p50 and p95 in ms, and CPU as a ratio of a core, of one server."""
    options = () if is_kept else ("--WarpbookApp.archive=False",)
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder) / "library")
        stub = StubNvml(library, Path(folder) / "state", *["h200"] * GPUS)
        with (
            Server(WARPBOOK.python, Path(folder), stub.env, options) as server,
            viewing(WARPBOOK, 1, server),
        ):
            time.sleep(WARM_UP_S)
            process = psutil.Process(server.pid)
            before, begun_s = process.cpu_times(), time.perf_counter()
            latencies_ms = probe(server, seconds)
            after, elapsed_s = process.cpu_times(), time.perf_counter() - begun_s
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    cpu_s = after.user + after.system - before.user - before.system
    return cuts[49], cuts[94], cpu_s / elapsed_s


def main() -> None:
    """Measure pairs, each in the other order than the one before."""
    options = ask(__doc__, seconds=15.0, repeats=8)
    runs: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for number in range(options.repeats):
        for is_kept in (True, False) if number % 2 else (False, True):
            runs[is_kept].append(measure(is_kept, options.seconds))
            print(is_kept, runs[is_kept][-1], flush=True)
    lines = [
        f"{options.repeats} pairs in alternating order; median (least to most).",
        "",
        "| server | p50 ms | p95 ms | CPU, % of a core |",
        "| --- | --- | --- | --- |",
    ]
    for is_kept, name in ((True, "history is kept"), (False, "it is not")):
        p50_ms, p95_ms, cpu_ratios = zip(*runs[is_kept], strict=True)
        cpu = spread([100 * ratio for ratio in cpu_ratios], 1)
        lines.append(f"| {name} | {spread(p50_ms, 2)} | {spread(p95_ms, 2)} | {cpu} |")
    lines.append("")
    for place, name in ((0, "p50"), (1, "p95")):
        ratios = [
            kept[place] / other[place]
            for kept, other in zip(runs[True], runs[False], strict=True)
        ]
        low, high = interval(ratios)
        lines.append(
            f"- {name}, kept over not kept: {statistics.median(ratios):.2f} "
            f"(95 %: {low:.2f} to {high:.2f})"
        )
    extra = [
        100 * (kept[2] - other[2])
        for kept, other in zip(runs[True], runs[False], strict=True)
    ]
    low, high = interval(extra)
    lines.append(
        f"- CPU of the server beyond: {statistics.median(extra):.1f} % of a core "
        f"(95 %: {low:.1f} to {high:.1f})"
    )
    tell(options, HEADING, "\n".join(lines))


if __name__ == "__main__":
    main()
