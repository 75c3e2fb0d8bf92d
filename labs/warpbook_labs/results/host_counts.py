"""What one call asked of the machine, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Engine = Literal["host", "h2d", "d2h", "compute"]


@dataclass(frozen=True)
class Bar:
    """What one engine did for a while."""

    engine: Engine
    label: str
    begin_ns: int
    end_ns: int
    #: of the source; 0 where it is not one
    line: int


@dataclass
class HostCounts:
    """Counts and simulated times of one call of `run`."""

    #: kernels that the host launched, and graphs; a graph's kernels are not launched
    launches: int = 0
    graph_launches: int = 0
    #: graphs that were captured
    captures: int = 0
    #: times that the host waited: `synchronize`, `item`, copies that block
    synchronizations: int = 0
    #: copies between host and GPU, those of graphs too, and all bytes that cross the
    #: link, those too that kernels read and write in memory of the host
    copies: int = 0
    h2d_bytes: int = 0
    d2h_bytes: int = 0
    #: of these bytes, those from and to memory that is not page-locked
    pageable_bytes: int = 0
    #: memory of the GPU that was asked for, whether or not the allocator had it
    device_bytes: int = 0
    #: the most of it that was in use at one time so far, what `prepare` made too; what
    #: `record_stream` keeps from being given out is in use, and what a graph was
    #: captured with, until the graph is gone
    held_bytes: int = 0
    #: from the call until all that it asked is done
    total_ns: int = 0
    #: of it the host's own work, without its waiting
    host_ns: int = 0
    #: how long each engine had work; both directions of copies together
    copy_ns: int = 0
    compute_ns: int = 0
    #: of all kernels one by one, sleep too: no shorter where some run at the same time
    kernel_ns: int = 0
    #: the whole time by the least that the busiest engine needs for the same work, with
    #: copies as fast as from pinned memory, and no engine busy with sleep; rounded up
    percent_of_bound: int = 0
    #: convolutions with their tuning and layouts, by the fastest algorithms; or 0
    convolution_percent: int = 0
    #: non-deterministic launches of the whole program
    unrepeatable: int = 0


#: what a lab may count
COUNTED = tuple(field.name for field in fields(HostCounts))
