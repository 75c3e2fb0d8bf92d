"""The ranks of a job in the words that terminal and notebook show."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors import units
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.report_view import ReportTable, TableCell
from warpbook_profiler.ranks.figures import Alignment, RankTime


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
        f"{_time(alignment.uncertainty_ns)} of one another on all ranks, nine times of "
        "ten. A rank that is late by less is not named."
    )


def _time(nanoseconds: int) -> str:
    return units.duration_ns(nanoseconds)


def _signed(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else "+"
    return "same" if not nanoseconds else f"{sign}{_time(abs(nanoseconds))}"
