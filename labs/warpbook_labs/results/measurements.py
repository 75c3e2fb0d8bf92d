"""What is measured of a submission and of the GPU that it ran on."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

#: below this many operations a byte no GPU of today waits for its arithmetic
_MEMORY_BOUND_FLOPS_PER_BYTE = 1.0


_Positive = Annotated[float, Meta(gt=0, lt=1e20)]


class Ratio(Struct, frozen=True):
    """A median, and between what it lies with 95 % certainty."""

    median: float
    low: float
    high: float
    #: pairs of calls that it was made of, one of each side
    pairs: int

    @property
    def precision(self) -> float:
        """Half the interval's width, as a share of the median."""
        return (self.high - self.low) / 2 / self.median


class Conditions(Struct, frozen=True):
    """What the GPU was like during a measurement."""

    #: why it has to be measured again, in words; empty if it was quiet
    disturbed: str = ""
    #: lowest and highest; None where NVML tells none
    sm_clock_mhz: tuple[float, float] | None = None
    #: the highest
    temperature_celsius: float | None = None
    #: what lowered the clocks for a moment or longer, by the names of NVML's reasons
    reasons: tuple[str, ...] = ()
    #: what could not be watched, in words
    unknown: tuple[str, ...] = ()
    #: measured so often, this time included
    tries: int = 1


class LimitCard(Struct, frozen=True):
    """The fastest that one GPU was seen to do in this session."""

    gpu: str
    uuid: str
    driver: str | None
    #: Unix time
    measured_ms: float
    #: within its memory: what is read and what is written
    copy_bytes_per_s: _Positive
    #: from and to pinned memory
    host_to_device_bytes_per_s: _Positive
    device_to_host_bytes_per_s: _Positive
    #: an empty kernel, launched and waited for
    launch_latency_ns: _Positive
    #: where memory is read alone, which is faster than to read and write in turns
    read_bytes_per_s: _Positive | None = None
    #: products of matrices by what is multiplied: "float32", "tf32", "float16", ...
    flops_per_s: dict[str, _Positive] = {}
    #: why some of those are not known, in words
    flops_unknown: str = ""
    #: while it was measured, and what NVML says else; None where it does not tell
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_limit_watts: float | None = None
    has_ecc: bool | None = None
    has_mig: bool | None = None

    @property
    def over_copy(self) -> float:
        """How many times faster than a copy memory can be."""
        return max(1.0, (self.read_bytes_per_s or 0.0) / self.copy_bytes_per_s)

    def fastest_ns(self, size_bytes: float, flops: float, dtype: str) -> float | None:
        """Give the least time that a piece of work can take here.

        None if its arithmetic may decide, and how fast that is was not measured.

        Args:
            size_bytes: what must be read and written at least.
            flops: what must be computed at least.
        """
        memory_ns = size_bytes / self.copy_bytes_per_s * 1e9
        peak = self.flops_per_s.get(dtype)
        if peak is not None:
            return max(memory_ns, flops / peak * 1e9)
        is_memory_bound = flops <= _MEMORY_BOUND_FLOPS_PER_BYTE * size_bytes
        return memory_ns if is_memory_bound else None
