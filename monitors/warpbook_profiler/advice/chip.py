"""How fast a GPU does what a change would ask of it, as a range; see `Calibration`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from warpbook_profiler.events.run import GpuLimits, Run
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

    def plus(self, low_ns: float, usual_ns: float, high_ns: float) -> Span:
        """Add something else."""
        return Span(
            self.low_ns + low_ns, self.usual_ns + usual_ns, self.high_ns + high_ns
        )

    def at_most(self, most_ns: float) -> Span:
        """Bound all three."""
        return Span(*(min(time_ns, most_ns) for time_ns in self))


def _longer(one: Span, other: Span) -> Span:
    return Span(*(max(pair) for pair in zip(one, other, strict=True)))


#: the head sizes that attention is measured with
_HEADS = (64, 128)


@dataclass(frozen=True)
class Chip:
    """One GPU of which ceilings are known."""

    _calibration: Calibration
    _ceilings: Ceilings

    @classmethod
    def of(cls, run: Run) -> Chip | None:
        """Take the first GPU of a run; None where no ceiling of it is known."""
        calibration = calibration_of(run)
        best = calibration.ceilings
        return None if best is None else cls(calibration, best)

    def has(self, dtype: str) -> bool:
        """Tell whether it has a unit for products of this dtype, or of "tf32"."""
        return dtype in self._ceilings.flops_per_s

    def peak_flops(self, dtype: str) -> float | None:
        """Give the ceiling of products, per second."""
        return self._ceilings.flops_per_s.get(dtype)

    def least_ns(self, size_bytes: float) -> float:
        """Give what it takes at the ceiling of memory to read or write so much."""
        return size_bytes / self._ceilings.memory_bytes_per_s * 1e9

    def pass_over(self, size_bytes: float) -> Span:
        """Give how long one kernel takes that reads and writes so much."""
        return self._span("pass", size_bytes) or Span(*(self.least_ns(size_bytes),) * 3)

    def multiply(
        self,
        flops: float,
        dtype: str,
        size_bytes: float = 0.0,
        is_convolution: bool = False,
        calls: int = 1,
    ) -> Span | None:
        """Give how long products take; None where there is no unit for the dtype.

        Args:
            flops: multiplications and additions, of all calls.
            dtype: torch's name of it, or "tf32".
            size_bytes: what is read and written at least, by all calls.
            is_convolution: they are not of matrices.
            calls: one kernel after the other.
        """
        kind = "convolve" if is_convolution else "multiply"
        span = self._span(f"{kind}.{dtype}", flops / calls)
        if span is None:
            return None
        return _longer(span, self.pass_over(size_bytes / calls)).times(calls)

    def attend(
        self,
        flops: float,
        dtype: str,
        head: int = _HEADS[0],
        is_backward: bool = False,
        calls: int = 1,
    ) -> Span | None:
        """Give how long fused attentions take; None where nothing is known of them."""
        near = min(_HEADS, key=lambda size: abs(size - head))
        kind = "attend_backward" if is_backward else "attend"
        span = self._span(f"{kind}.{dtype}.{near}", flops / calls)
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


def calibration_of(run: Run) -> Calibration:
    """Give what is known of the times of a run's first GPU, and of its host."""
    gpu: GpuLimits | None = run.gpus[0] if run.gpus else None
    if gpu is None:
        return Calibration()
    major = None if gpu.compute_capability is None else gpu.compute_capability[0]
    return Calibration(gpu.name, major, gpu.measured)
