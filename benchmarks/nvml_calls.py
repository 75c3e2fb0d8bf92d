"""NVML calls per second with 0, 1 and 64 viewers, by the stub library's own counter.

    python benchmarks/nvml_calls.py [--seconds 10] [--repeats 3] [--write FILE]

One server with eight stub H200s a run. The devices are read once however many watch,
so the figures of 1 and 64 viewers must be equal; while nobody watches there is none.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from benchmarks.server import Server
from benchmarks.stream import WARPBOOK, viewing
from tests.stub_nvml import StubNvml, build

GPUS = 8
VIEWERS = (0, 1, 64)
#: until the devices are found, or until the sampler rests
SETTLE_S = 4.0


def measure(viewers: int, seconds: float) -> float:
    """Calls per second of one server with so many viewers."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        library = build(Path(folder) / "library")
        stub = StubNvml(library, Path(folder) / "state", *["h200"] * GPUS)
        server = stack.enter_context(Server(WARPBOOK.python, Path(folder), stub.env))
        if viewers:
            stack.enter_context(viewing(WARPBOOK, viewers, server))
        else:
            # a viewer that came and went: the GPUs are open, and at rest
            with viewing(WARPBOOK, 1, server):
                time.sleep(SETTLE_S)
        time.sleep(SETTLE_S)
        before, begin_s = stub.calls(), time.monotonic()
        time.sleep(seconds)
        return (stub.calls() - before) / (time.monotonic() - begin_s)


def main() -> None:
    """Measure in turn, `repeats` times."""
    options = ask(__doc__, seconds=10.0, repeats=3)
    rates: dict[int, list[float]] = {viewers: [] for viewers in VIEWERS}
    for _ in range(options.repeats):
        for viewers, measured in rates.items():
            measured.append(measure(viewers, options.seconds))
            print(viewers, "viewers:", round(measured[-1], 1), flush=True)
    lines = ["| viewers | NVML calls per second | of those with one viewer |"]
    lines += ["|---|---|---|"]
    for viewers, measured in rates.items():
        ratios = [ours / one for ours, one in zip(measured, rates[1], strict=True)]
        lines.append(f"| {viewers} | {spread(measured, 0)} | {spread(ratios, 3)} |")
    text = (
        f"{GPUS} stub H200s at 10 Hz: median (lowest to highest) of {options.repeats} "
        "runs.\n\n" + "\n".join(lines)
    )
    tell(options, "NVML calls per second", text)


if __name__ == "__main__":
    main()
