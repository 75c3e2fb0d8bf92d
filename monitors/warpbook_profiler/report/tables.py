"""Rows of a profile as tables; the same for terminal, notebook and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from warpbook_monitors.plain_text import aligned, bounded, shortened
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.model.cell_profile import (
    AnnotationRow,
    CopyRow,
    GroupRow,
    KernelRow,
    LineRow,
    OperatorRow,
    PathRow,
    StepRow,
)
from warpbook_profiler.model.figures import LAUNCHING, OTHER_WORK, WAITS, Metrics
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.pictures import MemoryCurve, RooflinePoint
from warpbook_profiler.model.report_view import ReportTable, TableCell
from warpbook_profiler.report.links import Links, RowOf

NO_OPERATOR = "(no operator)"
#: what text and HTML show of a table; a page shows the others when it is asked to
ROWS_SHOWN = 10
_LEAST_NAME_WIDTH = 24
_NAME_WIDTH = 52
_HOST_WORK = {"launching": "launched", "other": "other work"}
_PARTS = {"launching": LAUNCHING, "other": OTHER_WORK}


def shown(table: ReportTable) -> tuple[tuple[tuple[TableCell, ...], ...], int]:
    """Give the rows that text and HTML show, and how many they leave out."""
    most = len(table.rows) if table.is_code else ROWS_SHOWN
    return table.rows[:most], max(len(table.rows) - most, 0)


def as_lines(tables: Iterable[ReportTable], width: int | None = None) -> Iterator[str]:
    """Write tables for a terminal, an empty line before each.

    Args:
        tables: to write.
        width: of the terminal in characters, which names are shortened to fit.
    """
    for table in tables:
        rows, more = shown(table)
        name_width = _name_width(table, rows, width)
        yield ""
        yield from aligned(
            [(table.title, *table.header)]
            + [
                (
                    # a kernel is known by both its ends, a line by its beginning
                    bounded(name.text, name_width)
                    if table.is_code
                    else shortened(name.text, name_width),
                    *(figure.text for figure in figures),
                )
                for name, *figures in rows
            ]
        )
        if more:
            yield f"({more:,} more)"


def _name_width(
    table: ReportTable, rows: Sequence[tuple[TableCell, ...]], width: int | None
) -> int:
    if width is None:
        return _NAME_WIDTH
    columns = zip(*(row[1:] for row in rows), strict=True)
    figures = sum(
        2 + max(len(header), *(len(cell.text) for cell in cells))
        for header, cells in zip(table.header, columns, strict=True)
    )
    return min(max(width - figures, _LEAST_NAME_WIDTH), _NAME_WIDTH)


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


def copies(rows: Sequence[CopyRow], links: Links) -> ReportTable:
    """List the copies by direction and kind of memory, with their rate."""
    return ReportTable(
        "Copies and memsets",
        "Kind",
        ("Calls", "Time", "Size", "Rate"),
        tuple(
            (
                cells.words(row.kind),
                cells.count(row.calls),
                cells.time_ns(row.time_ns),
                cells.size(row.size_bytes),
                cells.copy_rate(row.size_bytes, row.time_ns),
            )
            for row in rows
        ),
        links=links.rows(
            "copies", (RowOf(row.parts, f"Memcpy {row.kind}") for row in rows)
        ),
    )


def annotated_parts(rows: Sequence[AnnotationRow], links: Links) -> ReportTable:
    """List the parts of a program that it names itself."""
    times_ns = [time for row in rows for time in (row.host_ns, row.gpu_ns or 0)]
    longest_ns = max(times_ns, default=0)
    return ReportTable(
        "By annotation",
        "Annotation",
        ("Times", "Host time", "GPU time", "GPU work"),
        tuple(
            (
                cells.words(row.name),
                cells.count(row.times),
                cells.time_ns(row.host_ns, longest_ns),
                cells.time_ns(row.gpu_ns, longest_ns),
                cells.UNKNOWN_CELL if row.work is None else cells.count(row.work),
            )
            for row in rows
        ),
        links=links.rows("annotations", (RowOf(slice=row.name) for row in rows)),
    )


def operators(rows: Sequence[OperatorRow], links: Links) -> ReportTable:
    """List the operators by their own time on the host."""
    longest_ns = max((row.self_ns for row in rows), default=0)
    return ReportTable(
        "Operators on the host",
        "Operator",
        ("Calls", "Own time"),
        tuple(
            (
                cells.words(row.name),
                cells.count(row.calls),
                cells.time_ns(row.self_ns, longest_ns),
            )
            for row in rows
        ),
        links=links.rows(
            "operators",
            (RowOf(slice=row.name, operator=row.name) for row in rows),
        ),
    )


def paths(rows: Sequence[PathRow]) -> ReportTable:
    """List GPU work by the operators that launched it."""
    longest_ns = max((row.time_ns for row in rows), default=0)
    return ReportTable(
        "GPU work by operators",
        "Operators",
        ("Pieces", "Time"),
        tuple(
            (
                cells.words(row.path),
                cells.count(row.calls),
                cells.time_ns(row.time_ns, longest_ns),
            )
            for row in rows
        ),
    )


def lines(rows: Sequence[LineRow]) -> ReportTable:
    """List the lines of a cell as code is read: all of them, in their order."""
    times_ns = [
        (row.host_ns, row.kernel_ns, row.copy_ns, row.wait_ns, row.idle_ns)
        for row in rows
    ]
    longest_ns = max((time or 0 for row in times_ns for time in row), default=0)
    return ReportTable(
        "Lines of the cell",
        "Line",
        ("Times", "Host", "Kernels", "Copies", "Waits", "GPU idle"),
        tuple(
            (
                TableCell(f"{row.line:3}  {row.code}", row.line),
                cells.count(row.times),
                *(cells.time_ns(time, longest_ns) for time in row_ns),
            )
            for row, row_ns in zip(rows, times_ns, strict=True)
        ),
        is_code=True,
    )


def memory(rows: Sequence[MemoryUse]) -> ReportTable:
    """List the GPUs by what torch's allocator did there."""
    return ReportTable(
        "Memory of torch",
        "GPU",
        ("Peak", "Reserved", "Change", "Fragmented", "Retries", "cudaMalloc"),
        tuple(
            (
                cells.words(f"GPU {use.device}"),
                cells.size(use.peak_allocated_bytes),
                cells.size(use.peak_reserved_bytes),
                cells.size_change(use.allocated_change_bytes),
                cells.ratio(use.fragmentation_share),
                cells.count(use.retries),
                cells.count(use.driver_allocations),
            )
            for use in rows
        ),
    )


