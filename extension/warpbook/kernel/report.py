"""What the report of a cell says, before it is text or HTML."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from warpbook_monitors import units
from warpbook_monitors.changes.words import heading
from warpbook_monitors.trace import figure_groups, tables
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.figure_groups import Figures, Group
from warpbook_monitors.trace.tables import Table


class Cause(NamedTuple):
    """One finding in words."""

    #: "84 % launch-bound"
    title: str
    evidence: str
    #: the change to try, what it could gain, the lab that teaches it
    advice: str


def sentence(profile: CellProfile) -> str:
    """Give the verdict to read before everything else; empty without a GPU."""
    if profile.verdict is None:
        return ""
    return f"{profile.verdict.kind}: {profile.verdict.sentence}"


def causes(profile: CellProfile) -> list[Cause]:
    """Give every cause that explains a part of the time, the largest first."""
    return [
        Cause(
            f"{units.share(each.share)} {each.kind}",
            each.evidence,
            figure_groups.advice(each),
        )
        for each in profile.findings
    ]


class ChangeWords(NamedTuple):
    """One change in words."""

    #: what to do, and where
    title: str
    #: how long the cell takes then
    sentence: str
    #: what in the trace shows it
    evidence: str
    sketch: str


def changes(profile: CellProfile) -> list[ChangeWords]:
    """Give what to change, the one that gains most first."""
    return [
        ChangeWords(heading(change), change.sentence, change.evidence, change.sketch)
        for change in profile.changes
    ]


def trials(profile: CellProfile) -> tuple[tuple[str, str], ...]:
    """Give what each change on copies gave, by its name."""
    return tuple((trial.name, trial.sentence) for trial in profile.trials)


def groups(profile: CellProfile) -> tuple[Group, ...]:
    """Give the figures behind the verdict."""
    if profile.metrics is None:
        return ()
    matched = profile.completeness.matched
    return figure_groups.groups(profile.metrics, matched, bare=profile.bare)


def warnings(profile: CellProfile) -> tuple[str, ...]:
    """Give what to know before believing the figures."""
    cautions = () if profile.bare is None else profile.bare.cautions
    return (*profile.completeness.warnings, *cautions)


def headline(profile: CellProfile) -> Figures:
    """Give the figures to read first, each with its label."""
    figures = [*_times(profile), ("GPU", _gpu(profile))]
    if profile.gpu_name is not None:
        figures += _gpu_figures(profile)
    if profile.lines_cost_ms is not None:
        cost = units.duration(profile.lines_cost_ms)
        figures.append(("Lines", f"about {cost} of the time was to note them"))
    if profile.profiler_ms:
        figures.append(("Profiler", _profiler(profile)))
    return tuple(figures)


def _times(profile: CellProfile) -> list[tuple[str, str]]:
    repeats, bare = profile.repeats, profile.bare
    if repeats is None and bare is not None:
        profiled = f"{units.duration(profile.wall_ms)}; the figures are of this run"
        return [("Time", bare.sentence), ("Profiled", profiled)]
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
    if profile.set_up is not None:
        parts = {
            "CUDA": profile.set_up.cuda_ms,
            "torch's profiler": profile.set_up.profiler_ms,
            "the imports before": profile.set_up.imports_ms,
        }
        told = (f"{name} {units.duration(took)}" for name, took in parts.items())
        said += f" ({', '.join(told)})"
    return said


def all_tables(profile: CellProfile) -> list[Table]:
    """Give the tables that have rows, those that were asked for first."""
    metrics = profile.metrics
    behind = (
        ()
        if metrics is None
        else (
            tables.kernel_work(metrics),
            tables.sync_points(metrics),
            tables.idle_places(metrics),
            tables.streams(metrics),
        )
    )
    found = (
        tables.lines(profile.lines),
        tables.kernels(profile.kernels),
        *behind,
        tables.copies(profile.copies),
        tables.paths(profile.paths),
        tables.operators(profile.operators),
        tables.roofline(profile.roofline),
        tables.memory(profile.memory),
        tables.memory_peaks(profile.memory_curves),
    )
    return [each for each in found if each.rows]
