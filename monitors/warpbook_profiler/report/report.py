"""The whole report of a trace, or of the traces of several ranks of one job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs

from warpbook_monitors.units import duration_ns
from warpbook_profiler.events.columns import Category, Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.facts.set_up import SetUpTime, without_set_up
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.cell_profile import (
    AnnotationRow,
    CopyRow,
    KernelRow,
    OperatorRow,
    StepRow,
)
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict, Finding, Metrics
from warpbook_profiler.model.pictures import Roof, RooflinePoint
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.model.use import CpuTime
from warpbook_profiler.ranks.alignment import align
from warpbook_profiler.ranks.collectives import Collectives
from warpbook_profiler.ranks.figures import Alignment, RankTime
from warpbook_profiler.ranks.times import rank_time
from warpbook_profiler.ranks.waiting import judge_waiting
from warpbook_profiler.verdict.analysis import profile
from warpbook_profiler.verdict.metrics import measure

#: of what `warpbook analyze --json` prints; docs/reference/json.md: when it grows
SCHEMA_VERSION = 1


class Whole(Struct, frozen=True):
    """How much of what happened is in the trace."""

    launches: int
    #: launches whose work on the GPU was found by their id, and the others
    matched: int
    lost: int
    #: of the window, what the GPU idled on account of the profiler
    profiler_ns: int
    #: what a reader must know before believing the figures
    warnings: tuple[str, ...]
    #: events with times that can't be
    corrupt: int = 0
    #: what links launches and work in the file, where it is not `correlation`
    linked_by: str = ""


class TraceReport(Struct, frozen=True):
    """Everything told of one trace; names in it are the traced program's."""

    #: rank in a distributed job, where the trace tells it
    rank: int | None
    gpu: str | None
    #: of the bare run
    verdict: CellVerdict
    #: every cause in the bare run, the one that explains most first
    findings: tuple[Finding, ...]
    #: the window without the profiler; None where the trace does not tell
    bare: BareRun | None
    #: what to change, the one that gains most first
    changes: tuple[Change, ...]
    #: of the window as it was recorded
    metrics: Metrics
    completeness: Whole
    kernels: tuple[KernelRow, ...]
    copies: tuple[CopyRow, ...]
    operators: tuple[OperatorRow, ...]
    #: where the trace has what operators were called with
    roofline: tuple[RooflinePoint, ...] = ()
    roofs: tuple[Roof, ...] = ()
    #: nothing that the metrics say of the GPU is known if not
    gpu_recorded: bool = True
    #: kernels that communicate
    collectives: int = 0
    #: what was cut out before anything else was measured; None where it is little
    set_up: SetUpTime | None = None
    #: of a trace without GPU work, where its time went
    cpu: CpuTime | None = None
    #: of the profiler's schedule, in their order
    steps: tuple[StepRow, ...] = ()
    #: parts of the program that it names itself, the longest on the host first
    annotations: tuple[AnnotationRow, ...] = ()
    #: where the warps of its kernels waited; None where the trace has no samples
    stalls: Stalls | None = None


class Ranks(Struct, frozen=True):
    """How the ranks of one job differ."""

    #: by rank, in order; -1 where a trace does not tell it
    ranks: tuple[int, ...]
    #: of each rank: communication while the GPU computes nothing else, where known
    exposed_communication_ns: tuple[int | None, ...]
    #: the rank that the others wait for in collectives: it communicates least
    straggler: int | None
    #: how much longer the rank that waits most is in communication
    waits_ns: int
    sentence: str


class JobReport(Struct, frozen=True):
    """Several ranks: the report of the slowest, and of each."""

    verdict: CellVerdict
    findings: tuple[Finding, ...]
    bare: BareRun | None
    changes: tuple[Change, ...]
    metrics: Metrics
    completeness: Whole
    communication: Ranks
    ranks: tuple[TraceReport, ...]
    #: by rank, in order
    times: tuple[RankTime, ...] = ()
    #: None where the traces can't be aligned, and why
    alignment: Alignment | None = None
    not_aligned: tuple[str, ...] = ()


