"""The table of collectives."""

from __future__ import annotations

from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.figures import COMMUNICATION, Metrics
from warpbook_profiler.model.report_view import ReportTable
from warpbook_profiler.report.links import Links, RowOf


def collectives(metrics: Metrics, links: Links) -> ReportTable:
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
        links=links.rows(
            "collectives",
            (RowOf((COMMUNICATION,), row.name) for row in metrics.collectives),
        ),
    )
