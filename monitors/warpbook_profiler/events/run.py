"""What is known about one run of a cell beside its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from warpbook_profiler.events.allocations import Allocations
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.calibration import Calibration
from warpbook_profiler.model.ceilings import Ceilings
from warpbook_profiler.model.cell_profile import SetUp
from warpbook_profiler.model.limits import Limits
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.model.use import Collections, CpuUse

if TYPE_CHECKING:
    from warpbook_profiler.events.marks import Marks


@dataclass(frozen=True)
class GpuLimits:
    """What one multiprocessor of a GPU can hold; None where nobody says."""

    name: str
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    threads_per_sm: int | None = None
    registers_per_sm: int | None = None
    shared_memory_per_sm_bytes: int | None = None
    #: what `warpbook limits` measured where it was recorded
    measured: Limits | None = None
    #: of the whole GPU
    memory_bytes: int | None = None

    @cached_property
    def reached(self) -> Ceilings | None:
        """Give the ceilings that were measured."""
        return None if self.measured is None else self.measured.ceilings

    @property
    def has_fp8(self) -> bool:
        """Tell whether its tensor cores take FP8: NVIDIA's of 8.9 and later do."""
        return (self.compute_capability or (0, 0)) >= (8, 9)


@dataclass(frozen=True)
class Run:
    """When the cell ran and what it ran on; times are Unix time in ns."""

    start_ns: int
    #: the cell's code returned; what the host does later is the profiler's
    code_end_ns: int
    #: the work that the code had put on the GPU was done
    end_ns: int
    #: 0 for a trace from a file, which does not tell
    profiler_ns: int = 0
    #: None unless this was the first profile of the process
    set_up: SetUp | None = None
    #: the GPUs' names; None where events of a GPU could not have been recorded
    gpu_name: str | None = None
    #: of a distributed job, where known
    rank: int | None = None
    #: by the GPU's index, as far as known
    gpus: tuple[GpuLimits, ...] = ()
    #: the code had CUDA set up, so its trace must hold at least one CUDA call
    cuda_used: bool = False
    #: of kernels of `torch.compile`, the lines of Python that they came from
    kernel_lines: Mapping[str, str] = field(default_factory=dict)
    #: where the kernels' warps waited in another run of the same code
    stalls: Stalls | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    #: left out, because their times make no sense
    senseless_events: int = 0
    #: fields of other events that make none; only they are left out
    odd_fields: int = 0
    #: of torch, CUDA and HIP, as far as the trace tells
    versions: Mapping[str, str] = field(default_factory=dict)
    #: by GPU; empty unless memory was recorded
    memory: tuple[MemoryUse, ...] = ()
    #: when the host came to which line, if it was asked for
    marks: Marks | None = None
    #: by GPU; empty unless memory was recorded
    allocations: tuple[Allocations, ...] = ()
    #: the same code without the profiler, if it was timed
    bare: BareTimes | None = None
    #: what the system counted of the process meanwhile; None where nobody asked it
    cpu: CpuUse | None = None
    #: when Python collected all garbage, from the code's begin, and how long that took
    collections: Collections = ()
    #: whose device its events are of, where it is none of NVIDIA's or AMD's
    other_device: str = ""
    #: what links launches and work in the file, where it is not `correlation`
    linked_by: str = ""
    #: why nothing can be concluded from it, in words; empty where something can
    refusal: str = ""
    #: what a reader must know before believing it, in words
    notes: tuple[str, ...] = ()
    #: torch's profiler recorded it, whose part of the time is understood
    is_torch: bool = True
    #: of the cell, with its magics; None where nobody knows it
    source: str | None = None
    #: sources of functions of other cells that it calls, by name, and of methods, by
    #: "Class.method"
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def calibration(self) -> Calibration:
        """Give what is known of the times of its first GPU, and of its host."""
        if not self.gpus:
            return Calibration()
        gpu = self.gpus[0]
        major = None if gpu.compute_capability is None else gpu.compute_capability[0]
        return Calibration(gpu.name, major, gpu.measured)
