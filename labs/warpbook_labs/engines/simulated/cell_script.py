"""Cells that do what programs for a GPU do, each of it on a line of its own."""

from __future__ import annotations

import random

from warpbook_labs.engines.simulated.cell import MAIN, Cell
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.model.cell_profile import CellProfile

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
