"""warpbook's stream beside jupyterlab-nvdashboard, on the same stub NVML, in one run.

    python benchmarks/stream.py [--seconds 8] [--repeats 3] [--write docs/benchmarks.md]

Three servers take turns under the same load: warpbook (one socket a viewer, with
everything), nvdashboard with every chart open (six sockets a viewer) and with its
utilization chart alone (one socket). The stub library's calls take as long as those
of an H200. Measured: messages delivered, latency of an unrelated request started
at random times whatever the earlier ones do, and CPU time of the server.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
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
from tests.stub_nvml import StubNvml, build

VIEWERS = (1, 8, 64)
GPUS = (1, 8)
PEER = "jupyterlab-nvdashboard==0.15.0"
PEER_HELLO = json.dumps({"updateFrequency": 100, "isPaused": False})
PEER_CHARTS = (
    "gpu_utilization",
    "gpu_usage",
    "gpu_resource",
    "pci_stats",
    "nvlink_throughput",
    "cpu_resource",
)
RATE_HZ = 10
WARM_UP_S = 3.0


@dataclass(frozen=True)
class Contender:
    """A server under load: which sockets a viewer opens and what it says first."""

    name: str
    python: Path
    sockets: tuple[str, ...]
    hello: str
    #: how a message begins that is counted as delivered
    counted: str = ""


@dataclass(frozen=True)
class Result:
    """One measured run."""

    delivered_ratio: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    cpu_ratio: float


WARPBOOK = Contender(
    "warpbook",
    Path(sys.executable),
    ("warpbook/api/v1/stream",),
    json.dumps({"type": "subscribe", "protocol": 1, "rate_hz": RATE_HZ}),
    '{"type":"frame"',
)


def contenders() -> list[Contender]:
    """warpbook from this environment; the peer from one of its own."""
    peer = ROOT / ".cache" / "bench-nvdashboard" / "bin" / "python"
    if not peer.exists():
        subprocess.run([sys.executable, "-m", "venv", peer.parent.parent], check=True)
        subprocess.run([peer, "-m", "pip", "install", "-q", PEER], check=True)
    charts = tuple(f"nvdashboard/{chart}" for chart in PEER_CHARTS)
    return [
        WARPBOOK,
        Contender("nvdashboard, all charts", peer, charts, PEER_HELLO),
        Contender("nvdashboard, utilization only", peer, charts[:1], PEER_HELLO),
    ]


def measure(contender: Contender, viewers: int, gpus: int, seconds: float) -> Result:
    """Start the server, load it, and read what the viewers and the prober saw."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder) / "library")
        stub = StubNvml(library, Path(folder) / "state", *["h200"] * gpus)
        with Server(contender.python, Path(folder), stub.env) as server:
            with viewing(contender, viewers, server) as messages:
                time.sleep(WARM_UP_S)
                process = psutil.Process(server.pid)
                messages_before, cpu_before = messages(), process.cpu_times()
                latencies_ms = probe(server, seconds)
                messages_after, cpu_after = messages(), process.cpu_times()
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    # what the probe waited for slow answers is a part of the time that was measured
    elapsed_s = messages_after[1] - messages_before[1]
    expected = RATE_HZ * elapsed_s * viewers * len(contender.sockets)
    cpu_s = (cpu_after.user + cpu_after.system) - (cpu_before.user + cpu_before.system)
    return Result(
        delivered_ratio=(messages_after[0] - messages_before[0]) / expected,
        p50_ms=cuts[49],
        p95_ms=cuts[94],
        p99_ms=cuts[98],
        cpu_ratio=cpu_s / elapsed_s,
    )


def viewing(
    contender: Contender, viewers: int, server: Server
) -> AbstractContextManager[Callable[..., tuple[int, float]]]:
    """So many viewers, each of whom first sends what one asks with to the server."""
    address = server.url.replace("http", "ws", 1)
    urls = [f"{address}{path}?token={server.token}" for path in contender.sockets]
    order = {
        "urls": urls * viewers,
        "hello": contender.hello,
        "counted": contender.counted,
    }
    return counting("load.py", order)


def probe(server: Server, seconds: float) -> list[float]:
    """Latencies in ms of an unrelated request, from a process of its own."""
    order = {
        "port": server.port,
        "path": "/bench/api/status",
        "token": server.token,
        "seconds": seconds,
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "probe.py"), json.dumps(order)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    latencies_ms: list[float] = json.loads(done.stdout)
    return latencies_ms


def report(results: dict[tuple[str, int, int], list[Result]]) -> str:
    """The tables: each server's figures, and their ratios run by run."""
    lines = [
        "| server | GPUs | viewers | delivered % | `GET /api/status` p50 ms "
        "| p95 ms | p99 ms | CPU % of a core |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, gpus, viewers), runs in results.items():
        lines.append(
            f"| {name} | {gpus} | {viewers} "
            f"| {spread([100 * r.delivered_ratio for r in runs], 0)} "
            f"| {spread([r.p50_ms for r in runs], 1)} "
            f"| {spread([r.p95_ms for r in runs], 1)} "
            f"| {spread([r.p99_ms for r in runs], 1)} "
            f"| {spread([100 * r.cpu_ratio for r in runs], 1)} |"
        )
    lines += [
        "",
        "Latency of the unrelated request, nvdashboard over warpbook, run by run:",
        "",
        "| nvdashboard | GPUs | viewers | p50 ratio | p95 ratio |",
        "|---|---|---|---|---|",
    ]
    for (name, gpus, viewers), runs in results.items():
        ours = results["warpbook", gpus, viewers]
        if name == "warpbook":
            continue
        pairs = list(zip(runs, ours, strict=True))
        lines.append(
            f"| {name.removeprefix('nvdashboard, ')} | {gpus} | {viewers} "
            f"| {spread([theirs.p50_ms / our.p50_ms for theirs, our in pairs], 1)} "
            f"| {spread([theirs.p95_ms / our.p95_ms for theirs, our in pairs], 1)} |"
        )
    lines += ["", "What warpbook's fan-out costs: CPU beyond that of one viewer.", ""]
    for gpus in GPUS:
        one = results["warpbook", gpus, 1]
        many = results["warpbook", gpus, max(VIEWERS)]
        extra = [
            100 * (b.cpu_ratio - a.cpu_ratio) for a, b in zip(one, many, strict=True)
        ]
        lines.append(
            f"- {max(VIEWERS)} viewers, {gpus} GPUs: {spread(extra, 1)} % of a core"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the whole matrix, one contender after the other, `repeats` times."""
    options = ask(__doc__, seconds=8.0, repeats=3)
    results: dict[tuple[str, int, int], list[Result]] = {}
    all_contenders = contenders()
    for _ in range(options.repeats):
        for gpus in GPUS:
            for viewers in VIEWERS:
                for contender in all_contenders:
                    result = measure(contender, viewers, gpus, options.seconds)
                    print(contender.name, gpus, viewers, result, flush=True)
                    key = (contender.name, gpus, viewers)
                    results.setdefault(key, []).append(result)
    runs = f"Median (lowest to highest) of {options.repeats} runs.\n\n"
    heading = "The stream, beside jupyterlab-nvdashboard"
    tell(options, heading, runs + report(results))


if __name__ == "__main__":
    main()
