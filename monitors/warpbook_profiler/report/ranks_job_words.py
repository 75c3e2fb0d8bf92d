"""What is said of a whole job before its ranks, for terminal and notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_profiler.model.report_view import ReportTable
from warpbook_profiler.report.ranks_words import arrival_table, how_aligned, time_table
from warpbook_profiler.report.report import JobReport
from warpbook_profiler.report.tables import as_lines


def heading(job: JobReport, kind: str = "rank") -> str:
    """Say in one line how many there are, and who holds whom up."""
    said = job.communication.sentence
    if job.alignment is not None:
        said = job.alignment.sentence
    return f"{len(job.ranks):,} {kind}s. {said}"


def notes(job: JobReport) -> tuple[str, ...]:
    """Say what the alignment rests on, and what could not be aligned."""
    if job.alignment is None:
        return job.not_aligned
    return (how_aligned(job.alignment), *job.not_aligned)


def job_tables(
    job: JobReport, names: Sequence[str], kind: str = "rank"
) -> tuple[ReportTable, ...]:
    """Give the tables of the whole job."""
    times = time_table(job.times, names, kind)
    return (times,) if job.alignment is None else (times, arrival_table(job.alignment))


def job_lines(job: JobReport, names: Sequence[str], kind: str) -> Iterator[str]:
    """Write all of it for a terminal."""
    yield heading(job, kind)
    yield from notes(job)
    yield from as_lines(job_tables(job, names, kind))
