"""Where the time of a run without GPU work went, in the words that every view shows."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_monitors import units
from warpbook_profiler.model.report_view import FigureGroup
from warpbook_profiler.model.table_cells import UNKNOWN
from warpbook_profiler.model.use import CpuTime
from warpbook_profiler.report.figure_groups import labelled_figures


def groups(time: CpuTime | None) -> tuple[FigureGroup, ...]:
    """Give the figures as a group; none of a run with GPU work."""
    if time is None:
        return ()
    return (FigureGroup("Time of the CPU", labelled_figures(_figures(time))),)


def _figures(time: CpuTime) -> Iterator[tuple[str, str]]:
    def part(nanoseconds: int) -> str:
        duration = units.duration_ns(nanoseconds)
        if not time.window_ns:
            return duration
        return f"{duration} ({units.share(nanoseconds / time.window_ns)})"

    yield "Window, profiled", units.duration_ns(time.window_ns)
    yield "In the DataLoader", part(time.loading_ns)
    yield "In large operators", part(time.operators_ns)
    yield "In small calls, and between them", part(time.small_calls_ns)
    yield "In Python", part(time.python_ns)
    if time.communication_ns:
        yield "Waiting for other ranks", part(time.communication_ns)
    yield "Asleep", UNKNOWN if time.waiting_ns is None else part(time.waiting_ns)
    if time.lost_ns:
        yield "Without a core, as far as known", part(time.lost_ns)
    yield "Operators called", f"{time.calls:,}, {time.small_calls:,} of them small"
    use, cores = time.use, time.cores_used
    if use is None or cores is None:
        yield "Cores", UNKNOWN
        return
    yield "Cores", f"{cores:.1f} of {use.cores:,} busy, {use.threads:,} torch threads"
    queued = UNKNOWN if use.queued_ns is None else part(use.queued_ns)
    yield "In line for a core", queued
