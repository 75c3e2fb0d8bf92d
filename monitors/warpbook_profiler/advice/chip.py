"""How fast a GPU does what a change would ask of it, as a range.

A kernel that is written well reaches a share of the datasheet's ceiling. In an
experiment on H100 and H200 shares of 0.88 for passes over memory, 0.72 for products on
tensor cores and 0.25 to 0.6 for fused attention predicted 13 of 15 changes within 1.25
times. The ends of the ranges here, and all else, are judgement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.model.ceilings import Ceilings, ceilings


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


#: of the ceilings at best, usually, at worst; see the module
_MEMORY, _TENSOR = (0.93, 0.88, 0.78), (0.8, 0.72, 0.55)
#: of convolutions, which read their operands in another order
_CONVOLUTION = (0.75, 0.55, 0.4)
#: and in half precision, where cuDNN turns the axes of channels-first tensors: 0.48 in
#: two dimensions on an H100, as much in three on an H200
_HALF_CONVOLUTION = (0.65, 0.48, 0.3)
_FP32 = (0.95, 0.85, 0.7)
#: in half precision; and in float32, whose kernels use no tensor cores: 0.43 to 0.51 of
#: three shapes on an H100
_ATTENTION, _FP32_ATTENTION = (0.65, 0.4, 0.25), (0.6, 0.45, 0.3)
_HALVES = ("c10::Half", "c10::BFloat16")
#: what fits into the L2 cache may come from there, so much faster
_CACHE_BYTES, _CACHE_RATIO = 32 << 20, 2.5
#: no kernel takes less; of small ones launches and tails decide
_KERNEL = Span(1_500.0, 2_500.0, 4_000.0)
#: bytes per second from pinned memory, by the link that a compute capability has: x16
#: of PCIe 3, 4 and 5; 55 GB/s were measured over the last, the others are in proportion
_PINNED = {7: (11e9, 13e9), 8: (21e9, 27e9), 9: (48e9, 57e9), 10: (48e9, 57e9)}


@dataclass(frozen=True)
class Chip:
    """One GPU of which ceilings are known."""

    major: int | None
    _ceilings: Ceilings

    @classmethod
    def of(cls, run: Run) -> Chip | None:
        """Take the first GPU of a run; None where no ceiling of it is known."""
        gpu: GpuLimits | None = run.gpus[0] if run.gpus else None
        if gpu is None:
            return None
        best = ceilings(gpu.name) or gpu.measured
        if best is None:
            return None
        major = None if gpu.compute_capability is None else gpu.compute_capability[0]
        return cls(major, best)

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
        best_ns = self.least_ns(size_bytes)
        low_ns, usual_ns, high_ns = (best_ns / share for share in _MEMORY)
        if size_bytes < _CACHE_BYTES:
            low_ns /= _CACHE_RATIO
        return _longer(Span(low_ns, usual_ns, high_ns), _KERNEL)

    def multiply(
        self,
        flops: float,
        dtype: str,
        size_bytes: float = 0.0,
        is_convolution: bool = False,
    ) -> Span | None:
        """Give how long products take; None where there is no unit for the dtype.

        Args:
            flops: multiplications and additions.
            dtype: torch's name of it, or "tf32".
            size_bytes: what is read and written at least.
            is_convolution: they are not of matrices.
        """
        peak = self.peak_flops(dtype)
        if peak is None:
            return None
        if is_convolution:
            shares = _HALF_CONVOLUTION if dtype in _HALVES else _CONVOLUTION
        else:
            shares = _FP32 if dtype in ("float", "double") else _TENSOR
        best_ns = flops / peak * 1e9
        computed = Span(*(best_ns / share for share in shares))
        return _longer(computed, self.pass_over(size_bytes))

    def attend(self, flops: float, dtype: str) -> Span | None:
        """Give how long a fused attention takes; None where nothing is known of it."""
        peak = self.peak_flops(dtype)
        if peak is None:
            return None
        shares = _FP32_ATTENTION if dtype == "float" else _ATTENTION
        best_ns = flops / peak * 1e9
        return _longer(Span(*(best_ns / share for share in shares)), _KERNEL)

    def copy_pinned(self, size_bytes: float) -> Span | None:
        """Give how long a copy from or to pinned memory takes over its link."""
        rates = _PINNED.get(self.major or 0)
        if rates is None:
            return None
        slow, fast = rates
        usual = (slow + fast) / 2
        return Span(*(size_bytes / rate * 1e9 for rate in (fast, usual, slow)))
