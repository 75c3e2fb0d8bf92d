"""Reports of cells with a planted bottleneck, and what `%%gpuprof` says of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import msgspec

from warpbook_labs.questions import Question
from warpbook_labs.simulated.cell import SIDE, Cell
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.columns import Operands
from warpbook_monitors.trace.figures import Metrics
from warpbook_monitors.trace.findings import find
from warpbook_monitors.trace.findings import judge as verdict_of

Report = dict[str, Any]
_POINTWISE = "void at::native::vectorized_elementwise_kernel<4, {}>(int)"
_SGEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_simt"
_NVJET = "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_NNT"
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_OWN = "my_scan(float const*, float*, int)"
#: of an H200's datasheet
_BYTES_PER_NS, _FP32_PER_NS, _BF16_PER_NS = 4_800, 67_000, 989_000
#: a time may be off by this part
_CLOSE = 0.01
#: of each kind that has a line, which idle places tell it
_CAUSES = {"launch-bound": "launching", "host-bound": "other"}


class _Script:
    """What cells do, each on its own line."""

    def __init__(self, chance: random.Random, is_measured: bool) -> None:
        self.chance, self.cell = chance, Cell(chance, is_measured)
        self.lines = sorted(chance.sample(range(2, 70), 9))
        self.cell.line(self.lines[0])
        self.cell.python((20, 60))

    def at(self, place: int) -> Cell:
        self.cell.line(self.lines[place])
        return self.cell

    def times(self, least: int, most: int) -> range:
        return range(self.chance.randint(least, most))

    def pointwise(self, mib: float, place: int = 7) -> None:
        """Pass over memory, at half of the datasheet's rate or better."""
        elements = round(mib * 2**18)
        took_ns = 8 * elements / _BYTES_PER_NS / self.chance.uniform(0.5, 0.75)
        name = _POINTWISE.format(self.chance.choice(["mul", "gelu", "where"]))
        operands = Operands(((elements,),), ("float",))
        self.at(place).kernel(name, round(took_ns), "aten::gelu", operands)

    def product(self, side: int, dtype: str = "float", place: int = 7) -> None:
        """Multiply matrices."""
        name, peak = (_SGEMM, _FP32_PER_NS)
        if dtype != "float":
            name, peak = (_NVJET, _BF16_PER_NS)
        took_ns = 2 * side**3 / peak / self.chance.uniform(0.5, 0.74)
        operands = Operands(((side, side), (side, side)), (dtype, dtype))
        self.at(place).kernel(name, round(took_ns), "aten::mm", operands)

    def tiny(self, place: int, blocks: int = 64) -> None:
        """Launch a kernel of microseconds."""
        took_ns = self.cell.ns((1.4, 2.2))
        cell = self.at(place)
        cell.kernel(_POINTWISE.format("add"), took_ns, "aten::add_", blocks=blocks)

    def read_number(self, place: int) -> None:
        """Read one number back."""
        self.at(place).copy("DtoH", "Pageable", 4, 1, "aten::item")

    def finish(self) -> CellProfile:
        """Wait for all, as people do at the end."""
        self.at(8).wait()
        return self.cell.profile()


def _many_launches(script: _Script) -> None:
    """Kernels of microseconds, one after the other."""
    for _ in script.times(60, 120):
        script.tiny(script.chance.choice((3, 3, 3, 4)))
        script.cell.python((1, 3))
    script.cell.profiler((150, 250))


def _small_and_close(script: _Script) -> None:
    """A queue that is full, of kernels too small, with gaps between them."""
    script.product(1024)
    for _ in script.times(70, 120):
        script.at(3).kernel(
            _POINTWISE.format("add"),
            script.cell.ns((1.8, 2.6)),
            blocks=8,
            cost=(0.3, 0.5),
            behind=(1.8, 2.6),
        )


def _reads_each_number(script: _Script) -> None:
    """A number read in each step; a long wait at the end, which costs nothing."""
    for step in script.times(20, 40):
        script.product(script.chance.choice((512, 640)), place=2)
        script.read_number(5)
        script.cell.python((60, 90))
        # seldom, and long: the first wait, and the slowest, but not the one that counts
        if step % 16 == 0:
            script.pointwise(256, 3)
            script.at(4).wait("cudaStreamSynchronize")
    script.pointwise(1500, 6)


def _waits_each_step(script: _Script) -> None:
    """`synchronize()` after each step, to take the time."""
    for _ in script.times(20, 40):
        script.pointwise(script.chance.uniform(30, 60), 2)
        script.at(4).wait()
        script.cell.python((50, 90))
        # more calls, by which nothing is waited for any more
        for _ in range(2):
            script.at(5).wait()
    script.cell.profiler((400, 700))
    script.product(3072, place=6)


