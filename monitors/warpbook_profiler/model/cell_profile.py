"""The figures of one profiled cell, as they travel to every view.

Times are in whole nanoseconds, sizes in bytes. `None` is "not known", never zero.
Names come from the profiled program: views must escape them.
"""

from __future__ import annotations

from msgspec import Struct

from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict, Finding, Metrics
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.pictures import MemoryCurve, Roof, RooflinePoint
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.model.trials import Edited, Trial
from warpbook_profiler.model.use import CpuTime
from warpbook_profiler.model.work import Work


class KernelRow(Struct, frozen=True):
    """All calls of one GPU kernel."""

    name: str
    calls: int
    time_ns: int
    #: of the summed kernel time of the cell
    share_ratio: float
    #: the longest call; None in profiles that an older warpbook kept
    longest_ns: int | None = None
    #: of most of its time, and how many other launch shapes it has; None where launches
    #: were not recorded
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    other_shapes: int = 0
    #: of a multiprocessor's warps, the mean over its time; None where not known
    occupancy: float | None = None
    #: time at the ceiling over time taken: the datasheet's ceiling, or the measured one
    #: of a GPU without a datasheet; None where its work is not known
    of_roof: float | None = None
    #: parts of the window that its calls are in; see `Finding.part`
    parts: tuple[str, ...] = ()
    #: of Python, that `torch.compile` made it of, "train.py:12, 14"; empty where that
    #: is not known
    lines: str = ""


class CopyRow(Struct, frozen=True):
    """All copies of one kind, such as "HtoD (Pinned -> Device)"; memsets too."""

    kind: str
    calls: int
    #: None where the profiler did not say (torch before 2.9)
    size_bytes: int | None
    time_ns: int
    #: parts of the window that they are in; see `Finding.part`
    parts: tuple[str, ...] = ()


class OperatorRow(Struct, frozen=True):
    """All calls of one operator on the host (torch's `aten::` names)."""

    name: str
    calls: int
    #: time on the host outside nested operators
    self_ns: int


class Lane(Struct, frozen=True):
    """One row of the timeline: a stream of a GPU, or what a host thread called."""

    label: str
    #: relative to the start of the cell, ascending
    starts_ns: tuple[int, ...]
    durations_ns: tuple[int, ...]
    #: positions in `CellProfile.names`
    names: tuple[int, ...]


class Completeness(Struct, frozen=True):
    """How much of what the cell did is in the trace."""

    launches: int
    #: launches whose work on the GPU was found
    matched: int
    #: events that the lanes leave out (the shorter ones), to keep a report small
    lanes_omitted: int
    #: what a reader must know before believing the figures, in words
    warnings: tuple[str, ...] = ()
    #: events with times that can't be
    corrupt: int = 0
    #: of the window, the profiler's own work
    profiler_ns: int = 0
    #: why nothing is concluded from it; empty where the verdict stands
    refusal: str = ""
    #: what links launches and work in a file, where it is not `correlation`
    linked_by: str = ""


class PathRow(Struct, frozen=True):
    """All GPU work that was launched within the same operators."""

    #: from the outermost operator to the innermost, "aten::linear > aten::addmm"
    path: str
    calls: int
    time_ns: int


class CallNode(Struct, frozen=True):
    """One call in the tree of who called whom, all calls of equal chains together."""

    name: str
    #: position of the caller in the tree, which precedes it; -1 for none
    parent: int
    calls: int
    #: on the host, with everything within it
    host_ns: int
    #: of work that was launched within it, whenever it ran; None where the GPU was not
    #: recorded
    gpu_ns: int | None


class GroupRow(Struct, frozen=True):
    """All that was called within a module or a function, but not in one within it."""

    name: str
    calls: int
    host_ns: int
    #: of work that was launched there; None where the GPU was not recorded
    gpu_ns: int | None


class StepRow(Struct, frozen=True):
    """One step of the profiler's schedule, the profiler's own time taken off."""

    #: of its annotation, `ProfilerStep#7`
    number: int
    time_ns: int
    #: the GPU worked; None where it was not recorded
    busy_ns: int | None
    #: model FLOPs utilization: the products' time at the datasheet's peak over the
    #: step's, of all GPUs that computed; None where not all products are known
    mfu: float | None = None


class AnnotationRow(Struct, frozen=True):
    """All times of a part of the program that the program names itself."""

    #: of a record_function, an NVTX range, or what torch marks
    name: str
    times: int
    #: on the host, where it is nested in itself once
    host_ns: int
    #: what a GPU worked on what was launched meanwhile; None where it is not recorded
    gpu_ns: int | None
    #: how many pieces of work that was
    work: int | None


