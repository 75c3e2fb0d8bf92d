"""What the report of a cell says, before it is text or HTML."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from warpbook_monitors import units
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.memory import MemoryUse

#: A table of the report shows this many rows; the profile itself holds more.
ROWS_SHOWN = 10


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


def sentence(profile: CellProfile) -> str:
    """Give the verdict to read before everything else; empty without a GPU."""
    if profile.verdict is None:
        return ""
    return f"{profile.verdict.kind}: {profile.verdict.sentence}"


def causes(profile: CellProfile) -> list[str]:
    """Give every cause that explains a part of the time, the largest first."""
    return [
        f"{units.share(each.share)} {each.kind}: {each.evidence}"
        for each in profile.findings
    ]


def headline(profile: CellProfile) -> list[tuple[str, str]]:
    """Give the figures to read first, each with its label."""
    figures = [*_times(profile), ("GPU", _gpu(profile))]
    if profile.gpu_name is not None:
        figures += _gpu_figures(profile)
    if profile.lines_cost_ms is not None:
        cost = units.duration(profile.lines_cost_ms)
        figures.append(("Lines", f"about {cost} of the time was to note them"))
    if profile.profiler_ms:
        figures.append(("Profiler", _profiler(profile)))
    return figures


def _times(profile: CellProfile) -> list[tuple[str, str]]:
    repeats = profile.repeats
    if repeats is None:
        said = f"{units.duration(profile.wall_ms)} with the profiler at work"
        return [("Time", said)]
    runs = repeats.warm_ups + len(repeats.bare_ms) + len(repeats.profiled_ms)
    return [
        ("Time", f"{_fastest(repeats.bare_ms)} without the profiler"),
        ("Profiled", f"{_fastest(repeats.profiled_ms)}; the figures are of this run"),
        (
            "Runs",
            f"{runs:,}, {repeats.warm_ups:,} of them to warm up, each with the "
            "code's side effects",
        ),
    ]


def _fastest(times_ms: tuple[float, ...]) -> str:
    if not times_ms:
        return "not known"
    fastest = units.duration(min(times_ms))
    if len(times_ms) == 1:
        return fastest
    median = units.duration(statistics.median(times_ms))
    slowest = units.duration(max(times_ms))
    return f"{fastest} (fastest of {len(times_ms):,}; median {median}, most {slowest})"


def _gpu(profile: CellProfile) -> str:
    if profile.gpu_name is None:
        return "none that PyTorch can use: operators on the host only"
    if profile.gpu_busy_ms is None:
        return f"{profile.gpu_name}: not recorded"
    busy = units.duration(profile.gpu_busy_ms)
    if not profile.wall_ms:
        return f"{profile.gpu_name} busy for {busy}"
    ratio = profile.gpu_busy_ms / profile.wall_ms
    return f"{profile.gpu_name} busy {units.share(ratio)} of the time ({busy})"


def _gpu_figures(profile: CellProfile) -> list[tuple[str, str]]:
    figures = []
    if profile.kernel_calls is not None and profile.kernel_time_ms is not None:
        time = units.duration(profile.kernel_time_ms)
        figures.append(("Kernels", f"{profile.kernel_calls:,} in {time}"))
    if profile.copy_time_ms is not None:
        copies = sum(row.calls for row in profile.copies)
        time = units.duration(profile.copy_time_ms)
        figures.append(("Copies", f"{copies:,} in {time}"))
    if profile.launches is not None and profile.launch_api_ms is not None:
        matched = profile.completeness.matched
        calls = units.duration(profile.launch_api_ms)
        said = (
            f"{profile.launches:,}, {calls} in the calls; {matched:,} seen on the GPU"
        )
        figures.append(("Launches", said))
    if profile.synchronizations is not None and profile.synchronization_ms is not None:
        waited = units.duration(profile.synchronization_ms)
        figures.append(("Waits", f"{profile.synchronizations:,} for {waited}"))
    if (
        profile.peak_allocated_bytes is not None
        and profile.peak_reserved_bytes is not None
    ):
        allocated = units.size(profile.peak_allocated_bytes)
        reserved = units.size(profile.peak_reserved_bytes)
        figures.append(
            ("Peak memory", f"{allocated} allocated, {reserved} reserved by PyTorch")
        )
    return figures


def _profiler(profile: CellProfile) -> str:
    said = f"{units.duration(profile.profiler_ms)} beside the cell"
    if profile.first_start_ms is not None:
        first = units.duration(profile.first_start_ms)
        said += f", {first} of it to start for the first time in this kernel"
    return said


def tables(profile: CellProfile) -> list[Table]:
    """Give the tables that have rows."""
    kernels = tuple(
        (
            row.name,
            f"{row.calls:,}",
            units.duration(row.time_ms),
            units.share(row.share_ratio),
        )
        for row in profile.kernels
    )
    copies = tuple(
        (
            row.kind,
            f"{row.calls:,}",
            units.duration(row.time_ms),
            *_size_and_rate(row.size_bytes, row.time_ms),
        )
        for row in profile.copies
    )
    operators = tuple(
        (row.name, f"{row.calls:,}", units.duration(row.self_ms))
        for row in profile.operators
    )
    found = [
        _lines(profile),
        table("Kernels", ("calls", "time", "share"), kernels),
        table("Copies and memsets", ("calls", "time", "size", "rate"), copies),
        table("Operators on the host", ("calls", "own time"), operators),
        table("Memory of torch", _MEMORY_HEADER, tuple(map(_memory, profile.memory))),
    ]
    return [each for each in found if each.rows]


def _lines(profile: CellProfile) -> Table:
    rows = tuple(
        (
            f"{row.line:3}  {row.code}",
            f"{row.times:,}",
            units.duration(row.host_ms),
            _time(row.kernel_ms),
            _time(row.copy_ms),
            _time(row.wait_ms),
            _time(row.idle_ms),
        )
        for row in profile.lines
    )
    header = ("times", "host", "kernels", "copies", "waits", "GPU idle")
    # as code is read: all of it, in its order
    return Table("Line", header, rows, is_code=True)


def _time(milliseconds: float | None) -> str:
    return "not known" if milliseconds is None else units.duration(milliseconds)


_MEMORY_HEADER = (
    "peak allocated",
    "peak reserved",
    "change",
    "fragmented",
    "retries",
    "cudaMalloc",
)


def _memory(use: MemoryUse) -> tuple[str, ...]:
    change = use.allocated_change_bytes
    return (
        f"GPU {use.device}",
        _size(use.peak_allocated_bytes),
        _size(use.peak_reserved_bytes),
        f"{'-' if change < 0 else '+'}{units.size(abs(change))}",
        "not known"
        if use.fragmentation_share is None
        else units.share(use.fragmentation_share),
        f"{use.retries:,}",
        f"{use.driver_allocations:,}",
    )


def _size(size_bytes: int | None) -> str:
    return "not known" if size_bytes is None else units.size(size_bytes)


def table(
    title: str, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]
) -> Table:
    """Cut the rows to what a report shows."""
    return Table(title, header, rows[:ROWS_SHOWN], max(len(rows) - ROWS_SHOWN, 0))


def _size_and_rate(size_bytes: int | None, time_ms: float) -> tuple[str, str]:
    if size_bytes is None:
        return "not known", "not known"
    if not time_ms:
        return units.size(size_bytes), "not known"
    rate = size_bytes / time_ms / 1e6
    said = f"{rate:,.1f} GB/s" if rate >= 0.1 else "< 0.1 GB/s"
    return units.size(size_bytes), said