def _slow_loader(script: _Script) -> None:
    """Something in Python before each step."""
    for step in script.times(8, 16):
        script.at(1).python((500, 900))
        script.product(1024, place=3)
        script.pointwise(30, 5)
        if step % 4 == 0:
            script.at(6).python((150, 300))
            script.tiny(6)


def _pageable_copies(script: _Script) -> None:
    """Batches from ordinary memory."""
    for _ in script.times(6, 12):
        rate = script.chance.uniform(9, 12)
        script.at(2).copy("HtoD", "Pageable", script.chance.randint(6, 10) << 20, rate)
        script.product(2048, "c10::BFloat16", 4)


def _pinned_copies(script: _Script) -> None:
    """Batches from pinned memory, with nothing beside them."""
    for _ in script.times(6, 12):
        rate = script.chance.uniform(48, 55)
        script.at(2).copy("HtoD", "Pinned", script.chance.randint(30, 60) << 20, rate)
        script.product(2048, "c10::BFloat16", 4)
        script.pointwise(120, 5)


def _hidden_copies(script: _Script) -> None:
    """Long copies, with longer kernels beside them."""
    for _ in script.times(5, 9):
        script.product(4096, place=4)
        rate = script.chance.uniform(48, 55)
        size_bytes = script.chance.randint(70, 90) << 20
        script.at(2).copy("HtoD", "Pinned", size_bytes, rate, stream=SIDE)


def _passes_over_memory(script: _Script) -> None:
    """A chain of pointwise operators, and copies within the GPU."""
    for _ in script.times(8, 16):
        script.pointwise(script.chance.uniform(400, 700), 3)
        size_bytes = script.chance.randint(100, 200) << 20
        script.at(4).copy("DtoD", "", size_bytes, script.chance.uniform(1500, 2200))
        script.product(1536, place=6)


def _half_precision(script: _Script) -> None:
    """Products on the tensor cores; the profiler held the host up."""
    script.cell.profiler((4000, 7000))
    for _ in script.times(10, 20):
        script.product(script.chance.choice((4096, 5120)), "c10::BFloat16", 4)
        script.pointwise(200, 5)


def _all_reduces(script: _Script) -> None:
    """Gradients are added up while nothing else goes on."""
    for _ in script.times(6, 10):
        script.product(4096, "c10::BFloat16", 3)
        took_ns = script.cell.ns((500, 900))
        script.at(5).kernel(_NCCL, took_ns, "c10d::allreduce_", stream=SIDE)
        script.at(5).wait("cudaStreamSynchronize")


def _a_bit_of_each(script: _Script) -> None:
    """Python, copies and kernels, a third each."""
    for _ in script.times(6, 12):
        script.at(1).python((600, 640))
        script.at(2).copy("HtoD", "Pageable", 3 << 20, script.chance.uniform(10, 11))
        script.pointwise(450, 4)


def _nobody_knows(script: _Script) -> None:
    """A kernel of somebody's own, of which no operator tells the work."""
    for _ in script.times(6, 12):
        script.at(3).kernel(_OWN, script.cell.ns((400, 700)))
        script.pointwise(150, 5)


#: what is planted, and what kind it must come out as
_PLANTED: tuple[tuple[str, str, Callable[[_Script], None]], ...] = (
    ("many small launches", "launch-bound", _many_launches),
    ("small kernels close behind one another", "launch-bound", _small_and_close),
    ("a number read in each step", "sync-bound", _reads_each_number),
    ("a wait in each step", "sync-bound", _waits_each_step),
    ("a slow loader", "host-bound", _slow_loader),
    ("batches from pageable memory", "transfer-bound", _pageable_copies),
    ("batches from pinned memory", "transfer-bound", _pinned_copies),
    ("copies beside kernels", "compute-bound", _hidden_copies),
    ("passes over memory", "memory-bound", _passes_over_memory),
    ("products in half precision", "compute-bound", _half_precision),
    ("gradients added up", "communication-bound", _all_reduces),
    ("a bit of each", "mixed", _a_bit_of_each),
    ("a kernel of somebody's own", "unknown", _nobody_knows),
)


