"""What the referee's clock and pipes add to a timed unit of host code.

    python benchmarks/host_unit.py [--units 200] [--unit-ms 10] [--write FILE]

A child in its sandbox works for some milliseconds, on a GPU where there is one (a
kernel that waits), else on the CPU, and writes into an output how long that took
by its own clock, from `run`'s begin to the GPU's rest. The referee's clock runs from
before the inputs come, and the child may move, until the outputs are read. The
difference is what the lane adds: inputs, to go on, the order, the answer, the copy.
Beside it an order and its answer
through the queues of `torch.multiprocessing`, which graders use.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "labs"), str(ROOT / "monitors")]

from benchmarks.report import ask, tell
from tests.labs.host.small_lab import write_lab
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import HostRequest
from warpbook_labs.engines.host.memory import laid_out
from warpbook_labs.engines.host.messages import Prepare
from warpbook_labs.engines.host.session import Session
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError

#: numbers of a unit's output, each a float32
SIZE = 1 << 20
WORKS = """
import time
import torch

HERTZ = {hertz}


def prepare(n):
    return None


def run(state, x, factor, out, whole):
    began = time.perf_counter_ns()
    told = whole.numpy()
    out.copy_(x)
    if torch.cuda.is_available():
        torch.cuda._sleep(int({unit_s} * HERTZ))
        torch.cuda.synchronize()
    else:
        while time.perf_counter_ns() - began < {unit_s} * 1e9:
            pass
    told[0] = time.perf_counter_ns() - began
"""


def device() -> Device | None:
    """Give the GPU, where there is one."""
    try:
        return Device()
    except DriverError:
        return None


def added_us(
    units: int, unit_s: float, gpu: Device | None
) -> tuple[list[float], list[float]]:
    """Have units timed; give what it adds to each, and what empty ones take."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = write_lab(Path(folder))
        case = public_cases(loaded.lab)[0]
        case = type(case)(case.about, {"n": SIZE}, case.values, 0, is_hidden=False)
        text = WORKS.format(unit_s=unit_s, hertz=1.9e9)
        given = str(loaded.folder), text, (case,)
        session = Session(
            HostRequest(*given, has_gpu=gpu is not None), loaded, device=gpu
        )
        try:
            problem = session.start()
            if problem:
                raise RuntimeError(problem)
            return _timed(session, units)
        finally:
            session.close()


def _timed(session: Session, units: int) -> tuple[list[float], list[float]]:
    harness = session.harness
    child = harness.children["learner"]
    layout = laid_out(session.parameters, {"n": SIZE})
    for place, region in harness.regions.items():
        region.own()
        region.load([slot for slot in layout.read if slot.place == place], "learner")
    child.ask(Prepare({"n": SIZE}, layout.slots), 20.0)
    child.stop()
    whole = next(slot for slot in layout.written if slot.name == "whole")
    added, empty = [], []
    for _ in range(units + 5):
        run = harness.next_run(1, {"factor": 2.0})
        unit = harness.timed("learner", run, layout, 20.0)
        own_ns = int(harness.region(whole).kept(whole, "learner")[0])
        added.append((unit.taken_ns - own_ns) / 1e3)
        run = harness.next_run(1, {"factor": 2.0}, is_empty=True)
        empty.append(harness.timed("learner", run, layout, 20.0).taken_ns / 1e3)
    return added[5:], empty[5:]


def _answer(requests: Any, answers: Any) -> None:
    while requests.get() is not None:
        answers.put(1)


def queue_us(units: int) -> list[float]:
    """Go and done through `torch.multiprocessing`'s queues."""
    import torch.multiprocessing as processes

    context = processes.get_context("spawn")
    requests, answers = context.Queue(), context.Queue()
    child = context.Process(target=_answer, args=(requests, answers), daemon=True)
    child.start()
    times_us = []
    for _ in range(units + 5):
        time.sleep(0.01)
        began_ns = time.perf_counter_ns()
        requests.put(1)
        answers.get()
        times_us.append((time.perf_counter_ns() - began_ns) / 1e3)
    requests.put(None)
    child.join()
    return times_us[5:]


def _row(name: str, times_us: list[float], unit_ms: float) -> str:
    ordered = sorted(times_us)
    middle = statistics.median(ordered)
    late = ordered[int(0.99 * (len(ordered) - 1))]
    low, high = (ordered[int(q * (len(ordered) - 1))] for q in (0.25, 0.75))
    return (
        f"| {name} | {middle:,.0f} ({low:,.0f} to {high:,.0f}) | {late:,.0f} | "
        f"{middle / unit_ms / 10:.2f} % |"
    )


def main() -> None:
    """Measure, and tell."""
    options = ask(__doc__, units=200, unit_ms=10.0)
    gpu = device()
    where = "the CPU" if gpu is None else gpu.name
    added, empty = added_us(options.units, options.unit_ms / 1000, gpu)
    off = statistics.median(empty)
    rows = [
        _row("inputs come, go on, order, answer, outputs read", added, options.unit_ms),
        _row(
            "of it left when an empty unit is taken off, as is done",
            [time_us - off for time_us in added],
            options.unit_ms,
        ),
        _row(
            "`torch.multiprocessing` queues", queue_us(options.units), options.unit_ms
        ),
    ]
    text = "\n".join(
        [
            f"Units of {options.unit_ms:g} ms on {where}, {options.units} of them, "
            f"with {SIZE:,} numbers in each of two outputs:",
            "",
            "| what | added, us (half of them) | 1 in 100 above, us | of a unit |",
            "| --- | --- | --- | --- |",
            *rows,
        ]
    )
    tell(options, "A timed unit of host code", text)


if __name__ == "__main__":
    main()