_NO_RANKS = "Each trace is reported separately: they are not ranks of one job"
#: a difference in communication below this share of the window is nobody's delay
_STRAGGLING_SHARE = 0.05


def report(events: Columns, run: Run) -> TraceReport:
    """Analyse one trace."""
    trace, set_up = without_set_up(Trace(events, run))
    events, run = trace.events, trace.run
    cell = profile(trace)
    metrics = cell.metrics or measure(trace)
    matched = cell.completeness.matched
    return TraceReport(
        rank=run.rank,
        gpu=run.gpu_name,
        verdict=cell.verdict or CellVerdict("unknown", "The trace names no GPU."),
        findings=cell.findings,
        bare=cell.bare,
        changes=cell.changes,
        metrics=metrics,
        completeness=Whole(
            metrics.launches,
            matched,
            metrics.launches - matched,
            metrics.idle.profiler_ns,
            (*((set_up.sentence,) if set_up else ()), *cell.completeness.warnings),
            cell.completeness.corrupt,
            cell.completeness.linked_by,
        ),
        kernels=cell.kernels,
        copies=cell.copies,
        operators=cell.operators,
        roofline=cell.roofline,
        roofs=cell.roofs,
        gpu_recorded=cell.metrics is not None,
        collectives=int(communicates(events, events.only(Category.KERNEL)).sum()),
        set_up=set_up,
        cpu=cell.cpu,
        steps=cell.steps,
        annotations=cell.annotations,
        stalls=cell.stalls,
    )


def rank_order(report: TraceReport) -> int:
    """Give a rank's place among the others; those without a number come first."""
    return -1 if report.rank is None else report.rank


def merge(
    reports: Sequence[TraceReport],
    collectives: Sequence[Collectives] = (),
    left_out: Sequence[str] = (),
) -> JobReport:
    """Put the ranks of one job beside one another.

    Args:
        reports: of the ranks, in any order.
        collectives: of the same ranks, in the same order; without, none is aligned.
        left_out: in words, traces that are none of them.
    """
    of_report = dict(zip(map(id, reports), collectives, strict=False))
    ordered = sorted(reports, key=rank_order)
    rank_reports = [of_report.get(id(rank)) for rank in ordered]
    times = tuple(map(_time, ordered, rank_reports))
    communication = _ranks(ordered)
    known = [one for one in rank_reports if one is not None]
    aligned: Alignment | tuple[str, ...] = ()
    if len(known) == len(ordered) and _are_ranks(communication.ranks):
        aligned = align(known, times)
    if isinstance(aligned, Alignment):
        ordered = [
            _beside(one, time, aligned)
            for one, time in zip(ordered, times, strict=True)
        ]
    slowest = max(ordered, key=lambda rank: rank.metrics.window_ns)
    return JobReport(
        slowest.verdict,
        slowest.findings,
        slowest.bare,
        slowest.changes,
        slowest.metrics,
        Whole(
            sum(rank.completeness.launches for rank in ordered),
            sum(rank.completeness.matched for rank in ordered),
            sum(rank.completeness.lost for rank in ordered),
            max(rank.completeness.profiler_ns for rank in ordered),
            tuple(
                f"Rank {'?' if rank.rank is None else rank.rank}: {warning}"
                for rank in ordered
                for warning in rank.completeness.warnings
            ),
            sum(rank.completeness.corrupt for rank in ordered),
            slowest.completeness.linked_by,
        ),
        communication,
        tuple(ordered),
        times,
        aligned if isinstance(aligned, Alignment) else None,
        (*left_out, *(aligned.left_out if isinstance(aligned, Alignment) else aligned)),
    )


def _time(one: TraceReport, collectives: Collectives | None) -> RankTime:
    if one.cpu is None and not one.gpu_recorded:
        window_ns = one.metrics.window_ns
        return RankTime(rank_order(one), window_ns, None, None, None, None)
    return rank_time(rank_order(one), one.metrics, one.cpu, collectives)


