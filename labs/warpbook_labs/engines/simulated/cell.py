"""A cell of a notebook that is simulated: what the host does, and the GPU's streams.

The trace that it leaves goes through the analysis of real cells, so that labs about
reports hold answers against what `%%gpuprof` says.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Category,
    Int32s,
    KernelShape,
    Operands,
    interned,
    make_columns,
)
from warpbook_profiler.events.marks import make_marks
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.model.ceilings import Ceilings, ceilings
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.limits import Limits
from warpbook_profiler.verdict.analysis import analyse

#: streams
MAIN, SIDE = 7, 20
GPU_NAME = "NVIDIA H200"
_THREAD = 4242
_US = 1_000
_Held = TypeVar("_Held", bound=Hashable)
Microseconds = tuple[float, float]


@dataclass(frozen=True)
class Piece:
    """Something on the GPU that was launched."""

    kind: str
    stream: int
    #: from the start of the cell
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class _Event:
    name: str
    category: Category
    start_ns: int
    duration_ns: int
    track: int = _THREAD
    #: shared by a call and what it launched, and by their operator
    number: int = NONE
    size_bytes: int = NONE
    shape: KernelShape | None = None
    operands: Operands | None = None


class Cell:
    """A cell that runs."""

    def __init__(self, rng: random.Random, is_measured: bool = False) -> None:
        self._rng = rng
        self._begin_ns = self._now_ns = rng.randrange(10**15, 10**18)
        self._free_ns = {MAIN: 0, SIDE: 0}
        self._events: list[_Event] = []
        self._marks: list[tuple[int, int]] = []
        self._numbers = 0
        measured, sheet = None, ceilings(GPU_NAME)
        if sheet is not None and is_measured:
            part = rng.uniform(0.75, 0.9)
            peaks = {name: rate * part for name, rate in sheet.flops_per_s.items()}
            best = Ceilings(sheet.memory_bytes_per_s * part, peaks)
            measured = Limits.of(GPU_NAME, best)
        self._gpu = GpuLimits(GPU_NAME, (9, 0), 132, 2048, 65536, 233472, measured)

    def line(self, number: int) -> None:
        self._marks.append((number, self._now_ns))

    def ns(self, between: Microseconds) -> int:
        return round(self._rng.uniform(*between) * _US)

    def python(self, took: Microseconds) -> None:
        self._now_ns += self.ns(took)

    def profiler(self, took: Microseconds) -> None:
        """Be held up by the profiler itself."""
        took_ns = self.ns(took)
        self._add(_Event("Buffer Flush", Category.OVERHEAD, self._now_ns, took_ns))
        self._now_ns += took_ns

    def kernel(
        self,
        name: str,
        took_ns: int,
        operator: str = "",
        operands: Operands | None = None,
        blocks: int = 4096,
        stream: int = MAIN,
        cost: Microseconds = (4, 6),
        behind: Microseconds = (0.7, 1.3),
    ) -> None:
        shape = KernelShape((blocks, 1, 1), (256, 1, 1), 32, 0)
        begin_ns = self._now_ns
        self._now_ns += self.ns((0.8, 1.5))
        number = self._call("cudaLaunchKernel", self.ns(cost))
        start_ns = self._start_ns(stream, behind)
        self._add(
            _Event(
                name,
                Category.KERNEL,
                start_ns,
                took_ns,
                stream,
                number,
                shape=shape,
            )
        )
        self._free_ns[stream] = start_ns + took_ns
        if operator:
            self._operator(operator, begin_ns, number, operands)

    def copy(
        self,
        direction: str,
        memory: str,
        size_bytes: int,
        gb_per_s: float,
        operator: str = "aten::copy_",
        stream: int = MAIN,
    ) -> None:
        """Copy between host and GPU; from and to pageable memory the host waits."""
        sides = {"HtoD": (memory, "Device"), "DtoH": ("Device", memory)}
        sides["DtoD"] = ("Device", "Device")
        name = "Memcpy {} ({} -> {})".format(direction, *sides[direction])
        begin_ns, took_ns = self._now_ns, max(round(size_bytes / gb_per_s), 1_300)
        number = self._call("cudaMemcpyAsync", self.ns((4, 7)))
        start_ns = self._start_ns(stream, (0.7, 1.3))
        self._add(
            _Event(name, Category.COPY, start_ns, took_ns, stream, number, size_bytes)
        )
        self._free_ns[stream] = start_ns + took_ns
        if memory == "Pageable":
            self.wait("cudaStreamSynchronize")
        self._operator(operator, begin_ns, number, None)

    def wait(self, api: str = "cudaDeviceSynchronize") -> None:
        until_ns = max(*self._free_ns.values(), self._now_ns) + self.ns((2, 3))
        self._call(api, until_ns - self._now_ns)

    def pieces(self) -> list[Piece]:
        """Give what was put on the GPU."""
        kinds = {Category.COPY: "copy", Category.KERNEL: "kernel"}
        return [
            Piece(
                kinds[event.category],
                event.track,
                event.start_ns - self._begin_ns,
                event.start_ns - self._begin_ns + event.duration_ns,
            )
            for event in self._events
            if event.category in kinds
        ]

    def profile(self) -> CellProfile:
        events = self._events
        on_gpu = (Category.COPY, Category.KERNEL)

        def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array([getattr(event, name) for event in events], np.int64)

        device = [0 if event.category in on_gpu else NONE for event in events]
        columns = make_columns(
            names=interned(event.name for event in events),
            categories=[event.category for event in events],
            start_ns=column("start_ns"),
            duration_ns=column("duration_ns"),
            device=np.array(device, np.int64),
            track=column("track"),
            correlation=column("number"),
            size_bytes=column("size_bytes"),
            external=column("number"),
            shapes=_distinct([event.shape for event in events]),
            operands=_distinct([event.operands for event in events]),
        )
        lines, at_ns = zip(*self._marks, strict=True)
        run = Run(
            self._begin_ns,
            self._now_ns,
            max(*self._free_ns.values(), self._now_ns),
            gpu_name=GPU_NAME,
            gpus=(self._gpu,),
            marks=make_marks(lines, at_ns),
        )
        return analyse(columns, run)

    def _start_ns(self, stream: int, behind: Microseconds) -> int:
        """Say when what was just launched can begin."""
        launched_ns = self._now_ns + self.ns((1, 2))
        return max(launched_ns, self._free_ns[stream] + self.ns(behind))

    def _call(self, api: str, took_ns: int) -> int:
        """Call CUDA; give the call's number."""
        self._numbers += 1
        event = _Event(api, Category.API, self._now_ns, took_ns, number=self._numbers)
        self._add(event)
        self._now_ns += took_ns
        return self._numbers

    def _operator(
        self, name: str, begin_ns: int, number: int, operands: Operands | None
    ) -> None:
        self._now_ns += self.ns((0.2, 0.5))
        took_ns = self._now_ns - begin_ns
        self._add(
            _Event(
                name,
                Category.OPERATOR,
                begin_ns,
                took_ns,
                number=number,
                operands=operands,
            )
        )
        self._now_ns += self.ns((0.2, 0.5))

    def _add(self, event: _Event) -> None:
        self._events.append(event)


