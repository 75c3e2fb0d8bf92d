"""Tables of kernels: by their time, by their limit, and under the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.model.cell_profile import KernelRow
from warpbook_profiler.model.figures import WAITING, Metrics, Slowness
from warpbook_profiler.model.pictures import RooflinePoint
from warpbook_profiler.model.report_view import ReportTable, TableCell
from warpbook_profiler.report.links import Links, RowOf


def kernels(
    rows: Sequence[KernelRow],
    base_ns: int,
    links: Links,
    stalls: Mapping[str, str] | None = None,
) -> ReportTable:
    """List the kernels by their time.

    Args:
        rows: to list.
        base_ns: what shares are of.
        links: of the report.
        stalls: ids of the stalls that are shown, by name of the kernel.
    """
    of_name = stalls or {}
    longest_ns = max((row.time_ns for row in rows), default=0)
    are_beside = sum(row.time_ns for row in rows) > base_ns > 0
    return ReportTable(
        "Kernels, side by side: shares may sum to more than 100 %"
        if are_beside
        else "Kernels",
        "Kernel",
        (
            *("Calls", "Total", "Share", "Mean", "Most"),
            *("Grid", "Occupancy", "Of its roof"),
        ),
        tuple(
            (
                cells.words(row.name + (f" ({row.lines})" if row.lines else "")),
                cells.count(row.calls),
                cells.time_ns(row.time_ns, longest_ns),
                cells.ratio(row.time_ns / base_ns if base_ns else None),
                cells.time_ns(row.time_ns / row.calls),
                cells.time_ns(row.longest_ns),
                _grid(row),
                cells.ratio(row.occupancy),
                cells.ratio(row.of_roof),
            )
            for row in rows
        ),
        links=links.rows(
            "kernels",
            (
                RowOf(row.parts, row.name, stalls=of_name.get(row.name, ""))
                for row in rows
            ),
        ),
    )


def _grid(row: KernelRow) -> TableCell:
    if row.grid is None:
        return cells.UNKNOWN_CELL
    x, y, z = row.grid
    shown = (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)
    others = f" (+{row.other_shapes:,})" if row.other_shapes else ""
    return TableCell(" × ".join(f"{size:,}" for size in shown) + others, x * y * z)


#: what follows a limit
_FAR: dict[Slowness | None, str] = {
    None: "",
    "short": ", far from it: short",
    "few blocks": ", far from it: few blocks",
    "last round": ", far from it: last wave not full",
    "few warps": ", far from it: few warps",
    "untold": ", far from it",
    **{wait: f", far from it: warps {words}" for wait, words in WAITING.items()},
}


def kernel_work(metrics: Metrics, links: Links) -> ReportTable:
    """List what limits the kernels, and how near they come to it."""
    return ReportTable(
        "Kernels by their limit",
        "Limit",
        ("Kernels", "Time", "Of datasheet", "Of measured"),
        tuple(
            (
                cells.words(work.bound + _FAR[work.far]),
                cells.count(work.kernels),
                cells.time_ns(work.time_ns),
                cells.ratio(work.of_ceiling),
                cells.ratio(work.of_measured),
            )
            for work in metrics.kernel_work
        ),
        links=links.rows(
            "limits", (RowOf((work.part,)) for work in metrics.kernel_work)
        ),
    )


def roofline(points: Sequence[RooflinePoint], links: Links) -> ReportTable:
    """List the operators whose work is known by their rates under the roofs."""
    return ReportTable(
        "Operators under the roofline",
        "Operator",
        ("Type", "Time", "Rate", "At least", "Of datasheet", "Of measured"),
        tuple(
            (
                cells.words(f"{point.name} {point.operands}".rstrip()),
                cells.words(DTYPE_LABELS.get(point.dtype or "", "")),
                cells.time_ns(point.time_ns),
                TableCell("", None)
                if point.flops is None
                else cells.rate(point.flops_per_s, "FLOP"),
                cells.rate(point.bytes_per_s, "B"),
                cells.ratio(point.of_datasheet),
                cells.ratio(point.of_measured),
            )
            for point in points
        ),
        links=links.rows(
            "roofline",
            (RowOf(slice=point.name, operator=point.name) for point in points),
        ),
    )
