"""What being watched costs the work on a GPU: nobody, one viewer, 64 viewers.

    python benchmarks/disturbance.py [--rounds 24] [--seconds 1.5]

Needs a GPU and torch. One server and one process with the work run throughout. In
each round the work is timed under the three in random order, so that drifts of clock
and temperature meet all of them alike. Told is the change of speed against nobody in
the same round: the median, and the interval that holds it with 95 % (bootstrap).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.machine import describe_machine  # noqa: E402
from benchmarks.server import Server  # noqa: E402
from benchmarks.stream import WARPBOOK, viewing  # noqa: E402

VIEWERS = (0, 1, 64)
WORK = {"matmul": "bf16 matmul, 8192", "launches": "launch-bound loop"}
SETTLE_S = 0.7


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


@contextlib.contextmanager
def watched(server: Server, viewers: int) -> Iterator[None]:
    """Have so many viewers, and see that they really get frames."""
    if not viewers:
        # the sampler stops with its last viewer
        time.sleep(SETTLE_S)
        yield
        return
    with viewing(WARPBOOK, viewers, server) as messages:
        time.sleep(SETTLE_S)
        before, _ = messages()
        yield
        after, _ = messages()
        if after <= before:
            raise RuntimeError("The viewers got no frames: nothing was measured.")


def measure(rounds: int, seconds: float) -> dict[tuple[str, int], list[float]]:
    """Times of each work under each number of viewers, round by round."""
    rates: dict[tuple[str, int], list[float]] = {}
    work = Work()
    with tempfile.TemporaryDirectory() as folder:
        with Server(Path(sys.executable), Path(folder), {}) as server:
            for _ in range(rounds):
                for viewers in random.sample(VIEWERS, len(VIEWERS)):
                    with watched(server, viewers):
                        for kind in WORK:
                            rate = work.rate(kind, seconds)
                            rates.setdefault((kind, viewers), []).append(rate)
    work.close()
    return rates


def interval(changes: list[float]) -> tuple[float, float]:
    """Bounds that hold the median with 95 % (bootstrap)."""
    medians = sorted(
        statistics.median(random.choices(changes, k=len(changes))) for _ in range(4000)
    )
    return medians[100], medians[-101]


def report(rates: dict[tuple[str, int], list[float]]) -> str:
    """The table."""
    lines = [
        "| work | per second, nobody watching | viewers | change % (95 % interval) |",
        "|---|---|---|---|",
    ]
    for kind, name in WORK.items():
        alone = rates[kind, 0]
        for viewers in VIEWERS[1:]:
            pairs = zip(rates[kind, viewers], alone, strict=True)
            changes = [100 * (seen / unseen - 1) for seen, unseen in pairs]
            low, high = interval(changes)
            lines.append(
                f"| {name} | {statistics.median(alone):,.0f} | {viewers} "
                f"| {statistics.median(changes):+.2f} ({low:+.2f} to {high:+.2f}) |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=1.5)
    options = parser.parse_args()
    rates = measure(options.rounds, options.seconds)
    print(describe_machine(), f"{options.rounds} rounds.\n")
    print(report(rates))


if __name__ == "__main__":
    main()
