"""What the report of a cell says, before it is text or HTML."""

from __future__ import annotations

from dataclasses import dataclass

from warpbook_monitors import units
from warpbook_monitors.trace.cell_profile import CellProfile

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
    figures = [("Time", units.duration(profile.wall_ms)), ("GPU", _gpu(profile))]
    if profile.gpu_name is not None:
        figures += _gpu_figures(profile)
    if profile.profiler_ms:
        figures.append(("Profiler", _profiler(profile)))
    return figures


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
        _table("Kernels", ("calls", "time", "share"), kernels),
        _table("Copies and memsets", ("calls", "time", "size", "rate"), copies),
        _table("Operators on the host", ("calls", "own time"), operators),
    ]
    return [table for table in found if table.rows]


def _table(
    title: str, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]
) -> Table:
    return Table(title, header, rows[:ROWS_SHOWN], max(len(rows) - ROWS_SHOWN, 0))


def _size_and_rate(size_bytes: int | None, time_ms: float) -> tuple[str, str]:
    if size_bytes is None:
        return "not known", "not known"
    if not time_ms:
        return units.size(size_bytes), "not known"
    rate = size_bytes / time_ms / 1e6
    said = f"{rate:,.1f} GB/s" if rate >= 0.1 else "< 0.1 GB/s"
    return units.size(size_bytes), said
