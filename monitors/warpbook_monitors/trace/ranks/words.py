"""The ranks of a job in the words that terminal and notebook show."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors import units
from warpbook_monitors.trace.ranks.figures import Alignment, RankTime
from warpbook_monitors.trace.tables import UNKNOWN, Table


def time_table(
    times: Sequence[RankTime], names: Sequence[str], kind: str = "rank"
) -> Table:
    """List where each rank's time went."""
    return Table(
        kind,
        ("window", "computing", "communicating", "exposed", "idle"),
        tuple(
            (
                name,
                _time(time.window_ns),
                _time(time.compute_ns),
                _time(time.communication_ns),
                _time(time.exposed_ns),
                _time(time.idle_ns),
            )
            for name, time in zip(names, times, strict=True)
        ),
    )


def arrival_table(alignment: Alignment) -> Table:
    """List who came late to the collectives."""
    return Table(
        "rank",
        ("comes last", "late, median", "most", "in all", "clock"),
        tuple(
            (
                str(one.rank),
                f"{one.last:,} of {alignment.collectives:,}",
                *(
                    _time(late_ns) if one.last else "–"
                    for late_ns in (one.late_median_ns, one.late_most_ns, one.late_ns)
                ),
                _signed(one.clock_offset_ns),
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
        "ten. Who is late by less is not told."
    )


def _time(nanoseconds: int | None) -> str:
    return UNKNOWN if nanoseconds is None else units.duration(nanoseconds / 1e6)


def _signed(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else "+"
    return "same" if not nanoseconds else f"{sign}{_time(abs(nanoseconds))}"
