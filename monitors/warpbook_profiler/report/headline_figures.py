"""The figures of a profile to read first."""

from __future__ import annotations

import statistics

from warpbook_monitors import units
from warpbook_profiler.model.bare_words import times
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.report.base import base_of

#: a part of the set-up that took less is not worth a word
_LEAST_SET_UP_NS = 1_000_000


def headline_figures(profile: CellProfile) -> tuple[tuple[str, str], ...]:
    """Give values with their labels."""
    figures = [*_times(profile), ("GPU", _gpu(profile))]
    if profile.gpu_name is not None:
        figures += _gpu_figures(profile)
    if profile.lines_cost_ns is not None:
        cost = units.duration_ns(profile.lines_cost_ns)
        figures.append(("Lines", f"recording them took about {cost} of the time"))
    if profile.profiler_ns:
        figures.append(("Profiler", _profiler(profile)))
    return tuple(figures)


def _times(profile: CellProfile) -> list[tuple[str, str]]:
    repeats, bare = profile.repeats, profile.bare
    known = "" if bare is None else bare.sentence
    if profile.cpu is not None and profile.cpu.bare is not None:
        known = times(profile.cpu.bare)
    if repeats is None and known:
        profiled = f"{units.duration_ns(profile.wall_ns)}; the figures are of this run"
        return [("Time", known), ("Profiled", profiled)]
    if repeats is None:
        said = f"{units.duration_ns(profile.wall_ns)} with the profiler on"
        return [("Time", said)]
    runs = repeats.warm_ups + len(repeats.bare_ns) + len(repeats.profiled_ns)
    return [
        ("Time", f"{_fastest(repeats.bare_ns)} without the profiler"),
        ("Profiled", f"{_fastest(repeats.profiled_ns)}; the figures are of this run"),
        (
            "Runs",
            f"{runs:,}, {repeats.warm_ups:,} of them to warm up, each with the "
            "code's side effects",
        ),
    ]


def _fastest(times_ns: tuple[int, ...]) -> str:
    if not times_ns:
        return "not known"
    fastest = units.duration_ns(min(times_ns))
    if len(times_ns) == 1:
        return fastest
    median = units.duration_ns(statistics.median(times_ns))
    slowest = units.duration_ns(max(times_ns))
    return f"{fastest} (fastest of {len(times_ns):,}; median {median}, most {slowest})"


def _gpu(profile: CellProfile) -> str:
    if profile.gpu_name is None:
        return "none that PyTorch can use: CPU operators only"
    if profile.gpu_busy_ns is None:
        return f"{profile.gpu_name}: not recorded"
    busy_ns = profile.gpu_busy_ns if profile.bare is None else profile.bare.gpu_busy_ns
    busy = units.duration_ns(busy_ns)
    base_ns = base_of(profile.bare, profile.metrics, profile.cpu).time_ns
    if not base_ns:
        return f"{profile.gpu_name}, busy for {busy}"
    return f"{profile.gpu_name}, busy for {busy} ({units.share(busy_ns / base_ns)})"


def _gpu_figures(profile: CellProfile) -> list[tuple[str, str]]:
    figures = []
    if profile.kernel_calls is not None and profile.kernel_time_ns is not None:
        time = units.duration_ns(profile.kernel_time_ns)
        figures.append(("Kernels", f"{profile.kernel_calls:,} in {time}"))
    if profile.copy_time_ns is not None:
        copies = sum(row.calls for row in profile.copies)
        time = units.duration_ns(profile.copy_time_ns)
        figures.append(("Copies, memsets", f"{copies:,} in {time}"))
    if profile.launches is not None and profile.launch_api_ns is not None:
        calls = units.duration_ns(profile.launch_api_ns)
        said = f"{profile.launches:,}, {calls} in the calls; {_seen(profile)}"
        figures.append(("Launches", said))
    if profile.synchronizations is not None and profile.synchronization_ns is not None:
        waited = units.duration_ns(profile.synchronization_ns)
        waits = f"{profile.synchronizations:,} for {waited}"
        figures.append(("Waits", waits if profile.synchronizations else "none"))
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


def _seen(profile: CellProfile) -> str:
    """Say how much of what was launched is in the figures."""
    launches = profile.completeness.launches
    matched = profile.completeness.matched
    if matched >= launches:
        return f"{matched:,} seen on the GPU"
    return f"{matched:,} seen on the GPU, {launches - matched:,} lost"


def _profiler(profile: CellProfile) -> str:
    said = f"{units.duration_ns(profile.profiler_ns)} of overhead"
    if profile.first_start_ns is not None:
        first = units.duration_ns(profile.first_start_ns)
        said += f", {first} of it for its first start in this kernel"
    if profile.set_up is not None:
        parts = {
            "CUDA": profile.set_up.cuda_ns,
            "torch's profiler": profile.set_up.profiler_ns,
            "the imports before": profile.set_up.imports_ns,
        }
        pieces = [
            f"{name} {units.duration_ns(took)}"
            for name, took in parts.items()
            if took >= _LEAST_SET_UP_NS
        ]
        said += f" ({', '.join(pieces)})" if pieces else ""
    return said
