"""A long cell in words: one line while it runs, and what the report says of it."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook.kernel.link.late_output import Bundle, one_line
from warpbook_monitors import units
from warpbook_profiler.model.live import Live, StepTimes


def line(live: Live, trouble: str = "") -> Bundle:
    """Say in one line how a cell stands."""
    return one_line(" · ".join(_line(live, trouble)))


def words(live: Live) -> tuple[str, ...]:
    """Say what the windows of a cell add up to."""
    return tuple(_words(live))


def cost(live: Live) -> str:
    share = live.overhead_ns / live.elapsed_ns if live.elapsed_ns > 0 else 0.0
    set_up = ""
    if live.setup_ns is not None:
        set_up = f", and {units.duration_ns(live.setup_ns)} once to set the profiler up"
    return (
        f"profiling took {units.duration_ns(live.overhead_ns)}, {units.share(share)} "
        f"of the time (aim: below {units.share(live.aim_share)}){set_up}"
    )


def _line(live: Live, trouble: str) -> Iterator[str]:
    yield f"Live: {_count(live.steps, 'step')}"
    if live.bare is not None:
        yield f"{units.duration_ns(live.bare.median_ns)} a step"
    yield _count(sum(window.merged for window in live.windows), "window")
    if live.windows:
        newest = live.windows[-1]
        if newest.gpu_busy_ns is not None and newest.recorded_ns > 0:
            yield f"GPU busy {units.share(newest.gpu_busy_ns / newest.recorded_ns)}"
        if newest.kind is not None:
            yield newest.kind
        yield cost(live)
    yield from live.notes[:1]
    if trouble:
        yield f"the dashboard does not get it: {trouble}"


def _words(live: Live) -> Iterator[str]:
    if live.verdict is not None:
        yield live.verdict.sentence
    teller = f", reported by {_teller(live)}" if live.steps else ""
    recorded = sum(window.steps for window in live.windows)
    windows = sum(window.merged for window in live.windows)
    yield (
        f"{_count(live.steps, 'step')} in {units.duration_ns(live.elapsed_ns)}"
        f"{teller}; {_count(recorded, 'step')} in {_count(windows, 'window')} "
        "were recorded."
    )
    if live.bare is not None:
        yield f"Without the profiler a step took {_times(live.bare)}."
    if live.profiled is not None:
        yield f"In windows a step took {_times(live.profiled)}."
    if live.slow_steps:
        slowest = max(live.slow_steps, key=lambda step: step.duration_ns)
        yield (
            "Slow steps, three times as long as most or longer, took "
            f"{units.duration_ns(live.slow_ns)} more than the others; the slowest is "
            f"step {slowest.step:,}, {units.duration_ns(slowest.duration_ns)}."
        )
    said = cost(live)
    yield f"{said[0].upper()}{said[1:]}."
    yield from live.notes


def _teller(live: Live) -> str:
    return "an optimizer" if live.steps_by == "optimizer" else "warpbook.step()"


def _times(steps: StepTimes) -> str:
    mean = ""
    if steps.mean_ns is not None:
        mean = f" ({units.duration_ns(steps.mean_ns)} on average with the GPU's work)"
    return (
        f"{units.duration_ns(steps.median_ns)}{mean}, 95 % of them "
        f"{units.duration_ns(steps.p95_ns)} at most, the slowest "
        f"{units.duration_ns(steps.slowest_ns)}"
    )


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"
