"""How fast a GPU does what a change would ask of it, as a range; see `Calibration`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from warpbook_profiler.events.run import Run
from warpbook_profiler.model.calibration import Calibration
from warpbook_profiler.model.ceilings import Ceilings


class Span(NamedTuple):
    """What something takes at least, usually and at most, in ns."""

    low_ns: float
    usual_ns: float
    high_ns: float

    def times(self, count: float) -> Span:
        """Give what so many take one after the other."""
        return Span(self.low_ns * count, self.usual_ns * count, self.high_ns * count)

    def each(self, low: float, usual: float, high: float) -> Span:
        """Give the least, the usual and the most so many times."""
        return Span(self.low_ns * low, self.usual_ns * usual, self.high_ns * high)

    def plus(self, low_ns: float, usual_ns: float, high_ns: float) -> Span:
        """Add something else."""
        return Span(
            self.low_ns + low_ns, self.usual_ns + usual_ns, self.high_ns + high_ns
        )

    def at_most(self, most_ns: float) -> Span:
        """Bound all three."""
        return Span(*(min(time_ns, most_ns) for time_ns in self))


def longer(one: Span, other: Span) -> Span:
    """Give the longer of both, of each of the three."""
    return Span(*(max(pair) for pair in zip(one, other, strict=True)))


#: what caches hold that multiprocessors share: a pass over so much reads no memory
_CACHED_BYTES = 32e6
#: of a large product's result; and the ratio of the products that are measured
_TILE, _MEASURED_WAVES = (128, 256), 1.03
#: the sizes of heads and the channels that are measured
_HEADS, _CHANNELS = (64, 128), (64, 256)
#: both halves take the same time but for sums of matrices at full power
_LIKE = {"c10::BFloat16": "c10::Half"}


class Convolved(NamedTuple):
    """What decides how fast a convolution is, beside its FLOPs."""

    axes: int
    channels: int
    is_backward: bool

    def name(self, dtype: str) -> str:
        """Name the curve that is nearest."""
        kind = "convolve_backward" if self.is_backward else "convolve"
        if self.axes == 3:
            return f"{kind}.{dtype}.3"
        return f"{kind}.{dtype}.2.{_nearest(_CHANNELS, self.channels)}"


@dataclass(frozen=True)
class Chip:
    """One GPU of which ceilings are known."""

    _calibration: Calibration
    _ceilings: Ceilings
    _sm_count: int | None = None

    @classmethod
    def of(cls, run: Run) -> Chip | None:
        """Take the first GPU of a run; None where no ceiling of it is known."""
        calibration = run.calibration
        best = calibration.ceilings
        sm_count = run.gpus[0].sm_count if run.gpus else None
        return None if best is None else cls(calibration, best, sm_count)

    def has(self, dtype: str) -> bool:
        """Tell whether it has a unit for products of this dtype, or of "tf32"."""
        return dtype in self._ceilings.flops_per_s

    def peak_flops(self, dtype: str) -> float | None:
        """Give the ceiling of products, per second."""
        return self._ceilings.flops_per_s.get(dtype)

    def least_ns(self, size_bytes: float) -> float:
        """Give what it takes at the ceiling of memory to read or write so much."""
        return size_bytes / self._ceilings.memory_bytes_per_s * 1e9

    def cached_ns(self, size_bytes: float) -> float:
        """Give what it takes to read so much that is in the cache of all of the GPU."""
        return self.pass_over(_CACHED_BYTES).usual_ns * size_bytes / _CACHED_BYTES

    def pass_over(self, size_bytes: float, is_reduced: bool = False) -> Span:
        """Give how long one kernel takes that reads and writes so much."""
        span = self._span("reduce" if is_reduced else "pass", size_bytes)
        return span or Span(*(self.least_ns(size_bytes),) * 3)

    def multiply(
        self,
        flops: float,
        dtype: str,
        size_bytes: float = 0.0,
        convolved: Convolved | None = None,
        is_odd: bool = False,
        calls: int = 1,
    ) -> Span | None:
        """Give how long products take; None where there is no unit for the dtype.

        Args:
            flops: multiplications and additions, of all calls.
            dtype: torch's name of it, or "tf32".
            size_bytes: what is read and written at least, by all calls.
            convolved: they are convolutions.
            is_odd: of sizes that tensor cores take badly.
            calls: one kernel after the other.
        """
        if not self.has(dtype):
            return None
        like = _LIKE.get(dtype, dtype)
        names = [f"multiply.{dtype}"]
        if is_odd:
            names.insert(0, f"odd.{like}")
        if convolved is not None:
            names.insert(0, convolved.name(like))
        spans = (self._span(name, flops / calls) for name in names)
        span = next(filter(None, spans), None)
        if span is None:
            return None
        return longer(span, self.pass_over(size_bytes / calls)).times(calls)

    def waves_ratio(self, rows: int, columns: int) -> float:
        """Give as how many elements a product's result counts, of those it has.

        Multiprocessors compute a tile each, in waves, of which the last is not full.
        """
        height, width = _TILE
        tiles = math.ceil(rows / height) * math.ceil(columns / width)
        if not self._sm_count or tiles <= self._sm_count:
            return 1.0
        waves = math.ceil(tiles / self._sm_count)
        whole = waves * self._sm_count * height * width
        return max(whole / (rows * columns) / _MEASURED_WAVES, 1.0)

    def attend(
        self,
        flops: float,
        dtype: str,
        head: int = _HEADS[0],
        is_backward: bool = False,
        calls: int = 1,
    ) -> Span | None:
        """Give how long fused attentions take; None where nothing is known of them."""
        near = _nearest(_HEADS, head)
        # a small head is padded, and each score's exponential takes as long
        flops *= max(_HEADS[0] / max(head, 1), 1.0)
        kind = "attend_backward" if is_backward else "attend"
        like = _LIKE.get(dtype, dtype)
        span = self._span(f"{kind}.{like}.{near}", flops / calls)
        return None if span is None else span.times(calls)

    def copy(
        self, size_bytes: float, way: str, memory: str = "pinned", calls: int = 1
    ) -> Span | None:
        """Give how long copies take over the link; None where it is not known.

        Args:
            size_bytes: of all calls.
            way: "to_gpu" or "to_host".
            memory: "pinned" or "pageable".
            calls: one after the other.
        """
        span = self._span(f"copy.{way}.{memory}", size_bytes / calls)
        return None if span is None else span.times(calls)

    def _span(self, name: str, amount: float) -> Span | None:
        times = self._calibration.times(name, amount)
        return None if times is None else Span(*times)


def _nearest(measured: tuple[int, ...], size: int) -> int:
    return min(measured, key=lambda one: abs(math.log(one / max(size, 1))))
