"""The traces of a job, read one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from warpbook_profiler.files.chrome import Trace
from warpbook_profiler.files.read_trace import read_apart, read_traces
from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.ranks.collectives import Collectives, collectives_of
from warpbook_profiler.report.report import (
    JobReport,
    TraceReport,
    merge,
    rank_order,
    report,
)

#: files that are named one by one, as left out
_MOST_NAMED = 10


class RankTrace(NamedTuple):
    """One trace of a job, and what it is called."""

    name: str
    report: TraceReport
    collectives: Collectives


def read_job(paths: Sequence[Path]) -> tuple[JobReport, list[str]]:
    """Read and analyse the traces of several ranks.

    Returns:
        the report, and the names of the files in the order of its ranks.

    Raises:
        TraceFileError: fewer than two are traces, and why one is none.
    """
    ranks, notes = read_ranks(paths, read_apart)
    return job_of(ranks, notes)


def job_of(
    ranks: Sequence[RankTrace], notes: Sequence[str]
) -> tuple[JobReport, list[str]]:
    """Put ranks beside one another; give their names in the order of the report."""
    job = merge(
        [rank.report for rank in ranks], [rank.collectives for rank in ranks], notes
    )
    # in the order in which they are merged
    in_order = sorted(ranks, key=lambda rank: rank_order(rank.report))
    return job, [rank.name for rank in in_order]


def read_ranks(
    paths: Sequence[Path], read: Callable[[str], list[Trace]] = read_traces
) -> tuple[list[RankTrace], list[str]]:
    """Read traces; what is of no rank beside two or more that are is left out.

    Args:
        paths: of files.
        read: reads one, each process that it holds.

    Returns:
        the traces, and in words what was left out.

    Raises:
        TraceFileError: fewer than two are traces, and why one is none.
    """
    ranks: list[RankTrace] = []
    notes: list[str] = []
    problem: TraceFileError | None = None
    for path in paths:
        try:
            traces = read(str(path))
        except TraceFileError as error:
            problem = error
            notes.append(f"{path.name} is left out: {error.problem}")
            continue
        for trace in traces:
            name = f"{path.name}, {trace.process}" if trace.process else path.name
            # nothing of a trace's events is kept, so that many can be read
            ranks.append(
                RankTrace(
                    name,
                    report(trace.events, trace.run),
                    collectives_of(trace.events),
                )
            )
    if problem is not None and len(ranks) < 2:
        raise problem
    ranks, extra = _of_ranks(ranks)
    notes += extra
    more = len(notes) - _MOST_NAMED
    return ranks, [*notes[:_MOST_NAMED], *([f"{more:,} more."] if more > 0 else [])]


def _of_ranks(traces: list[RankTrace]) -> tuple[list[RankTrace], list[str]]:
    """Keep one trace for each rank, if two ranks or more are told."""
    first: dict[int, RankTrace] = {}
    for trace in traces:
        if trace.report.rank is not None:
            first.setdefault(trace.report.rank, trace)
    if len(first) < 2:
        return traces, []
    notes = []
    for trace in traces:
        rank = trace.report.rank
        if rank is None:
            notes.append(f"{trace.name} names no rank: it is left out.")
        elif first[rank] is not trace:
            notes.append(
                f"{trace.name} is of rank {rank}, as is {first[rank].name}: it is left "
                "out."
            )
    return list(first.values()), notes
