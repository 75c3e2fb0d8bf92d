"""The figures of a trace as they travel to every view; nothing is computed here.

Times are in ns, sizes in bytes; None is "not known". This module needs no NumPy, so
that the server can pass figures on without loading it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_monitors.verdict_kinds import Kind

#: techniques that remove a cause; who teaches them says so elsewhere
Topic = Literal[
    "attention",
    "communication",
    "copy-overlap",
    "fp8",
    "graphs",
    "host-waits",
    "int8",
    "memory-traffic",
    "pinned-memory",
    "tensor-cores",
    "zero-copy",
]


#: of idle time and copies, the part of the window that a cause explains; kernels are
#: in `KernelWork.part`
WAITS, LAUNCHING, BETWEEN, OTHER_WORK, UNTOLD = (
    "waits",
    "launching",
    "between",
    "other work",
    "untold",
)
HOST_COPIES, DEVICE_COPIES, COMMUNICATION = (
    "host copies",
    "device copies",
    "communication",
)

#: what most of a kernel's warps wait for, where they were sampled; "shared memory" is
#: special functions, too, as both share a queue
Wait = Literal[
    "device memory", "shared memory", "barriers", "arithmetic", "latency", "issue"
]
#: what warps do that wait for something
WAITING: dict[Wait, str] = {
    "device memory": "wait for device memory",
    "shared memory": "wait for shared memory or special functions",
    "barriers": "wait at barriers",
    "arithmetic": "wait for the arithmetic units",
    "latency": "wait for the previous instruction",
    "issue": "are ready but not selected",
}
#: why kernels are far from their roof, as far as their launches or samples tell it
Slowness = Literal["short", "few blocks", "last round", "few warps", "untold"] | Wait


class LaunchTimes(Struct, frozen=True):
    """Sums over all matched launches, in ns; medians of those that they concern."""

    cost_ns: int
    cost_median_ns: float | None
    latency_ns: int
    latency_median_ns: float | None
    queue_delay_ns: int
    queue_delay_median_ns: float | None
    #: from the end of the stream's earlier work to the start of queued work
    step_ns: int
    #: work that began before its call returned: the clocks differ, or it was quick
    early: int


class KernelWork(Struct, frozen=True):
    """All kernels with the same limit, as near to it; communication is left out."""

    bound: str
    time_ns: int
    kernels: int
    #: time at the datasheet's ceiling over time taken, of those whose work is known
    of_ceiling: float | None
    #: the same at the ceiling that `warpbook limits` measured here
    of_measured: float | None = None
    #: of kernels with too few blocks: how many the GPU has, and how many had work
    multiprocessors: int | None = None
    multiprocessors_used: float | None = None
    #: different kernels among them; None where an older version counted none
    kinds: int | None = None
    #: of kernels that reach little of their ceiling
    far: Slowness | None = None
    #: of them, those whose limit is told by samples of their warps alone
    sampled: int = 0

    @property
    def part(self) -> str:
        """Return the part of the window that they are."""
        return kernel_part(self.bound, self.far)


def kernel_part(bound: str, far: Slowness | None) -> str:
    """Return the part of the window that kernels with one limit are."""
    return f"{bound} kernels" if far is None else f"{bound} kernels, {far}"


class IdleSplit(Struct, frozen=True):
    """Why the device was idle; the three sum to window - busy."""

    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int
    #: of `other_ns`: the profiler's own doing
    profiler_ns: int
    #: of `host_wait_ns`, by what the host did; see `idle.HostWait`
    host_synchronize_ns: int
    host_launching_ns: int
    host_operator_ns: int
    host_api_ns: int
    host_python_ns: int


class StreamIdle(Struct, frozen=True):
    """One stream between its first and last work, as HTA splits it."""

    device: int
    stream: int
    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int


class CopyTotal(Struct, frozen=True):
    """All copies of one direction between two kinds of memory."""

    #: "HtoD", "DtoH", "DtoD", "PtoP", ... as CUPTI names it
    direction: str
    #: of the host's side: "pinned", "pageable", or "" between GPUs and where not told
    host_memory: str
    calls: int
    time_ns: int
    size_bytes: int | None
    gb_per_s: float | None


class CollectiveTotal(Struct, frozen=True):
    """All calls of one collective of so many ranks, as this rank recorded them."""

    name: str
    ranks: int
    calls: int
    time_ns: int
    #: None where a type is not known
    size_bytes: int | None
    #: of it, what each rank sends at least; None for a collective of another kind
    bus_bytes: int | None


class SyncTotal(Struct, frozen=True):
    """All calls of one function that waits for the GPU, from one place."""

    name: str
    #: the outermost operator around the call, "aten::item", where there is one
    operator: str | None
    #: of the cell's source, where lines were asked for
    line: int | None
    calls: int
    #: in the calls
    time_ns: int
    #: the GPU had run dry when, or before, the call returned
    stall_ns: int


class IdlePlace(Struct, frozen=True):
    """Where the host was while the GPU waited for it, and it for nothing."""

    #: it launched one thing after another, or did other work
    cause: Literal["launching", "other"]
    #: the outermost operator; None is outside of any: Python, CUDA calls, other code
    operator: str | None
    #: of the cell's source, where lines were asked for
    line: int | None
    time_ns: int


class Metrics(Struct, frozen=True):
    """One window of one process."""

    window_ns: int
    #: from the first work on the GPU to the end of the last
    gpu_span_ns: int
    #: unions over all streams, not sums
    gpu_busy_ns: int
    compute_ns: int
    copy_ns: int
    communication_ns: int
    communication_compute_overlap_ns: int
    #: kernels that communicate hide copies, too
    copy_compute_overlap_ns: int
    #: not hidden
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle: IdleSplit
    streams: tuple[StreamIdle, ...]
    launches: int
    launch: LaunchTimes
    kernels: int
    #: sum over all kernels
    kernel_time_ns: int
    tensor_core_ns: int
    #: of `kernel_time_ns`; the share below leaves it out of neither side
    tensor_core_unknown_ns: int
    tensor_core_share: float | None
    #: mean over kernel time, of kernels whose launch is known
    occupancy_share: float | None
    synchronizations: int
    synchronization_ns: int
    sync_points: tuple[SyncTotal, ...]
    #: the longest of each cause
    idle_places: tuple[IdlePlace, ...]
    copies: tuple[CopyTotal, ...]
    #: what limits the kernels, the longest first
    kernel_work: tuple[KernelWork, ...]
    #: modelled from shapes; None where none was written down, or none has a formula
    flops: int | None
    #: at least, of the same operators
    modelled_bytes: int | None
    #: share of kernel time that belongs to modelled operators; None without shapes
    modelled_share: float | None
    #: of `exposed_copy_ns`: while host and GPU copied to one another; None in profiles
    #: that an older warpbook kept
    exposed_host_copy_ns: int | None = None
    collectives: tuple[CollectiveTotal, ...] = ()


class Finding(Struct, frozen=True):
    """One cause."""

    kind: Kind
    #: of the window without the profiler's own time
    explains_ns: int
    share: float
    #: what shows it, with figures
    evidence: str
    #: what may help; empty where the report names the change
    change: str
    #: what the window would be at best without this cause; None where unknown
    bound_ns: int | None
    #: the technique of the change; None where it is none of these
    topic: Topic | None = None
    #: which part of the window it is; no two causes have the same
    part: str = ""
    #: kernels far below every ceiling: the kind names the nearest one
    is_far: bool = False

    @property
    def label(self) -> str:
        """Name the cause: what is far from a roof is not bound by it."""
        return "far from the roof" if self.is_far else self.kind


class CellVerdict(Struct, frozen=True):
    """The finding in one sentence."""

    kind: Kind
    sentence: str
    #: the end of the sentence: what to change; empty where nothing is advised
    change: str = ""
    #: of the window, what its cause is; see `Finding.part`
    parts: tuple[str, ...] = ()
    #: place of the change among all; None where the sentence names none of them
    change_at: int | None = None

    @property
    def cause(self) -> str:
        """Give the sentence without what to change."""
        return self.sentence.removesuffix(self.change).rstrip()
