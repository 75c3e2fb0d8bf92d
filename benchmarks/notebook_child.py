"""One process of `notebook_gpu.py`: cells in a real IPython shell; prints JSON.

    python benchmarks/notebook_child.py report EVENTS PAIRS
    python benchmarks/notebook_child.py body ROUNDS
    python benchmarks/notebook_child.py speed warpbook|torch.profiler|nothing

Without a GPU the same is done with operators on the CPU.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from torch.profiler import ProfilerActivity, profile
from traitlets.config import Config

from benchmarks.profile_stop import STOP, Took, counted, key_averages, torchs_stop

HAS_GPU = torch.cuda.is_available()
ACTIVITIES = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * HAS_GPU
#: an operator, and on a GPU its call, its kernel, and the link between them
EVENTS_PER_STEP = 4 if HAS_GPU else 1
BODY_STEPS = 10_000
SPEED_STEPS, SPEED_TURNS = 20_000, 9


class Shell:
    """A shell with warpbook, which knows when something was shown."""

    def __init__(self) -> None:
        """Start it as a kernel would."""
        config = Config(HistoryManager={"enabled": False})
        self.shell = InteractiveShell.instance(config=config)
        self.shown_s = 0.0
        self.shell.display_pub = self._publisher()
        began = time.perf_counter()
        self.shell.extension_manager.load_extension("warpbook")
        self.load_ms = 1e3 * (time.perf_counter() - began)
        self.shell.user_ns.update(time=time, step=step, wait=wait)

    def _publisher(self) -> CapturingDisplayPublisher:
        owner = self

        class Publisher(CapturingDisplayPublisher):
            def publish(self, *arguments: Any, **options: Any) -> None:
                super().publish(*arguments, **options)
                owner.shown_s = time.perf_counter()

        return Publisher(parent=self.shell)

    def profile(self, steps: int, options: str = "") -> dict[str, Any]:
        """Profile a cell; give the times of its body and around it."""
        began = time.perf_counter()
        result = self.shell.run_cell(
            f"%%gpuprof -o profiled {options}\n"
            "begin_s = time.perf_counter()\n"
            f"step({steps})\n"
            "wait()\n"
            "end_s = time.perf_counter()"
        )
        result.raise_error()
        user_ns = self.shell.user_ns
        return {
            "before_ms": 1e3 * (user_ns["begin_s"] - began),
            "body_ms": 1e3 * (user_ns["end_s"] - user_ns["begin_s"]),
            "after_ms": 1e3 * (self.shown_s - user_ns["end_s"]),
            "set_up": user_ns["profiled"].to_dict()["set_up"],
        }


def step(count: int) -> None:
    """Launch so many tiny kernels, or call so many tiny operators."""
    for _ in range(count):
        SMALL.neg_()


def wait() -> None:
    """Wait for the GPU."""
    if HAS_GPU:
        torch.cuda.synchronize()


def bare_profile(steps: int, shapes: bool = False) -> dict[str, float]:
    """Do the same with torch.profiler alone, without a report."""
    began = time.perf_counter()
    profiler = profile(activities=ACTIVITIES, record_shapes=shapes)
    profiler.__enter__()
    begin = time.perf_counter()
    step(steps)
    wait()
    end = time.perf_counter()
    profiler.__exit__(None, None, None)
    return {
        "before_ms": 1e3 * (begin - began),
        "body_ms": 1e3 * (end - begin),
        "stop_ms": 1e3 * (time.perf_counter() - end),
    }


#: paths that were opened to be written, while somebody wants to know
_written: list[str] | None = None


def _opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or _written is None:
        return
    path, _, flags = arguments
    writes = flags & (os.O_WRONLY | os.O_RDWR) and isinstance(path, str)
    # a temporary file that never has a name is opened by its folder's
    if writes and path != os.devnull and not os.path.isdir(path):
        _written.append(path)


def report(events: int, pairs: int) -> list[dict[str, Any]]:
    """Time each way from the end of a cell's body to its report."""
    global _written
    sys.addaudithook(_opened)
    shell = Shell()
    steps = events // EVENTS_PER_STEP
    shell.profile(100)
    reports = []
    for _ in range(pairs):
        ours = Took()
        _written = []
        with counted(ours), torchs_stop(ours):
            times = shell.profile(steps)
        written, _written = _written, None
        theirs = key_averages(lambda: step(steps))
        reports.append(
            {
                "events": events,
                "to_report_s": times["after_ms"] / 1e3,
                "stop_s": ours.parts[STOP][0],
                "their_stop_s": theirs.parts[STOP][0],
                "their_report_s": theirs.parts["add up"][0],
                "collections": (ours.collections, theirs.collections),
                "collected_s": (ours.collected_s, theirs.collected_s),
                "written": written,
            }
        )
        print(reports[-1], file=sys.stderr, flush=True)
    return reports


def body(rounds: int) -> list[dict[str, float]]:
    """Time a body without a profiler and with each, in random order."""
    shell = Shell()
    ways: dict[str, Callable[[], float]] = {
        "no profiler": _bare_body_ms,
        "torch.profiler": lambda: bare_profile(BODY_STEPS)["body_ms"],
        "torch.profiler, record_shapes": lambda: bare_profile(BODY_STEPS, True)[
            "body_ms"
        ],
        "%%gpuprof": lambda: shell.profile(BODY_STEPS)["body_ms"],
        "%%gpuprof --no-shapes": lambda: shell.profile(BODY_STEPS, "--no-shapes")[
            "body_ms"
        ],
    }
    for way in ways.values():
        way()
    rounds_taken = []
    for _ in range(rounds):
        rounds_taken.append(
            {name: ways[name]() for name in random.sample([*ways], len(ways))}
        )
    return rounds_taken


def _bare_body_ms() -> float:
    wait()
    began = time.perf_counter()
    step(BODY_STEPS)
    wait()
    return 1e3 * (time.perf_counter() - began)


def speed(contender: str) -> dict[str, Any]:
    """Give the rate of launches before and after a process's first profile."""
    # moving between cores changes the rate more than what is measured
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    shell = Shell() if contender == "warpbook" else None
    figures: dict[str, Any] = {"load_ms": shell.load_ms if shell else None}
    _rate()
    before = _rate()
    modules = len(sys.modules)
    if shell is not None:
        figures["first"] = shell.profile(1)
        figures["modules"] = len(sys.modules) - modules
        figures["later"] = shell.profile(1)
    elif contender == "torch.profiler":
        figures["first"] = bare_profile(1)
        figures["modules"] = len(sys.modules) - modules
        figures["later"] = bare_profile(1)
    return figures | {"before": before, "after": _rate()}


def _rate() -> float:
    """Steps a second: the median of some turns."""
    rates = []
    for _ in range(SPEED_TURNS):
        wait()
        began = time.perf_counter()
        step(SPEED_STEPS)
        wait()
        rates.append(SPEED_STEPS / (time.perf_counter() - began))
    return statistics.median(rates)


def main() -> None:
    """Do what was asked for; the answer is the last line."""
    kind, *arguments = sys.argv[1:]
    answer: Any
    if kind == "report":
        answer = report(*map(int, arguments))
    elif kind == "body":
        answer = body(*map(int, arguments))
    else:
        answer = speed(*arguments)
    gpu = torch.cuda.get_device_name() if HAS_GPU else None
    print("\n" + json.dumps({"gpu": gpu, "torch": torch.__version__, "found": answer}))


SMALL = torch.zeros(8, device="cuda" if HAS_GPU else "cpu")

if __name__ == "__main__":
    main()
