"""The stream with hundreds of viewers: delivery, latency of other requests, cost.

    python benchmarks/viewers.py [--seconds 10] [--repeats 3] [--write FILE]

One server with eight stub H200s at 10 Hz; 64, 512 and 1,000 viewers from one process
that only counts. Where server and viewers ask for more than the machine has, warpbook
backs off: the rate that the server told at the end is in the table.
"""

from __future__ import annotations

import contextlib
import json
import resource
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.counting import counting
from benchmarks.report import ask, spread, tell
from benchmarks.server import Server
from benchmarks.stream import RATE_HZ, WARPBOOK, probe
from tests.stub_nvml import StubNvml, build

GPUS = 8
VIEWERS = (64, 512, 1000)
WARM_UP_S = 5.0


@dataclass(frozen=True)
class Result:
    """One measured run."""

    delivered_ratio: float
    rate_hz: float
    p50_ms: float
    p95_ms: float
    cpu_ratio: float
    memory_mib: float


def measure(viewers: int, seconds: float) -> Result:
    """Start a server, fill it with viewers, and read what they and a prober saw."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        library = build(Path(folder) / "library")
        stub = StubNvml(library, Path(folder) / "state", *["h200"] * GPUS)
        options = ("--WarpbookApp.max_viewers=2000",)
        server = stack.enter_context(
            Server(WARPBOOK.python, Path(folder), stub.env, options)
        )
        frames = stack.enter_context(crowd(viewers, server))
        time.sleep(WARM_UP_S)
        process = psutil.Process(server.pid)
        frames_before, cpu_before = frames(), process.cpu_times()
        latencies_ms = probe(server, seconds)
        frames_after, cpu_after = frames(), process.cpu_times()
        rate_hz = told_rate_hz(server)
        memory_mib = process.memory_info().rss / 2**20
    elapsed_s = frames_after[1] - frames_before[1]
    cpu_s = (cpu_after.user + cpu_after.system) - (cpu_before.user + cpu_before.system)
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    delivered = frames_after[0] - frames_before[0]
    return Result(
        delivered_ratio=delivered / (RATE_HZ * elapsed_s * viewers),
        rate_hz=rate_hz,
        p50_ms=cuts[49],
        p95_ms=cuts[94],
        cpu_ratio=cpu_s / elapsed_s,
        memory_mib=memory_mib,
    )


def crowd(
    viewers: int, server: Server
) -> AbstractContextManager[Callable[..., tuple[int, float]]]:
    """So many viewers that only count frames."""
    order = {
        "port": server.port,
        "path": f"/bench/{WARPBOOK.sockets[0]}?token={server.token}",
        "viewers": viewers,
        "hello": WARPBOOK.hello,
        "counted": WARPBOOK.counted,
    }
    return counting("crowd.py", order)


def told_rate_hz(server: Server) -> float:
    """How often the server says that it reads now."""
    request = urllib.request.Request(
        f"{server.url}warpbook/api/v1/state",
        headers={"Authorization": f"token {server.token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        state = json.load(answer)
    for reading in state["frame"]["readings"]:
        device = state["devices"][reading["device"]]
        if device["kind"] == "monitor":
            names = [metric["name"] for metric in device["metrics"]]
            return float(reading["values"][names.index("rate_hz")])
    raise RuntimeError("The server says nothing of itself.")


def main() -> None:
    """Measure in turn, `repeats` times."""
    options = ask(__doc__, seconds=10.0, repeats=3)
    # a socket each, in the server and in the viewers' process
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most), most))
    results: dict[int, list[Result]] = {viewers: [] for viewers in VIEWERS}
    for _ in range(options.repeats):
        for viewers, runs in results.items():
            runs.append(measure(viewers, options.seconds))
            print(viewers, runs[-1], flush=True)
    lines = [
        "| viewers | delivered % of 10 Hz | rate told, Hz | `GET /api/status` p50 ms "
        "| p95 ms | CPU of the server, % of a core | its memory, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for viewers, runs in results.items():
        lines.append(
            f"| {viewers:,} | {spread([100 * r.delivered_ratio for r in runs], 0)} "
            f"| {spread([r.rate_hz for r in runs], 1)} "
            f"| {spread([r.p50_ms for r in runs], 1)} "
            f"| {spread([r.p95_ms for r in runs], 1)} "
            f"| {spread([100 * r.cpu_ratio for r in runs], 0)} "
            f"| {spread([r.memory_mib for r in runs], 0)} |"
        )
    text = (
        f"{GPUS} stub H200s: median (lowest to highest) of {options.repeats} runs. "
        "Viewers, prober and server share the machine.\n\n" + "\n".join(lines)
    )
    tell(options, "Hundreds of viewers", text)


if __name__ == "__main__":
    main()
