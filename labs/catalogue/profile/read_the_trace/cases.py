"""Reports of cells with a planted bottleneck, and what `%%gpuprof` says of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import msgspec

from warpbook_labs.engines.simulated.cell import POINTWISE, SIDE, Script
from warpbook_labs.lab.python.questions import Question
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.verdict.findings import find
from warpbook_profiler.verdict.findings import judge as verdict_of

Report = dict[str, Any]
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_OWN = "my_scan(float const*, float*, int)"
#: a time may be off by this part
_CLOSE = 0.01
#: of each kind whose ceilings matter, whether `warpbook limits` measured the GPU
_MEASURED = {"memory-bound": True, "compute-bound": False}
#: of each kind that has a line, which idle places tell it
_CAUSES = {"launch-bound": "launching", "host-bound": "other"}


def _many_launches(script: Script) -> None:
    """Kernels of microseconds, one after the other."""
    for _ in script.times(60, 120):
        script.tiny(script.rng.choice((3, 3, 3, 4)))
        script.cell.python((1, 3))
    script.cell.profiler((150, 250))


def _small_and_close(script: Script) -> None:
    """A queue that is full, of kernels too small, with gaps as long between them."""
    for _ in script.times(4, 7):
        script.product(1024)
        for _ in range(20):
            script.at(3).kernel(
                POINTWISE.format("add"),
                script.cell.ns((1.8, 2.6)),
                blocks=8,
                cost=(0.3, 0.5),
                behind=(1.8, 2.6),
            )


def _reads_each_number(script: Script) -> None:
    """A number read in each step; a long wait at the end, which costs nothing."""
    for step in script.times(20, 40):
        script.product(script.rng.choice((512, 640)), place=2)
        script.read_number(5)
        script.cell.python((45, 60))
        # seldom, and long: the first wait, the slowest, and the GPU idles longest after
        # it, but it is not the one that counts
        if step % 16 == 0:
            script.pointwise(256, 3)
            script.at(4).wait("cudaStreamSynchronize")
            script.cell.python((80, 85))
    script.pointwise(1000, 6)


def _waits_each_step(script: Script) -> None:
    """`synchronize()` after each step, to take the time."""
    for _ in script.times(20, 40):
        script.pointwise(script.rng.uniform(30, 60), 2)
        script.at(4).wait()
        script.cell.python((50, 90))
        # more calls, by which nothing is waited for any more
        for _ in range(2):
            script.at(5).wait()
    script.cell.profiler((400, 700))
    script.product(3072, place=6)


def _slow_loader(script: Script) -> None:
    """Something in Python before each step."""
    for step in script.times(8, 16):
        script.at(1).python((500, 900))
        script.product(1024, place=3)
        script.pointwise(30, 5)
        if step % 4 == 0:
            script.at(6).python((150, 300))
            script.tiny(6)


def _loader_among_launches(script: Script) -> None:
    """Work in four places, and launches in one that take longer than each of it."""
    for _ in script.times(4, 7):
        script.at(1).python((190, 200))
        for place in (2, 6, 7):
            script.tiny(place)
            script.at(place).python((115, 125))
        for _ in range(46):
            script.tiny(4)
            script.cell.python((1, 3))


def _launches_beside_a_loader(script: Script) -> None:
    """Launches on one line, and a longer pause on another that is not the cause."""
    for _ in script.times(4, 7):
        script.at(1).python((95, 105))
        for _ in range(46):
            script.tiny(4)
            script.cell.python((1, 3))


def _pageable_copies(script: Script) -> None:
    """Batches from ordinary memory."""
    for _ in script.times(6, 12):
        rate = script.rng.uniform(9, 12)
        script.at(2).copy("HtoD", "Pageable", script.rng.randint(6, 10) << 20, rate)
        script.product(2048, "c10::BFloat16", 4)


def _pinned_copies(script: Script) -> None:
    """Batches from pinned memory, with nothing beside them."""
    for _ in script.times(6, 12):
        script.pinned("HtoD", script.rng.uniform(600, 1200), 2)
        script.product(2048, "c10::BFloat16", 4)
        script.pointwise(120, 5)


def _results_back(script: Script) -> None:
    """Batches come, results go, and the GPU copies some of them for itself."""
    for _ in script.times(6, 12):
        script.pinned("HtoD", script.rng.uniform(280, 300), 2)
        script.clone(script.rng.uniform(160, 200), 3)
        script.product(2048, "c10::BFloat16", 4)
        script.pinned("DtoH", script.rng.uniform(330, 360), 5)


def _hidden_copies(script: Script) -> None:
    """Long copies, with kernels beside them that are hardly longer."""
    for _ in script.times(5, 9):
        took_us = script.product(4096, place=4) / 1_000
        part = script.rng.uniform(0.88, 0.94)
        script.pinned("HtoD", took_us * part, 2, SIDE)


def _clones(script: Script) -> None:
    """Copies within the GPU, while batches come beside a product, and after it."""
    for _ in script.times(6, 12):
        took_us = script.product(1664, place=4) / 1_000
        script.pinned("HtoD", took_us * 0.9, 2, SIDE)
        script.pinned("HtoD", script.rng.uniform(120, 150), 3)
        script.clone(script.rng.uniform(600, 700), 5)
        script.at(6).wait("cudaStreamSynchronize")


def _passes_over_memory(script: Script) -> None:
    """A chain of pointwise operators near the ceiling, and copies within the GPU."""
    for _ in script.times(8, 16):
        script.pointwise(script.rng.uniform(500, 600), 3, 0.65)
        script.clone(script.rng.uniform(150, 190), 4)
        script.product(1280, place=6)


def _half_precision(script: Script) -> None:
    """Products on the tensor cores; the profiler held the host up."""
    script.cell.profiler((4000, 7000))
    for _ in script.times(10, 20):
        script.product(script.rng.choice((4096, 5120)), "c10::BFloat16", 4)
        script.product(1280, place=6)
        script.pointwise(200, 5)


def _all_reduces(script: Script) -> None:
    """Gradients are added up while nothing else goes on."""
    for _ in script.times(6, 10):
        script.product(4096, "c10::BFloat16", 3)
        took_ns = script.cell.ns((500, 900))
        script.at(5).kernel(_NCCL, took_ns, "c10d::allreduce_", stream=SIDE)
        script.at(5).wait("cudaStreamSynchronize")


def _a_bit_of_each(script: Script) -> None:
    """Python, copies and kernels: one is ahead, and explains a third."""
    for _ in script.times(6, 12):
        script.at(1).python((350, 370))
        script.pinned("HtoD", script.rng.uniform(220, 240), 2)
        script.clone(script.rng.uniform(220, 240), 3)
        script.product(1664, place=4)
        script.at(5).wait()


def _two_alike(script: Script) -> None:
    """Batches from pageable memory are prepared for as long as they are copied."""
    for _ in script.times(6, 12):
        script.at(1).python((555, 565))
        script.at(2).copy("HtoD", "Pageable", 5 << 20, script.rng.uniform(10, 10.2))
        script.product(1024, place=4)


def _nobody_knows(script: Script) -> None:
    """A kernel of somebody's own, of which no operator tells the work."""
    for _ in script.times(6, 12):
        script.at(3).kernel(_OWN, script.cell.ns((400, 700)))
        script.pointwise(150, 5)


