"""Rows of a profile as tables; the same for terminal, notebook and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from warpbook_monitors.plain_text import aligned, bounded, shortened
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.cell_profile import (
    AnnotationRow,
    CopyRow,
    GroupRow,
    LineRow,
    OperatorRow,
    PathRow,
    StepRow,
)
from warpbook_profiler.model.figures import LAUNCHING, OTHER_WORK, WAITS, Metrics
from warpbook_profiler.model.memory import MemoryUse
from warpbook_profiler.model.pictures import MemoryCurve
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
