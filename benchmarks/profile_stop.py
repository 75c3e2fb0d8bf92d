"""From the profiler's stop to the report: warpbook beside `key_averages()`, in turn.

    python benchmarks/profile_stop.py [--events 40000 400000] [--repeats 3]

Both profile the same loop in the same process, with the same activities: operators,
and on a GPU its kernels and calls too. warpbook records what operators are called
with besides, as `%%gpuprof` does; the peer does not. torch's own stop is told apart.
warpbook then reads the events, adds them up, writes the report as text and HTML, as
the notebook gets it, and answers the checklist, as the server gets it; the peer runs
`key_averages()` alone. Told too are the garbage collector's full runs in that time, and
files left behind.
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

from benchmarks.report import put_section, spread
from warpbook.kernel.runs.profile import Profile
from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.verdict.analysis import analyse

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STOP = "torch's own stop"
#: what the checklist reads beside the profile: the code of a cell of a usual length
SOURCE = """\
for x, y in loader:
    optimizer.zero_grad()
    loss = loss_function(model(x), y)
    loss.backward()
    optimizer.step()
"""


@dataclass
class Took:
    """What one way from stop to result took: parts by name, wall and CPU s."""

    parts: dict[str, tuple[float, float]] = field(default_factory=dict)
    events: int = 0
    #: runs of the garbage collector over everything, and what all its runs took
    collections: int = 0
    collected_s: float = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure one."""
        began, processor = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.parts[name] = (
                time.perf_counter() - began,
                time.thread_time() - processor,
            )

    def own(self, clock: int) -> float:
        """All but torch's own stop, which is within the first part."""
        return (
            sum(part[clock] for part in self.parts.values())
            - 2 * (self.parts[STOP][clock])
        )


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
        with took.part(STOP):
            return disable()

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
            x.neg_()
            x.abs_()

    return run


def warpbook(code: Callable[[], None]) -> Took:
    """As `%%gpuprof` does it."""
    took = Took()
    capture = Capture()
    capture.start()
    code()
    with counted(took), torchs_stop(took):
        with took.part("stop and read"):
            events, run = capture.stop()
        with took.part("add up"):
            figures = analyse(events, run)
        with took.part("write"):
            profile = Profile(figures, "cell")
            profile.code = SOURCE
            shown = profile._repr_mimebundle_()
        with took.part("checklist"):
            answers = profile.advise().figures
    assert shown["text/html"] and answers.lines
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
        with took.part("stop and read"):
            profiler.stop()
        with took.part("add up"):
            assert profiler.key_averages()
    return took


def rows(ours: list[Took], peers: list[Took]) -> Iterator[str]:
    """Write the table of one size."""
    both = (ours, peers)

    def row(name: str, value: Callable[[Took, int], float]) -> str:
        cells = (
            spread([value(one, clock) for one in group], 2)
            for group in both
            for clock in (0, 1)
        )
        return f"| {name} | {' | '.join(cells)} |"

    def of(name: str) -> Callable[[Took, int], float]:
        return lambda took, clock: took.parts.get(name, (0.0, 0.0))[clock]

    def read(took: Took, clock: int) -> float:
        return took.parts["stop and read"][clock] - took.parts[STOP][clock]

    yield "| | warpbook, s | CPU s | key_averages(), s | CPU s |"
    yield "|---|---|---|---|---|"
    yield row("torch's own stop", of(STOP))
    yield row("read the events", read)
    yield row("add them up", of("add up"))
    yield row("write text and HTML", of("write"))
    yield row("**from stop to result**", Took.own)
    full = [f"{min(one_count)} to {max(one_count)}" for one_count in counts(both)]
    spent = [spread([one.collected_s for one in group], 2) for group in both]
    checklists_ms = [1e3 * took.parts["checklist"][0] for took in ours]
    yield ""
    yield f"Of that the checklist's answers took {spread(checklists_ms, 2)} ms."
    for clock, unit in enumerate(("time", "CPU time")):
        ratios = [
            peer.own(clock) / our.own(clock)
            for our, peer in zip(ours, peers, strict=True)
        ]
        yield f"{spread(ratios, 1)} times less {unit} than key_averages(), in pairs."
    yield (
        f"Full garbage collections: {full[0]} beside {full[1]}; all collections took "
        f"{spent[0]} s beside {spent[1]} s."
    )


def counts(both: tuple[list[Took], list[Took]]) -> list[list[int]]:
    """Give the full garbage collections of each."""
    return [[one.collections for one in group] for group in both]


def main() -> None:
    """Measure in turn, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[40_000, 400_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, help="put the report into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        key_averages(cell(100))
        # the operator, and on a GPU the call and the kernel
        events_per_launch = warpbook(cell(1000)).events / 1000
        parts = []
        for count in options.events:
            code = cell(round(count / events_per_launch))
            ours, peers = [], []
            before = set(Path(folder).iterdir())
            for _ in range(options.repeats):
                ours.append(warpbook(code))
                print(ours[-1], flush=True)
                peers.append(key_averages(code))
                print(peers[-1], flush=True)
            table = "\n".join(rows(ours, peers))
            left = sorted(path.name for path in set(Path(folder).iterdir()) - before)
            parts.append(
                f"{ours[0].events:,} events on the {DEVICE.upper()}; median (lowest to "
                f"highest) of {options.repeats} pairs; files written: "
                f"{', '.join(left) or 'none'}.\n\n{table}"
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