def _nobody_knows_a_part(script: Script) -> None:
    """Such a kernel, and products that take longer."""
    for _ in script.times(6, 12):
        took_us = script.product(4096, "c10::BFloat16", 4) / 1_000
        part = script.rng.uniform(0.84, 0.88)
        script.at(3).kernel(_OWN, script.cell.ns((took_us * part, took_us * part)))


def _nobody_knows_a_third(script: Script) -> None:
    """Such a kernel is ahead of Python, copies and passes, and none explains much."""
    for _ in script.times(6, 12):
        script.at(1).python((250, 260))
        script.pinned("HtoD", script.rng.uniform(240, 250), 2)
        script.at(3).kernel(_OWN, script.cell.ns((330, 340)))
        script.pointwise(script.rng.uniform(130, 140), 5)
        script.at(5).wait()


def _nothing_ran(script: Script) -> None:
    """The GPU was forgotten."""
    for _ in script.times(3, 6):
        script.at(3).python((400, 900))


#: what is planted, and what kind it must come out as
_PLANTED: tuple[tuple[str, str, Callable[[Script], None]], ...] = (
    ("many small launches", "launch-bound", _many_launches),
    ("small kernels close behind one another", "launch-bound", _small_and_close),
    ("a number read in each step", "sync-bound", _reads_each_number),
    ("a wait in each step", "sync-bound", _waits_each_step),
    ("a slow loader", "host-bound", _slow_loader),
    ("a loader, and launches on one line", "host-bound", _loader_among_launches),
    ("launches, and a loader on one line", "launch-bound", _launches_beside_a_loader),
    ("batches from pageable memory", "transfer-bound", _pageable_copies),
    ("batches from pinned memory", "transfer-bound", _pinned_copies),
    ("batches there, results back", "transfer-bound", _results_back),
    ("copies beside kernels", "compute-bound", _hidden_copies),
    ("copies within the GPU", "memory-bound", _clones),
    ("passes over memory", "memory-bound", _passes_over_memory),
    ("products in half precision", "compute-bound", _half_precision),
    ("gradients added up", "communication-bound", _all_reduces),
    ("a bit of each", "mixed", _a_bit_of_each),
    ("two causes alike", "mixed", _two_alike),
    ("a kernel of somebody's own", "unknown", _nobody_knows),
    ("such a kernel, and longer products", "compute-bound", _nobody_knows_a_part),
    ("such a kernel, and a bit of each", "mixed", _nobody_knows_a_third),
    ("nothing on the GPU", "unknown", _nothing_ran),
)


