"""What a run tells: mistakes that were found, and what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

#: lines that are named for a count, and the share of it that they must cover
_MOST_LINES = 3
_WANTED_SHARE = 0.8
#: as many are named if the last ones have equal counts
_MOST_TIED = 6


def top_lines(amounts: Mapping[int, int]) -> tuple[int, ...]:
    """Give the few lines that most of an amount comes of, the most first.

    Args:
        amounts: by line; a line of 0 is not known, and not given.
    """
    total, covered = sum(amounts.values()), 0
    lines: list[int] = []
    least = 0
    for line, amount in sorted(amounts.items(), key=lambda pair: -pair[1]):
        is_enough = covered >= _WANTED_SHARE * total or len(lines) >= _MOST_LINES
        # to name some of those that are equal would point away from the others
        is_tied = amount == least and len(lines) < _MOST_TIED
        if amount <= 0 or (is_enough and not is_tied):
            break
        covered, least = covered + amount, amount
        if line > 0:
            lines.append(line)
    return tuple(lines)


Kind = Literal[
    "race",
    "uninitialised read",
    "divergent barrier",
    "inactive lane",
    "unfinished copy",
    "out of bounds",
    "misaligned",
    "read-only",
    "assertion",
    "deadlock",
    "too long",
    # of host code, by the simulated GPU
    "host read too early",
    "released too early",
    "stale graph",
    "capture",
]

#: of one kind; the others are only counted
MOST_FINDINGS = 10


@dataclass(frozen=True)
class Finding:
    """A mistake of the source, whether or not its result was right this time."""

    kind: Kind
    message: str
    #: of the source; None where it is not known
    line: int | None = None


def written_input(name: str, line: int) -> Finding:
    """Say that a line, or one that is not known (0), has written an input."""
    return Finding("read-only", f"It writes `{name}`, which is an input.", line or None)


@dataclass
class Counts:
    """What a line of the source, or the whole kernel, asked of the machine."""

    #: instructions, for each warp that had a thread at them, and for each thread
    warp_instructions: int = 0
    thread_instructions: int = 0
    #: of the warp that runs most of them, added up over launches: how deep the work is
    longest_warp_instructions: int = 0
    #: branches at which a warp's threads went different ways
    divergent_branches: int = 0
    #: requests of warps to global memory, atomics among them, and the 32-byte sectors
    #: that they touch
    global_requests: int = 0
    global_sectors: int = 0
    #: sectors that would hold the same bytes if they lay side by side
    least_global_sectors: int = 0
    #: elements of global memory that atomics change, for each thread that does
    global_atomics: int = 0
    #: requests of warps to shared memory, and the passes beyond what they need
    shared_requests: int = 0
    bank_conflicts: int = 0
    #: for tensor cores, in the programs that are launched, however often each is run
    matrix_instructions: int = 0
    #: what `tl.dot` multiplied for tensor cores, of the dots that were really run
    dot_multiplications: int = 0

    def add(self, other: Counts) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Report:
    """All that one run of a kernel tells."""

    findings: list[Finding] = field(default_factory=list)
    #: findings beyond those that are listed
    more_findings: int = 0
    counts: Counts = field(default_factory=Counts)
    #: by line of the source
    lines: dict[int, Counts] = field(default_factory=dict)
    #: by line of a Triton source: numbers multiplied without tensor cores
    products: dict[int, int] = field(default_factory=dict)
    #: what the kernel printed
    printed: str = ""
    #: it did what ends a kernel, or took too long: the buffers hold what it had done
    stopped: bool = False

    def add(self, finding: Finding) -> None:
        if finding in self.findings:
            return
        alike = sum(other.kind == finding.kind for other in self.findings)
        if alike < MOST_FINDINGS:
            self.findings.append(finding)
        else:
            self.more_findings += 1


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