def _distinct(held: Sequence[_Held | None]) -> tuple[tuple[_Held, ...], Int32s]:
    """Give the distinct ones, and for each event its position, or NONE."""
    places: dict[_Held, int] = {}
    positions = [
        NONE if value is None else places.setdefault(value, len(places))
        for value in held
    ]
    return tuple(places), np.array(positions, np.int32)


POINTWISE = "void at::native::vectorized_elementwise_kernel<4, {}>(int)"
_SGEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_simt"
_NVJET = "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_NNT"
#: of an H200's datasheet
_BYTES_PER_NS, _FP32_PER_NS, _BF16_PER_NS = 4_800, 67_000, 989_000


class Script:
    """A cell with nine lines of something, called places here."""

    def __init__(self, rng: random.Random, is_measured: bool) -> None:
        """Begin it on the first line; the GPU may be one that was measured."""
        self.rng, self.cell = rng, Cell(rng, is_measured)
        self.lines = sorted(rng.sample(range(2, 70), 9))
        self.cell.line(self.lines[0])
        self.cell.python((20, 60))

    def at(self, place: int) -> Cell:
        self.cell.line(self.lines[place])
        return self.cell

    def times(self, least: int, most: int) -> range:
        return range(self.rng.randint(least, most))

    def pointwise(self, mib: float, place: int = 7, least: float = 0.5) -> None:
        """Pass over memory, at such a part of the datasheet's rate or better."""
        elements = round(mib * 2**18)
        took_ns = 8 * elements / _BYTES_PER_NS / self.rng.uniform(least, 0.75)
        name = POINTWISE.format(self.rng.choice(["mul", "gelu", "where"]))
        operands = Operands(((elements,),), ("float",))
        self.at(place).kernel(name, round(took_ns), "aten::gelu", operands)

    def product(self, side: int, dtype: str = "float", place: int = 7) -> int:
        """Multiply matrices; give how long it takes."""
        name, peak = (_SGEMM, _FP32_PER_NS)
        if dtype != "float":
            name, peak = (_NVJET, _BF16_PER_NS)
        took_ns = round(2 * side**3 / peak / self.rng.uniform(0.5, 0.74))
        operands = Operands(((side, side), (side, side)), (dtype, dtype))
        self.at(place).kernel(name, took_ns, "aten::mm", operands)
        return took_ns

    def tiny(self, place: int) -> None:
        took_ns = self.cell.ns((1.4, 2.2))
        cell = self.at(place)
        cell.kernel(POINTWISE.format("add"), took_ns, "aten::add_", blocks=64)

    def pinned(
        self, direction: str, took_us: float, place: int, stream: int = MAIN
    ) -> None:
        """Copy to or from pinned memory for about so long, and don't wait for it."""
        rate = self.rng.uniform(48, 55)
        size_bytes = round(took_us * 1_000 * rate)
        self.at(place).copy(direction, "Pinned", size_bytes, rate, stream=stream)

    def clone(self, took_us: float, place: int) -> None:
        """Copy within the GPU for about so long."""
        rate = self.rng.uniform(1500, 2200)
        size_bytes = round(took_us * 1_000 * rate)
        self.at(place).copy("DtoD", "", size_bytes, rate, "aten::clone")

    def read_number(self, place: int) -> None:
        self.at(place).copy("DtoH", "Pageable", 4, 1, "aten::item")

    def finish(self) -> CellProfile:
        """Wait for all, as people do at the end."""
        self.at(8).wait()
        return self.cell.profile()