def sync_points(metrics: Metrics, links: Links) -> ReportTable:
    """List the places that wait for the GPU."""
    points = sorted(metrics.sync_points, key=lambda point: -point.stall_ns)
    return ReportTable(
        "Waits for the GPU",
        "Where",
        ("Line", "Calls", "Time", "GPU ran dry"),
        tuple(
            (
                cells.words(
                    point.name
                    if point.operator is None
                    else f"{point.operator} ({point.name})"
                ),
                cells.line(point.line),
                cells.count(point.calls),
                cells.time_ns(point.time_ns),
                cells.time_ns(point.stall_ns),
            )
            for point in points
        ),
        links=links.rows(
            "waits",
            (
                RowOf((WAITS,) if point.stall_ns else (), point.name, point.operator)
                for point in points
            ),
        ),
    )


def idle_places(metrics: Metrics, links: Links) -> ReportTable:
    """List where the host was while the GPU waited for it."""
    places = sorted(metrics.idle_places, key=lambda place: -place.time_ns)
    return ReportTable(
        "What the CPU did while the GPU idled",
        "Where",
        ("Line", "Host activity", "Idle"),
        tuple(
            (
                cells.words(place.operator or NO_OPERATOR),
                cells.line(place.line),
                cells.words(_HOST_WORK[place.cause]),
                cells.time_ns(place.time_ns),
            )
            for place in places
        ),
        links=links.rows(
            "idle",
            (
                RowOf((_PARTS[place.cause],), place.operator or "", place.operator)
                for place in places
            ),
        ),
    )


def kernel_work(metrics: Metrics, links: Links) -> ReportTable:
    """List what limits the kernels, and how near they come to it."""
    return ReportTable(
        "Kernels by their limit",
        "Limit",
        ("Kernels", "Time", "Of datasheet", "Of measured"),
        tuple(
            (
                cells.words(work.bound + (", far from it" if work.far else "")),
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


def memory_peaks(curves: Sequence[MemoryCurve]) -> ReportTable:
    """List where in the code each GPU's memory was at its most."""
    return ReportTable(
        "Peak of torch's memory",
        "Where",
        ("Size", "At", "Line", "Allocations and frees"),
        tuple(
            (
                cells.words(f"GPU {curve.device}: {curve.peak_path or NO_OPERATOR}"),
                cells.size(curve.peak_allocated_bytes),
                cells.time_ns(max(curve.peak_ns, 0)),
                cells.line(curve.peak_line),
                cells.count(curve.changes),
            )
            for curve in curves
        ),
    )


def streams(metrics: Metrics) -> ReportTable:
    """List the idle time of each stream, as HTA splits it."""
    return ReportTable(
        "Stream idle time by cause",
        "Stream",
        ("Host wait", "Kernel wait", "Other"),
        tuple(
            (
                cells.words(f"GPU {stream.device}, stream {stream.stream}"),
                cells.time_ns(stream.host_wait_ns),
                cells.time_ns(stream.kernel_wait_ns),
                cells.time_ns(stream.other_ns),
            )
            for stream in metrics.streams
        ),
    )


def modules(rows: Sequence[GroupRow]) -> ReportTable:
    """List the modules by what was done in them."""
    return _groups("By module", "Module", rows)


def functions(rows: Sequence[GroupRow]) -> ReportTable:
    """List the person's own functions by what was done in them."""
    return _groups("By function of the program", "Function", rows)


def steps(rows: Sequence[StepRow]) -> ReportTable:
    """List the steps of the profiler's schedule in their order."""
    longest_ns = max((row.time_ns for row in rows), default=0)
    return ReportTable(
        "Steps",
        "Step",
        ("Time", "GPU busy", "MFU"),
        tuple(
            (
                TableCell(f"{row.number:,}", row.number),
                cells.time_ns(row.time_ns, longest_ns),
                cells.time_ns(row.busy_ns, longest_ns),
                cells.ratio(row.mfu),
            )
            for row in rows
        ),
    )


def _groups(title: str, name: str, rows: Sequence[GroupRow]) -> ReportTable:
    longest_ns = max((max(row.host_ns, row.gpu_ns or 0) for row in rows), default=0)
    return ReportTable(
        title,
        name,
        ("Calls", "Host", "GPU"),
        tuple(
            (
                cells.words(row.name),
                cells.count(row.calls),
                cells.time_ns(row.host_ns, longest_ns),
                cells.time_ns(row.gpu_ns, longest_ns),
            )
            for row in rows
        ),
    )
