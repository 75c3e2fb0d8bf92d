"""The table of collectives."""

from __future__ import annotations

from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.model.report_view import ReportTable


def collectives(metrics: Metrics) -> ReportTable:
    """List what they move, and at which rate the links did it at least."""
    return ReportTable(
        "Collectives",
        "Collective",
        ("Calls", "Time", "Size", "Bus"),
        tuple(
            (
                cells.words(f"{row.name} of {row.ranks:,} ranks"),
                cells.count(row.calls),
                cells.time_ns(row.time_ns),
                cells.size(row.size_bytes),
                cells.copy_rate(row.bus_bytes, row.time_ns),
            )
            for row in metrics.collectives
        ),
    )