class SetUp(Struct, frozen=True):
    """What the first profile of a process did once, before the cell began."""

    #: importing torch, as far as the kernel had not, and what reads its events
    imports_ns: int
    #: setting CUDA up, as far as the kernel had not
    cuda_ns: int
    #: torch's profiler, which sets CUPTI up
    profiler_ns: int

    @property
    def start_ns(self) -> int:
        """Give what the profiler's start took, after the imports."""
        return self.cuda_ns + self.profiler_ns


class LineRow(Struct, frozen=True):
    """One line of the cell's source; of the GPU, None where it was not recorded."""

    line: int
    code: str
    #: how often the host came to it
    times: int
    host_ns: int
    #: work launched at this line, whenever it ran
    kernels: int | None
    kernel_ns: int | None
    copy_ns: int | None
    #: in calls that wait for the GPU
    wait_ns: int | None
    #: the GPU idled while the host was at this line
    idle_ns: int | None


class Repeats(Struct, frozen=True):
    """All runs of a code that was run several times; the profile is of the fastest."""

    #: before all others, and measured by nobody
    warm_ups: int
    #: times without the profiler, in order, with the GPU's work waited for
    bare_ns: tuple[int, ...]
    #: times with it
    profiled_ns: tuple[int, ...]


class CellProfile(Struct, frozen=True):
    """One run of one cell under the profiler."""

    #: what holds the bare run back; None where no GPU could have been recorded
    verdict: CellVerdict | None
    #: every cause in the bare run, the one that explains most first
    findings: tuple[Finding, ...]
    #: the profiled run's figures; None where the profiler was blind to the GPU
    metrics: Metrics | None
    #: from the start of the cell's body to its end, without the profiler's own
    #: start and stop, with the launches' work waited for
    wall_ns: int
    #: the profiler's start and stop around the cell, and the reading of its events
    profiler_ns: int
    #: of it, the first start in a process, which sets up the profiler's libraries;
    #: None for every later one
    first_start_ns: int | None
    #: what it ran on: the GPU's name, or None without one
    gpu_name: str | None
    #: union of all kernels, copies and memsets over all streams
    gpu_busy_ns: int | None
    #: how many kernels ran; more than launches where a CUDA graph was replayed
    kernel_calls: int | None
    kernel_time_ns: int | None
    copy_time_ns: int | None
    #: host calls that put work on the GPU, and the time spent in them (but not in
    #: those that also wait for the GPU, which is counted as synchronization); None
    #: where the profiler was blind to them
    launches: int | None
    launch_api_ns: int | None
    #: host calls that wait for the GPU (blocking copies too), and the time spent
    #: in them
    synchronizations: int | None
    synchronization_ns: int | None
    #: the highest allocated and reserved memory of torch's allocator in the cell; None
    #: where it did not rise above the process's, and allocations were not recorded
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    kernels: tuple[KernelRow, ...]
    copies: tuple[CopyRow, ...]
    operators: tuple[OperatorRow, ...]
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    completeness: Completeness
    #: by GPU, if it was asked for
    memory: tuple[MemoryUse, ...] = ()
    #: None where the code ran once
    repeats: Repeats | None = None
    #: GPU work by the operators that launched it, the longest first
    paths: tuple[PathRow, ...] = ()
    #: in the order of the source, if it was asked for
    lines: tuple[LineRow, ...] = ()
    #: what asking for lines took of the run
    lines_cost_ns: int | None = None
    #: the parts of `first_start_ns`, and the imports before it; None for later profiles
    set_up: SetUp | None = None
    #: operators whose work could be modelled, the longest first; empty without shapes
    roofline: tuple[RooflinePoint, ...] = ()
    #: of the GPUs that computed; empty where no ceiling of them is known
    roofs: tuple[Roof, ...] = ()
    #: by GPU, if memory was asked for
    memory_curves: tuple[MemoryCurve, ...] = ()
    #: the cell without the profiler; None where the trace does not tell
    bare: BareRun | None = None
    #: changes that were measured on copies of the cell's state, if that was asked for
    trials: tuple[Trial, ...] = ()
    #: the cell after them, if edits of it were asked for
    edited: Edited | None = None
    #: what to change, the one that gains most first
    changes: tuple[Change, ...] = ()
    #: who called whom, without the smallest parts
    call_tree: tuple[CallNode, ...] = ()
    #: by `nn.Module`, where modules were recorded
    modules: tuple[GroupRow, ...] = ()
    #: by function of the person's own files, where stacks were recorded
    functions: tuple[GroupRow, ...] = ()
    #: in their order; empty without a schedule
    steps: tuple[StepRow, ...] = ()
    #: of a run without GPU work, where its time went; None of any other
    cpu: CpuTime | None = None
    #: parts of the program that it names itself, the longest on the host first
    annotations: tuple[AnnotationRow, ...] = ()
    #: that autograd made for a backward pass; None where the trace does not tell
    autograd_nodes: int | None = None
    #: what was done, to tell whether another run did the same; None on the way to views
    work: Work | None = None
    #: where the warps of its kernels waited, if that was asked for
    stalls: Stalls | None = None
