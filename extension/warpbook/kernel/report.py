"""What the report of a cell says, before it is text or HTML."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from warpbook_monitors import units
from warpbook_monitors.changes.words import heading
from warpbook_monitors.trace import figure_groups, tables
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.figure_groups import Figures, Group
from warpbook_monitors.trace.figures import CellVerdict
from warpbook_monitors.trace.leading_cause import shares_by_kind
from warpbook_monitors.trace.tables import Table
from warpbook_monitors.verdict_kinds import Kind

#: of the bar: less is not seen
_LEAST_PART = 0.01


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


def cause_and_change(verdict: CellVerdict, profile: CellProfile) -> tuple[str, str]:
    """Divide a verdict's sentence: what it says of a change may be empty."""
    for change in profile.changes:
        advice = f"{change.title} {change.sentence}"
        if verdict.sentence.endswith(advice):
            return verdict.sentence.removesuffix(advice).rstrip(), advice
    return verdict.sentence, ""


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


class Segment(NamedTuple):
    """A part of the bar that shows where the time goes."""

    kind: Kind | None
    #: "memory-bound 97 %"
    label: str
    #: of the bar
    ratio: float


def time_bar(profile: CellProfile) -> tuple[Segment, ...]:
    """Divide the time without the profiler by its causes; empty where none is known."""
    shares = shares_by_kind(profile.findings)
    total = sum(shares.values())
    if not total:
        return ()
    parts: list[tuple[Kind | None, str, float]] = [
        (kind, kind, share) for kind, share in shares.items()
    ]
    if total < 1 - _LEAST_PART:
        parts.append((None, "not explained", 1 - total))
    whole = max(total, 1.0)
    return tuple(
        Segment(kind, f"{name} {units.share(share / whole)}", share / whole)
        for kind, name, share in parts
    )


def time_words(profile: CellProfile) -> str:
    """Say what the bar is of."""
    if profile.bare is None:
        return "Where the time of this run goes"
    time = units.duration(profile.bare.time_ns / 1e6)
    return f"Where the {time} without the profiler go"


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
        return "none that PyTorch can use: CPU operators only"
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
    said = f"{units.duration(profile.profiler_ms)} of overhead"
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


class Section(NamedTuple):
    """Tables that belong together."""

    title: str
    tables: list[Table]


def code_tables(profile: CellProfile) -> list[Table]:
    """Give the lines of the cell with their times, where they were asked for."""
    return _with_rows(tables.lines(profile.lines))


def sections(profile: CellProfile) -> list[Section]:
    """Give all other tables that have rows."""
    metrics = profile.metrics
    return [
        Section(
            "Kernels and operators",
            _with_rows(
                tables.kernels(profile.kernels),
                None if metrics is None else tables.kernel_work(metrics),
                tables.paths(profile.paths),
                tables.operators(profile.operators),
                tables.roofline(profile.roofline),
            ),
        ),
        Section(
            "Waits, copies and memory",
            _with_rows(
                None if metrics is None else tables.sync_points(metrics),
                None if metrics is None else tables.idle_places(metrics),
                None if metrics is None else tables.streams(metrics),
                tables.copies(profile.copies),
                tables.memory(profile.memory),
                tables.memory_peaks(profile.memory_curves),
            ),
        ),
    ]


def _with_rows(*found: Table | None) -> list[Table]:
    return [table for table in found if table is not None and table.rows]