def questions(rng: random.Random) -> list[Question]:
    """Draw a cell of each kind; ask what is clear in its report."""
    drawn = []
    for about, kind, plant in rng.sample(_PLANTED, len(_PLANTED)):
        script, said, report = _clear(kind, plant, rng)
        drawn.append(Question("bottleneck", {"report": report}, about))
        if said.line is not None:
            drawn.append(Question("line", {"report": report}, about))
        if said.at_best_ns is not None:
            drawn.append(Question("at_best_ns", {"report": report}, about))
        if kind in ("transfer-bound", "compute-bound", "communication-bound"):
            pieces = [dict(vars(piece)) for piece in script.cell.pieces()][:40]
            rng.shuffle(pieces)
            drawn.append(Question("busy_ns", {"pieces": pieces}, about))
            drawn.append(Question("exposed_copy_ns", {"pieces": pieces}, about))
    for about, most in (("one piece", 1), ("short pieces", 4), ("many pieces", 40)):
        for function in ("busy_ns", "exposed_copy_ns"):
            drawn.append(Question(function, {"pieces": _pieces(rng, most)}, about))
    return drawn


def _pieces(rng: random.Random, most: int) -> list[dict[str, Any]]:
    """Draw pieces of a few ns, of which many begin or end with another."""
    pieces = []
    for _ in range(rng.randint((most + 1) // 2, most)):
        begin_ns = rng.randint(0, 3 * most)
        times = {"start_ns": begin_ns, "end_ns": begin_ns + rng.randint(1, 9)}
        kind = rng.choice(("kernel", "copy"))
        pieces.append({"kind": kind, "stream": rng.randint(0, 3), **times})
    return pieces


def _clear(
    kind: str, plant: Callable[[Script], None], rng: random.Random
) -> tuple[Script, _Said, Report]:
    """Run cells until there is one whose verdict is not too close to call."""
    for _ in range(100):
        script = Script(rng, _MEASURED.get(kind, rng.random() < 0.5))
        plant(script)
        profile = script.finish()
        if profile.metrics is None or profile.completeness.refusal:
            continue
        said = _Said(profile.metrics)
        if said.verdict.kind == kind and said.is_clear:
            report = {"metrics": profile.metrics, "kernels": profile.kernels}
            report = msgspec.to_builtins(report)
            for row in report["kernels"]:
                # answers begun with an earlier starter read this one
                row["time_ms"] = row["time_ns"] / 1e6
            return script, said, report
    raise ValueError(f"no cell comes out as clearly {kind}")


class _Said:
    """What a report says of a cell, by the rules of the product."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics, self.findings = metrics, find(metrics)
        self.verdict = verdict_of(metrics, self.findings)
        #: the verdict's own, the largest first
        self.first = [
            finding for finding in self.findings if finding.kind == self.verdict.kind
        ]
        self.window_ns = metrics.window_ns - metrics.idle.profiler_ns

    @property
    def shares(self) -> dict[str, float]:
        """Add up the findings of each kind, the largest first."""
        shares: dict[str, float] = {}
        for finding in self.findings:
            shares[finding.kind] = shares.get(finding.kind, 0.0) + finding.share
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    @property
    def is_clear(self) -> bool:
        """Tell whether no share lies near what decides."""
        first, second = [*self.shares.values(), 0.0, 0.0][:2]
        work = self.metrics.kernel_work
        untold_ns = sum(row.time_ns for row in work if row.bound == "unknown")
        untold = untold_ns / self.window_ns
        is_far = not 0.7 * first < second < 0.9 * first
        is_far = is_far and not 0.9 * first < untold < 1.1 * first
        return not 0.36 < first < 0.44 and not 0.36 < untold < 0.44 and is_far

    @property
    def at_best_ns(self) -> int | None:
        """Give the window without its largest cause, where that is one alone."""
        causes = self.first
        if not causes or (len(causes) > 1 and causes[1].share > 0.7 * causes[0].share):
            return None
        return causes[0].bound_ns

    @property
    def line(self) -> int | None:
        """Give the line where most of the GPU's waiting was, where that is clear."""
        kind, waits = self.verdict.kind, list[tuple[int | None, int]]()
        if kind == "sync-bound":
            waits = [(point.line, point.stall_ns) for point in self.metrics.sync_points]
        elif kind in _CAUSES:
            waits = [
                (place.line, place.time_ns)
                for place in self.metrics.idle_places
                if place.cause == _CAUSES[kind]
            ]
        by_line: dict[int, int] = {}
        for line, time_ns in waits:
            if line is not None:
                by_line[line] = by_line.get(line, 0) + time_ns
        ranked = sorted(by_line, key=lambda number: -by_line[number])
        if not ranked or waits[0][0] != ranked[0]:
            return None
        if len(ranked) > 1 and by_line[ranked[1]] > 0.7 * by_line[ranked[0]]:
            return None
        return ranked[0]


def judge(question: Question, answer: Any) -> str:
    """Hold an answer against what the report would say."""
    if question.function in ("busy_ns", "exposed_copy_ns"):
        right = _times(question.arguments["pieces"])[question.function]
        return _off(answer, right)
    metrics = question.arguments["report"]["metrics"]
    said = _Said(msgspec.convert(metrics, type=Metrics))
    if question.function == "at_best_ns":
        return _off(answer, said.at_best_ns or 0, said.first[0].evidence)
    if question.function == "line":
        if answer == said.line:
            return ""
        return f"Returned {answer}; expected {said.line}. {said.first[0].evidence}"
    if answer == said.verdict.kind:
        return ""
    shares = ", ".join(
        f"{kind} {100 * share:.0f} %" for kind, share in said.shares.items()
    )
    words = f"Returned {answer[:30]!r}; expected {said.verdict.kind!r}."
    return f"{words} Of the window: {shares or 'nothing'}."


def _times(pieces: list[dict[str, Any]]) -> dict[str, int]:
    """Add up by going from one begin or end to the next."""
    marks = []
    for piece in pieces:
        marks.append((piece["start_ns"], 1, piece["kind"]))
        marks.append((piece["end_ns"], -1, piece["kind"]))
    held, last = {"copy": 0, "kernel": 0}, 0
    times = {"busy_ns": 0, "exposed_copy_ns": 0}
    for at, step, kind in sorted(marks):
        if held["copy"] or held["kernel"]:
            times["busy_ns"] += at - last
        if held["copy"] and not held["kernel"]:
            times["exposed_copy_ns"] += at - last
        held[kind] += step
        last = at
    return times


def _off(answer: float, right: int, why: str = "") -> str:
    if math.isclose(answer, right, rel_tol=0, abs_tol=_CLOSE * abs(right)):
        return ""
    words = (
        f"Returned {answer:,.0f} ns; expected {right:,}, within {100 * _CLOSE:.0f} %."
    )
    return f"{words} {why}".strip()
