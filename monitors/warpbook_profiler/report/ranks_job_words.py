"""What is said of a whole job before its ranks, for terminal and notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_monitors import units
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.report_view import ReportTable, TableCell
from warpbook_profiler.ranks.figures import Alignment, RankTime
from warpbook_profiler.report.report import JobReport
from warpbook_profiler.report.tables import as_lines


def time_table(
    times: Sequence[RankTime], names: Sequence[str], kind: str = "rank"
) -> ReportTable:
    """List where each rank's time went."""
    return ReportTable(
        f"{kind.capitalize()}s",
        kind.capitalize(),
        ("Window", "Computing", "Communicating", "Exposed", "Idle"),
        tuple(
            (
                cells.words(name),
                cells.time_ns(time.window_ns),
                cells.time_ns(time.compute_ns),
                cells.time_ns(time.communication_ns),
                cells.time_ns(time.exposed_ns),
                cells.time_ns(time.idle_ns),
            )
            for name, time in zip(names, times, strict=True)
        ),
    )


def arrival_table(alignment: Alignment) -> ReportTable:
    """List who came late to the collectives."""
    return ReportTable(
        "Late ranks",
        "Rank",
        ("Comes last", "Late, median", "Most", "In all", "Clock"),
        tuple(
            (
                cells.count(one.rank),
                TableCell(f"{one.last:,} of {alignment.collectives:,}", one.last),
                *(
                    cells.time_ns(late_ns) if one.last else TableCell("–")
                    for late_ns in (one.late_median_ns, one.late_most_ns, one.late_ns)
                ),
                TableCell(_signed(one.clock_offset_ns), one.clock_offset_ns),
            )
            for one in alignment.arrivals
        ),
    )


def how_aligned(alignment: Alignment) -> str:
    """Say what the times rest on."""
    what = (
        "kernels" if alignment.where == "GPU" else "work of the backend on host threads"
    )
    return (
        f"Aligned by {alignment.collectives:,} collectives ({what}), which end within "
        f"{_time(alignment.uncertainty_ns)} of one another on all ranks in 90 % of "
        "cases. A rank that is late by less is not named."
    )


def _time(nanoseconds: int) -> str:
    return units.duration_ns(nanoseconds)


def _signed(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else "+"
    return "same" if not nanoseconds else f"{sign}{_time(abs(nanoseconds))}"


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
