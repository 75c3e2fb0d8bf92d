"""Rows of a profile in the words that text and HTML show; the same for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from warpbook_monitors import units
from warpbook_monitors.plain_text import aligned, shortened
from warpbook_monitors.trace.ceilings import DTYPE_LABELS
from warpbook_monitors.trace.cell_profile import (
    AnnotationRow,
    CopyRow,
    KernelRow,
    LineRow,
    OperatorRow,
    PathRow,
)
from warpbook_monitors.trace.figures import Metrics, SyncTotal
from warpbook_monitors.trace.memory import MemoryUse
from warpbook_monitors.trace.pictures import MemoryCurve, RooflinePoint

UNKNOWN = "not known"
NO_OPERATOR = "(no operator)"
#: a table shows this many rows; the profile itself holds more
ROWS_SHOWN = 10
_NAME_WIDTH = 52


@dataclass(frozen=True)
class Table:
    """Rows of text; the first column is a name, the others are figures."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: rows that the profile holds beyond these
    more: int = 0
    #: the names are source code, which wants room
    is_code: bool = False
    #: of each row and column, 0 to 1: the length of its bar; empty without bars
    bars: tuple[tuple[float, ...], ...] = ()


def cut(title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    """Make a table of no more rows than are shown."""
    found = tuple(rows)
    return Table(title, header, found[:ROWS_SHOWN], max(len(found) - ROWS_SHOWN, 0))


def as_lines(tables: Iterable[Table]) -> Iterator[str]:
    """Write tables for a terminal, an empty line before each."""
    for table in tables:
        yield ""
        yield from aligned(
            [(table.title, *table.header)]
            + [(shortened(row[0], _NAME_WIDTH), *row[1:]) for row in table.rows]
        )
        if table.more:
            yield f"({table.more:,} more)"


def kernels(rows: Sequence[KernelRow]) -> Table:
    """List the kernels by their time."""
    return cut(
        "Kernels",
        ("calls", "time", "share"),
        (
            (
                row.name,
                f"{row.calls:,}",
                units.duration(row.time_ms),
                units.share(row.share_ratio),
            )
            for row in rows
        ),
    )


def copies(rows: Sequence[CopyRow]) -> Table:
    """List the copies by direction and kind of memory, with their rate."""
    return cut(
        "Copies and memsets",
        ("calls", "time", "size", "rate"),
        (
            (
                row.kind,
                f"{row.calls:,}",
                units.duration(row.time_ms),
                _size(row.size_bytes),
                _rate(row.size_bytes, row.time_ms),
            )
            for row in rows
        ),
    )


def annotated_parts(rows: Sequence[AnnotationRow]) -> Table:
    """List the parts of a program that it names itself."""
    return cut(
        "By annotation",
        ("times", "host time", "GPU time", "GPU work"),
        (
            (
                row.name,
                f"{row.times:,}",
                units.duration(row.host_ms),
                UNKNOWN if row.gpu_ms is None else units.duration(row.gpu_ms),
                UNKNOWN if row.work is None else f"{row.work:,}",
            )
            for row in rows
        ),
    )


def operators(rows: Sequence[OperatorRow]) -> Table:
    """List the operators by their own time on the host."""
    return cut(
        "Operators on the host",
        ("calls", "own time"),
        ((row.name, f"{row.calls:,}", units.duration(row.self_ms)) for row in rows),
    )


def paths(rows: Sequence[PathRow]) -> Table:
    """List GPU work by the operators that launched it."""
    return cut(
        "GPU work by operators",
        ("pieces", "time"),
        ((row.path, f"{row.calls:,}", units.duration(row.time_ms)) for row in rows),
    )


def lines(rows: Sequence[LineRow]) -> Table:
    """List the lines of a cell as code is read: all of them, in their order."""
    header = ("times", "host", "kernels", "copies", "waits", "GPU idle")
    times = [
        (row.host_ms, row.kernel_ms, row.copy_ms, row.wait_ms, row.idle_ms)
        for row in rows
    ]
    longest_ms = max((each or 0.0 for row in times for each in row), default=0.0)
    return Table(
        "Line",
        header,
        tuple(
            (f"{row.line:3}  {row.code}", f"{row.times:,}", *map(_time, row_times))
            for row, row_times in zip(rows, times, strict=True)
        ),
        is_code=True,
        bars=tuple(
            (0.0, 0.0, *((each or 0.0) / (longest_ms or 1.0) for each in row_times))
            for row_times in times
        ),
    )


def memory(rows: Sequence[MemoryUse]) -> Table:
    """List the GPUs by what torch's allocator did there."""
    header = ("peak", "reserved", "change", "fragmented", "retries", "cudaMalloc")
    return cut("Memory of torch", header, map(_memory, rows))


def sync_points(metrics: Metrics) -> Table:
    """List the places that wait for the GPU."""
    return cut(
        "Waits for the GPU",
        ("line", "calls", "time", "GPU ran dry"),
        (
            (
                _place(each),
                "" if each.line is None else str(each.line),
                f"{each.calls:,}",
                _ns(each.time_ns),
                _ns(each.stall_ns),
            )
            for each in sorted(metrics.sync_points, key=lambda one: -one.stall_ns)
        ),
    )


def idle_places(metrics: Metrics) -> Table:
    """List where the host was while the GPU waited for it."""
    doing = {"launching": "launched", "other": "other work"}
    return cut(
        "What the CPU did while the GPU idled",
        ("line", "and", "idle"),
        (
            (
                each.operator or NO_OPERATOR,
                "" if each.line is None else str(each.line),
                doing[each.cause],
                _ns(each.time_ns),
            )
            for each in sorted(metrics.idle_places, key=lambda one: -one.time_ns)
        ),
    )


def kernel_work(metrics: Metrics) -> Table:
    """List what limits the kernels, and how near they come to it."""
    return cut(
        "Kernels by their limit",
        ("kernels", "time", "of datasheet", "of measured"),
        (
            (
                each.bound,
                f"{each.kernels:,}",
                _ns(each.time_ns),
                share(each.of_ceiling),
                share(each.of_measured),
            )
            for each in metrics.kernel_work
        ),
    )


def roofline(points: Sequence[RooflinePoint]) -> Table:
    """List the operators whose work is known by their rates under the roofs."""
    return cut(
        "Operators under the roofline",
        ("type", "time", "rate", "at least", "of datasheet", "of measured"),
        (
            (
                f"{each.name} {each.operands}".rstrip(),
                DTYPE_LABELS.get(each.dtype or "", ""),
                units.duration(each.time_ms),
                "" if each.flops is None else _per_s(each.flops_per_s, "FLOP"),
                _per_s(each.bytes_per_s, "B"),
                share(each.of_datasheet),
                share(each.of_measured),
            )
            for each in points
        ),
    )


def memory_peaks(curves: Sequence[MemoryCurve]) -> Table:
    """List where in the code each GPU's memory was at its most."""
    return cut(
        "Peak of torch's memory",
        ("size", "at", "line", "allocations and frees"),
        (
            (
                f"GPU {each.device}: {each.peak_path or NO_OPERATOR}",
                units.size(each.peak_allocated_bytes),
                units.duration(max(each.peak_ms, 0.0)),
                "" if each.peak_line is None else str(each.peak_line),
                f"{each.changes:,}",
            )
            for each in curves
        ),
    )


def streams(metrics: Metrics) -> Table:
    """List the idle time of each stream, as HTA splits it."""
    return cut(
        "Stream idle time by cause",
        ("host wait", "kernel wait", "other"),
        (
            (
                f"GPU {each.device}, stream {each.stream}",
                _ns(each.host_wait_ns),
                _ns(each.kernel_wait_ns),
                _ns(each.other_ns),
            )
            for each in metrics.streams
        ),
    )


def share(ratio: float | None) -> str:
    """Write a share that may not be known."""
    return UNKNOWN if ratio is None else units.share(ratio)


def _place(sync: SyncTotal) -> str:
    return sync.name if sync.operator is None else f"{sync.operator} ({sync.name})"


def _memory(use: MemoryUse) -> tuple[str, ...]:
    change = use.allocated_change_bytes
    return (
        f"GPU {use.device}",
        _size(use.peak_allocated_bytes),
        _size(use.peak_reserved_bytes),
        f"{'-' if change < 0 else '+'}{units.size(abs(change))}",
        share(use.fragmentation_share),
        f"{use.retries:,}",
        f"{use.driver_allocations:,}",
    )


def _size(size_bytes: int | None) -> str:
    return UNKNOWN if size_bytes is None else units.size(size_bytes)


def _rate(size_bytes: int | None, time_ms: float) -> str:
    if size_bytes is None or not time_ms:
        return UNKNOWN
    rate = size_bytes / time_ms / 1e6
    return f"{rate:,.1f} GB/s" if rate >= 0.1 else "< 0.1 GB/s"


def _per_s(rate: float | None, unit: str) -> str:
    return UNKNOWN if rate is None else units.rate(rate, unit)


def _time(milliseconds: float | None) -> str:
    return UNKNOWN if milliseconds is None else units.duration(milliseconds)


def _ns(nanoseconds: float) -> str:
    return units.duration(nanoseconds / 1e6)
