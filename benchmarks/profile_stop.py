"""From the profiler's stop to the report: warpbook beside `key_averages()`, in turn.

    python benchmarks/profile_stop.py [--events 40000 400000] [--repeats 3]

Both profile the same loop in the same process, with the same activities: operators,
and on a GPU its kernels and calls too. torch's own stop is the same work for both and
is told apart. warpbook then reads the events, adds them up and writes the report as
text and HTML, as the notebook gets it; the peer runs `key_averages()` alone. Told too
are the garbage collector's full runs in that time, and files left behind.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import put_section, spread  # noqa: E402
from warpbook.kernel.profile import Profile  # noqa: E402
from warpbook_monitors.trace.analysis import analyse  # noqa: E402
from warpbook_monitors.trace.kineto import Capture  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
#: the operator, and on a GPU the call, the kernel and the link between them
EVENTS_PER_LAUNCH = 4 if DEVICE == "cuda" else 1


@dataclass
class Took:
    """What one way from stop to result took."""

    #: torch's own stop, which waits, collects and converts
    stop_s: float = 0.0
    read_s: float = 0.0
    add_up_s: float = 0.0
    write_s: float = 0.0
    peer_s: float = 0.0
    events: int = 0
    #: runs of the garbage collector over everything, and what they took
    collections: int = 0
    collected_s: float = 0.0

    @property
    def own_s(self) -> float:
        """All that is warpbook's."""
        return self.read_s + self.add_up_s + self.write_s


@dataclass
class Collections:
    """Counts what the garbage collector does."""

    count: int = 0
    seconds: float = 0.0
    _began: float = field(default=0.0, repr=False)

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Hear of a collection; the collector calls this."""
        if phase == "start":
            self._began = time.perf_counter()
            return
        self.seconds += time.perf_counter() - self._began
        self.count += info["generation"] == 2


@contextmanager
def counted(took: Took) -> Iterator[None]:
    """Count collections meanwhile."""
    gc.collect()
    seen = Collections()
    gc.callbacks.append(seen)
    try:
        yield
    finally:
        gc.callbacks.remove(seen)
        took.collections, took.collected_s = seen.count, seen.seconds


@contextmanager
def torchs_stop(took: Took) -> Iterator[None]:
    """Measure torch's own part of a stop."""
    module = torch.autograd.profiler
    disable = module._disable_profiler

    def timed() -> Any:
        began = time.perf_counter()
        try:
            return disable()
        finally:
            took.stop_s += time.perf_counter() - began

    module._disable_profiler = timed
    try:
        yield
    finally:
        module._disable_profiler = disable


def cell(launches: int) -> Callable[[], None]:
    """Give a loop of small operators."""
    x = torch.ones(8, device=DEVICE)

    def run() -> None:
        for _ in range(launches // 2):
            x.add_(1)
            x.mul_(1)

    return run


def warpbook(code: Callable[[], None]) -> Took:
    """As `%%gpuprof` does it."""
    took = Took()
    capture = Capture()
    capture.start()
    code()
    with counted(took), torchs_stop(took):
        began = time.perf_counter()
        events, run = capture.stop()
        took.read_s = time.perf_counter() - began - took.stop_s
        began = time.perf_counter()
        figures = analyse(events, run)
        took.add_up_s = time.perf_counter() - began
        began = time.perf_counter()
        shown = Profile(figures, "cell")._repr_mimebundle_()
        took.write_s = time.perf_counter() - began
    assert shown["text/html"]
    took.events = len(events)
    return took


def key_averages(code: Callable[[], None]) -> Took:
    """As torch's tutorials do it, without the table."""
    took = Took()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if DEVICE == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    profiler = torch.profiler.profile(activities=activities)
    profiler.start()
    code()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    with counted(took), torchs_stop(took):
        profiler.stop()
        began = time.perf_counter()
        assert profiler.key_averages()
        took.peer_s = time.perf_counter() - began
    return took


def rows(ours: list[Took], peers: list[Took]) -> Iterator[str]:
    """Write the table of one size."""

    def row(name: str, value: Callable[[Took], float], digits: int = 3) -> str:
        cells = (spread([value(each) for each in found], digits) for found in both)
        return f"| {name} | {' | '.join(cells)} |"

    both = (ours, peers)
    yield "| seconds | warpbook | key_averages() |"
    yield "|---|---|---|"
    yield row("torch's own stop", lambda each: each.stop_s)
    yield row("read the events", lambda each: each.read_s)
    yield row("add them up", lambda each: each.add_up_s)
    yield row("write text and HTML", lambda each: each.write_s)
    yield row("**from stop to result**", lambda each: each.own_s + each.peer_s)
    yield row("full garbage collections", lambda each: float(each.collections), 0)
    yield row("in the garbage collector", lambda each: each.collected_s)
    ratios = [peer.peer_s / our.own_s for our, peer in zip(ours, peers, strict=True)]
    yield ""
    yield f"warpbook is {spread(ratios, 1)} times as fast, in pairs."


def main() -> None:
    """Measure in turn, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[40_000, 400_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, help="put the report into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        warpbook(cell(100))
        key_averages(cell(100))
        parts = []
        for count in options.events:
            code = cell(count // EVENTS_PER_LAUNCH)
            ours, peers = [], []
            for _ in range(options.repeats):
                ours.append(warpbook(code))
                print(ours[-1], flush=True)
                peers.append(key_averages(code))
                print(peers[-1], flush=True)
            table = "\n".join(rows(ours, peers))
            left = [path.name for path in Path(folder).iterdir()]
            parts.append(
                f"{ours[0].events:,} events on the {DEVICE.upper()}; median (lowest to "
                f"highest) of {options.repeats} pairs; files left: {left or 'none'}."
                f"\n\n{table}"
            )
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        sizes = " ".join(map(str, options.events))
        command = (
            f"python benchmarks/profile_stop.py --events {sizes} "
            f"--repeats {options.repeats}"
        )
        where = "a GPU" if DEVICE == "cuda" else "the CPU alone"
        put_section(
            options.write,
            f"From the profiler's stop to the report, on {where}",
            command,
            f"torch {torch.__version__}.\n\n{text}",
        )


if __name__ == "__main__":
    main()