def _beside(one: TraceReport, time: RankTime, alignment: Alignment) -> TraceReport:
    verdict, changes = judge_waiting(
        one.verdict, one.changes, one.rank, time, alignment
    )
    return structs.replace(one, verdict=verdict, changes=changes)


def _are_ranks(numbers: tuple[int, ...]) -> bool:
    return -1 not in numbers and len(set(numbers)) == len(numbers)


def _ranks(ordered: Sequence[TraceReport]) -> Ranks:
    numbers = tuple(map(rank_order, ordered))
    exposed = tuple(
        rank.metrics.exposed_communication_ns if rank.gpu_recorded else None
        for rank in ordered
    )
    spent = [rank.metrics.communication_ns for rank in ordered]
    if not _are_ranks(numbers):
        return Ranks(numbers, exposed, None, 0, f"{_NO_RANKS} with rank numbers.")
    if not all(rank.gpu_recorded for rank in ordered):
        said = "The GPU of some rank was not recorded: the ranks can't be compared."
        return Ranks(numbers, exposed, None, 0, said)
    if max(spent) and not min(spent):
        return Ranks(numbers, exposed, None, 0, f"{_NO_RANKS} that communicate.")
    waits_ns = max(spent) - min(spent)
    longest_ns = max(rank.metrics.window_ns for rank in ordered)
    if not max(spent):
        return Ranks(numbers, exposed, None, 0, "No rank communicated on its GPU.")
    collectives = [rank.collectives for rank in ordered]
    if len(set(collectives)) > 1:
        return Ranks(
            numbers,
            exposed,
            None,
            0,
            f"The ranks recorded {min(collectives):,} to {max(collectives):,} "
            "collectives each: the last rank is known only where all recorded the "
            "same collectives.",
        )
    if waits_ns < _STRAGGLING_SHARE * longest_ns:
        return Ranks(
            numbers,
            exposed,
            None,
            waits_ns,
            "The ranks communicate about equally long: none delays the others.",
        )
    straggler = numbers[spent.index(min(spent))]
    waiting = numbers[spent.index(max(spent))]
    return Ranks(
        numbers,
        exposed,
        straggler,
        waits_ns,
        f"Rank {straggler} comes last to the collectives: rank {waiting} spends "
        f"{duration_ns(waits_ns)} more in them, waiting.",
    )


#: of the metrics, what only the GPU's side of a trace tells
_OF_THE_GPU = (
    "gpu_span_ns gpu_busy_ns compute_ns copy_ns communication_ns "
    "communication_compute_overlap_ns copy_compute_overlap_ns "
    "exposed_communication_ns exposed_copy_ns kernels kernel_time_ns "
    "tensor_core_ns tensor_core_unknown_ns tensor_core_share idle_places"
).split()


def plain(whole: TraceReport | JobReport) -> dict[str, Any]:
    """Give what JSON holds of a report; what nobody saw of a GPU is None, not 0."""
    schema = "warpbook.job" if isinstance(whole, JobReport) else "warpbook.trace"
    document: dict[str, Any] = {
        "schema": schema,
        "version": SCHEMA_VERSION,
        **msgspec.to_builtins(whole),
    }
    if isinstance(whole, JobReport):
        document["ranks"] = [plain(rank) for rank in whole.ranks]
        slowest = [rank.metrics for rank in whole.ranks].index(whole.metrics)
        document["metrics"] = document["ranks"][slowest]["metrics"]
    elif not whole.gpu_recorded:
        metrics = document["metrics"]
        metrics |= dict.fromkeys(_OF_THE_GPU)
        profiler_ns = metrics["idle"]["profiler_ns"]
        metrics["idle"] |= dict.fromkeys(metrics["idle"]) | {"profiler_ns": profiler_ns}
        for metric in metrics["sync_points"]:
            metric["stall_ns"] = None
    return document
