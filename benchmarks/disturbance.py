"""What being watched costs the work on a GPU: nobody, one viewer, 64 viewers.

    python benchmarks/disturbance.py [--pairs 45]

Needs a GPU and torch. One server and one process with the work run throughout. The
viewers stay connected and take turns at taking frames and not, in random order within
each pair, so that drifts of clock and temperature meet both alike; without a taker the
server reads nothing. Told is the change of speed: the median over the pairs, and the
interval that holds it with 95 % (bootstrap).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.machine import describe_machine
from benchmarks.report import interval
from benchmarks.server import Server
from benchmarks.stream import WARPBOOK, viewing

VIEWERS = (1, 64)
UNSUBSCRIBE = json.dumps({"type": "unsubscribe"})
WORK = {"matmul": "bf16 matmul, 8192", "launches": "launch-bound loop"}
SECONDS = 0.4
SETTLE_S = 0.25


class Work:
    """The process that keeps the GPU busy."""

    def __init__(self) -> None:
        """Start it and wait until the GPU is warm."""
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "gpu_work.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def rate(self, kind: str, seconds: float) -> float:
        """How often a second it was done."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{kind} {seconds}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The work ended; see its error above.")
        return line

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def measure(pairs: int) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """Rates of each work by number of viewers: (nobody takes frames, they do)."""
    rates: dict[tuple[str, int], list[tuple[float, float]]] = {}
    work = Work()
    with tempfile.TemporaryDirectory() as folder:
        # a connected page alone has the devices read, once a second, for the alerts
        quiet = ("--WarpbookApp.alerts=watched",)
        with Server(Path(sys.executable), Path(folder), {}, quiet) as server:
            for viewers in VIEWERS:
                with viewing(WARPBOOK, viewers, server) as say:
                    for _ in range(pairs):
                        for kind, pair in measured(work, say).items():
                            rates.setdefault((kind, viewers), []).append(pair)
    work.close()
    return rates


def measured(
    work: Work, say: Callable[..., tuple[int, float]]
) -> dict[str, tuple[float, float]]:
    """One pair of each work."""
    rates: dict[str, list[float]] = {kind: [0.0, 0.0] for kind in WORK}
    for taken in random.sample((False, True), 2):
        before, _ = say(WARPBOOK.hello if taken else UNSUBSCRIBE)
        time.sleep(SETTLE_S)
        for kind in WORK:
            rates[kind][taken] = work.rate(kind, SECONDS)
        after, _ = say()
        if taken and after <= before:
            raise RuntimeError("The viewers got no frames: nothing was measured.")
    return {kind: (alone, seen) for kind, (alone, seen) in rates.items()}


def report(rates: dict[tuple[str, int], list[tuple[float, float]]]) -> str:
    """The table."""
    lines = [
        "| work | per second, nobody watching | viewers | change % (95 % interval) |",
        "|---|---|---|---|",
    ]
    for kind, name in WORK.items():
        for viewers in VIEWERS:
            pairs = rates[kind, viewers]
            changes = [100 * (seen / alone - 1) for alone, seen in pairs]
            low, high = interval(changes)
            lines.append(
                f"| {name} | {statistics.median(alone for alone, _ in pairs):,.0f} "
                f"| {viewers} "
                f"| {statistics.median(changes):+.2f} ({low:+.2f} to {high:+.2f}) |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=45)
    options = parser.parse_args()
    rates = measure(options.pairs)
    print(describe_machine(), f"{options.pairs} pairs.\n")
    print(report(rates))


if __name__ == "__main__":
    main()
