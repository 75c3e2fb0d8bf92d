"""What the roofline and the picture of memory are drawn from, as it travels.

Times are in whole ns, sizes in bytes; None is "not known". No NumPy here. Names come
from the profiled program.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Roof(Struct, frozen=True):
    """The most that one kind of GPU can do, per second."""

    gpu: str
    #: NVIDIA's figures, or what `warpbook limits` reached on this machine
    basis: Literal["datasheet", "measured"]
    memory_bytes_per_s: float
    #: by torch's dtype name, and "tf32", which is "float" on the tensor cores
    flops_per_s: dict[str, float]


class RooflinePoint(Struct, frozen=True):
    """All calls of one operator with the same operands, or all copies within a GPU."""

    name: str
    #: the operands' sizes, such as "8192×8192, 8192×8192"
    operands: str
    gpu: str
    #: a key of `Roof.flops_per_s`; None where its unit, or its arithmetic, is not known
    dtype: str | None
    calls: int
    #: of its kernels, added up
    time_ns: int
    #: of all kernels and copies within the GPU
    share_ratio: float
    #: of all calls, modelled; None for what is only known to move bytes
    flops: int | None
    #: of all calls: what must be moved at least, modelled; of copies counted
    size_bytes: int | None
    #: rate over the most that its intensity allows under each roof; above 1 the cache
    #: served it
    of_datasheet: float | None
    of_measured: float | None

    @property
    def flops_per_s(self) -> float | None:
        """Give the rate of arithmetic."""
        if self.flops is None or not self.time_ns:
            return None
        return self.flops / self.time_ns * 1e9

    @property
    def bytes_per_s(self) -> float | None:
        """Give the rate at which the least bytes were moved."""
        if self.size_bytes is None or not self.time_ns:
            return None
        return self.size_bytes / self.time_ns * 1e9

    @property
    def flops_per_byte(self) -> float | None:
        """Give the arithmetic intensity."""
        return self.flops / self.size_bytes if self.flops and self.size_bytes else None


class MemoryCurve(Struct, frozen=True):
    """What torch's allocator held on one GPU while the code ran."""

    device: int
    #: since the start of the cell, ascending; a value holds until the next
    times_ns: tuple[int, ...]
    allocated_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]
    #: allocations and frees in all; where there are many, the curve keeps the extremes
    changes: int
    peak_allocated_bytes: int
    peak_ns: int
    #: the operators around the allocation that made it, "aten::linear > aten::addmm"
    peak_path: str
    #: of the cell's source, where lines were asked for
    peak_line: int | None
