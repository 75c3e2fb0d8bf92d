"""A bare run in the words that every view shows."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_monitors import units
from warpbook_profiler.model.bare_run import BareRun, BareTimes
from warpbook_profiler.model.figures import Finding

#: techniques that move work to another ceiling
_OF_A_CEILING = ("fp8", "int8", "memory-traffic", "tensor-cores")
_LIMITS = {
    "GPU": "the GPU",
    "host": "the host",
    "between": "the GPU at the low end, the host at the high end",
}


def took(bare: BareRun) -> str:
    """Write how long it takes: a number where one is known, else a range."""
    if bare.basis == "measured":
        return _ns(bare.time_ns)
    if bare.limit == "GPU":
        return f"about {_ns(bare.time_ns)}"
    return span(bare)


def span(bare: BareRun) -> str:
    """Write the range, or the spread of what was measured."""
    return units.duration_range_ns(bare.low_ns, bare.high_ns)


def sentence(bare: BareRun) -> str:
    """Say how long the cell takes without the profiler, and how that is known."""
    if bare.basis == "measured":
        return measured(bare.runs, bare.time_ns, span(bare))
    if bare.limit == "GPU":
        return (
            f"{took(bare)} without the profiler, estimated ({span(bare)}): the GPU "
            "decides"
        )
    return (
        f"{took(bare)} without the profiler, estimated: the host decides, and the "
        "trace does not show how much the profiler slowed it down. Run the cell once "
        "without the profiler to measure it"
    )


def at_best(finding: Finding, before: str = "") -> str:
    """Say what is left without a cause: a bound of the cause, and of no change.

    Args:
        finding: with a bound.
        before: what it takes now, in words; may be empty.
    """
    when = "Without this cause"
    if finding.topic in _OF_A_CEILING:
        # another dtype, or fewer bytes, has another ceiling
        when = "At their ceiling, with the same dtype and bytes"
    bound = _ns(finding.bound_ns or 0)
    return f"{when}: {bound} at best{f', instead of {before}' if before else ''}."


def measured(runs: int, median_ns: int, spread: str) -> str:
    """Say how long runs without the profiler took; the spread is in words."""
    time = f"{_ns(median_ns)} without the profiler, measured"
    return (
        f"{time} once" if runs == 1 else f"{time} (median of {runs:,} runs, {spread})"
    )


def times(bare: BareTimes) -> str:
    """Say what was measured of code that nothing was estimated of."""
    spread = units.duration_range_ns(bare.least_ns, bare.most_ns)
    return measured(bare.runs, bare.median_ns, spread)


def longer(bare: BareTimes) -> str:
    """Say why a time that is longer than the profiled one is left out."""
    return (
        f"Without the profiler the cell took {_ns(bare.median_ns)}, which is longer "
        "than with it: the two runs did different work (first calls, other data). Run "
        "it once more without the profiler."
    )


def figures(bare: BareRun) -> Iterator[tuple[str, str]]:
    """Give the figures of the bare run, each with its label."""
    measured = bare.basis == "measured"
    yield "Median" if measured else "Judged at", _ns(bare.time_ns)
    yield "Spread" if measured else "Range", span(bare)
    yield "Basis", _basis(bare)
    yield "Limited by", _LIMITS[bare.limit]
    window_ns = bare.judged_ns

    def part(nanoseconds: int) -> str:
        if not window_ns:
            return _ns(nanoseconds)
        return f"{_ns(nanoseconds)} ({units.share(nanoseconds / window_ns)})"

    yield "Busy", part(bare.gpu_busy_ns)
    idle = {
        "Idle after a wait for the GPU": bare.idle.host_synchronize_ns,
        "Idle while the host launched": bare.idle.host_launching_ns,
        "Idle while it was in operators": bare.idle.host_operator_ns,
        "Idle while it was in other CUDA calls": bare.idle.host_api_ns,
        "Idle while it was in Python or other code": bare.idle.host_python_ns,
        "Idle between kernels": bare.idle.kernel_wait_ns,
        "Idle, other": bare.idle.other_ns,
    }
    for label, nanoseconds in idle.items():
        if nanoseconds:
            yield label, part(nanoseconds)
    if bare.host_share is not None:
        yield "Of the host's profiled time", units.share(bare.host_share)
    yield "Profiled", _ns(bare.profiled_ns)
    if bare.calibration:
        yield "Times of changes", bare.calibration


def _basis(bare: BareRun) -> str:
    if bare.basis == "estimated":
        return "a replay of the trace, less the profiler's part"
    runs = f"{bare.runs:,} run{'s' if bare.runs != 1 else ''} without the profiler"
    if bare.source == "repeats":
        return f"{runs}, beside this profile"
    return f"{runs}, before this profile"


def _ns(nanoseconds: float) -> str:
    return units.duration_ns(nanoseconds)