def questions(chance: random.Random) -> list[Question]:
    """Draw a cell of each kind; ask what is clear in its report."""
    found = []
    for about, kind, plant in chance.sample(_PLANTED, len(_PLANTED)):
        script, said, report = _clear(kind, plant, chance)
        found.append(Question("bottleneck", {"report": report}, about))
        if said.line is not None:
            found.append(Question("line", {"report": report}, about))
        if said.at_best_ns is not None:
            found.append(Question("at_best_ns", {"report": report}, about))
        if kind in ("transfer-bound", "compute-bound", "communication-bound"):
            pieces = [dict(vars(each)) for each in script.cell.pieces()][:40]
            chance.shuffle(pieces)
            found.append(Question("busy_ns", {"pieces": pieces}, about))
            found.append(Question("exposed_copy_ns", {"pieces": pieces}, about))
    return found


def _clear(
    kind: str, plant: Callable[[_Script], None], chance: random.Random
) -> tuple[_Script, _Said, Report]:
    """Run cells until there is one whose verdict is not too close to call."""
    for _ in range(100):
        script = _Script(chance, kind == "memory-bound" or chance.random() < 0.5)
        plant(script)
        profile = script.finish()
        if profile.metrics is None or profile.completeness.refusal:
            continue
        said = _Said(profile.metrics)
        if said.verdict.kind == kind and said.is_clear:
            told = {"metrics": profile.metrics, "kernels": profile.kernels}
            return script, said, msgspec.to_builtins(told)
    raise ValueError(f"no cell comes out as clearly {kind}")


class _Said:
    """What a report says of a cell, by the rules of the product."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics, self.findings = metrics, find(metrics)
        self.verdict = verdict_of(metrics, self.findings)
        #: the verdict's own, the largest first
        self.first = [each for each in self.findings if each.kind == self.verdict.kind]
        self.window_ns = metrics.window_ns - metrics.idle.profiler_ns

    @property
    def shares(self) -> dict[str, float]:
        """Add up the findings of each kind, the largest first."""
        shares: dict[str, float] = {}
        for each in self.findings:
            shares[each.kind] = shares.get(each.kind, 0.0) + each.share
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    @property
    def is_clear(self) -> bool:
        """Tell whether no share lies near what decides."""
        first, second = [*self.shares.values(), 0.0, 0.0][:2]
        work = self.metrics.kernel_work
        untold_ns = sum(each.time_ns for each in work if each.bound == "unknown")
        untold = untold_ns / self.window_ns
        is_ahead = not 0.7 * first < second < 0.9 * first
        return not 0.36 < first < 0.44 and not 0.36 < untold < 0.44 and is_ahead

    @property
    def at_best_ns(self) -> int | None:
        """Give the window without its largest cause, where that is one alone."""
        found = self.first
        if not found or (len(found) > 1 and found[1].share > 0.7 * found[0].share):
            return None
        return found[0].bound_ns

    @property
    def line(self) -> int | None:
        """Give the line where most of the GPU's waiting was, where that is clear."""
        kind, waits = self.verdict.kind, list[tuple[int | None, int]]()
        if kind == "sync-bound":
            waits = [(each.line, each.stall_ns) for each in self.metrics.sync_points]
        elif kind in _CAUSES:
            waits = [
                (each.line, each.time_ns)
                for each in self.metrics.idle_places
                if each.cause == _CAUSES[kind]
            ]
        by_line: dict[int, int] = {}
        for line, time_ns in waits:
            if line is not None:
                by_line[line] = by_line.get(line, 0) + time_ns
        ranked = sorted(by_line, key=lambda each: -by_line[each])
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
        return f"It is {answer}; right is {said.line}. {said.first[0].evidence}"
    if answer == said.verdict.kind:
        return ""
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in said.shares.items())
    words = f"It is {answer[:30]!r}; right is {said.verdict.kind!r}."
    return f"{words} Of the window: {shares or 'nothing'}."


def _times(pieces: list[dict[str, Any]]) -> dict[str, int]:
    """Add up by going from one begin or end to the next."""
    marks = []
    for each in pieces:
        marks.append((each["start_ns"], 1, each["kind"]))
        marks.append((each["end_ns"], -1, each["kind"]))
    held, last = {"copy": 0, "kernel": 0}, 0
    found = {"busy_ns": 0, "exposed_copy_ns": 0}
    for at, step, kind in sorted(marks):
        if held["copy"] or held["kernel"]:
            found["busy_ns"] += at - last
        if held["copy"] and not held["kernel"]:
            found["exposed_copy_ns"] += at - last
        held[kind] += step
        last = at
    return found


def _off(answer: float, right: int, why: str = "") -> str:
    if math.isclose(answer, right, rel_tol=0, abs_tol=_CLOSE * abs(right)):
        return ""
    words = f"It is {answer:,.0f} ns; right is {right:,}, within {_CLOSE:.0%}."
    return f"{words} {why}".strip()
