"""How much longer or shorter one run takes than another, as an interval."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.spread import Shift, ratio

#: fewer runs or steps of each have no interval of their own
LEAST_RUNS = 4
#: Two profiles of one code differ by no more: kernels by 1 % on an H100, all else,
#: which the profiler stretches, by half (docs/how-to/compare-runs.md says of what).
_BUSY_NOISE, _REST_NOISE = 0.02, 0.5
#: so many, evenly chosen, are enough to tell two medians apart
_MOST_RUNS = 500
#: what differs by less is called about the same
SAME_SHARE = 0.05

Outcome = Literal["less time", "more time", "about the same", "unknown"]


class Time(Struct, frozen=True):
    """How long both took, and how much more the later one does."""

    #: of the runs without the profiler, of a schedule's steps, or of what was recorded
    basis: Literal["runs", "steps", "window"]
    #: medians of runs or steps; less the profiler's own
    before_ns: float
    after_ns: float
    #: runs or steps; of a window the steps in it, 0 without any
    before_count: int
    after_count: int
    #: the time is of one step
    per_step: bool
    #: after over before, less 1; and its interval at 95 %
    change: float
    low: float
    high: float
    #: of a window, how far two profiles of one code are expected to differ
    noise: float | None

    @property
    def outcome(self) -> Outcome:
        """Tell a change from chance."""
        is_window = self.noise is not None
        ends = (self.change,) if is_window else (self.low, self.high)
        if all(abs(end) <= SAME_SHARE for end in ends):
            return "about the same"
        if self.high < 0:
            return "less time"
        return "more time" if self.low > 0 else "unknown"


def compare_times(
    before: CellProfile, after: CellProfile, noise: float | None = None
) -> Time | None:
    """Compare the times of two runs, by the best that both have.

    Args:
        before: the run to compare with.
        after: the run that is judged.
        noise: how far two profiles of one code differ; None takes what is known.

    Returns:
        None where one of them took no time.
    """
    bare = [run.repeats.bare_ns if run.repeats else () for run in (before, after)]
    steps = [tuple(step.time_ns for step in run.steps) for run in (before, after)]
    # the list of steps is bounded, and all figures are of all steps
    of_all = [max(len(run.steps), _window(run)[2]) for run in (before, after)]
    for basis, times in (("runs", bare), ("steps", steps)):
        counts = of_all if basis == "steps" else [len(one) for one in times]
        was, now = map(_positive, times)
        if min(len(was), len(now)) >= LEAST_RUNS:
            return Time(
                "runs" if basis == "runs" else "steps",
                _median(was),
                _median(now),
                counts[0],
                counts[1],
                basis == "steps",
                # a run beside itself
                *((0.0, 0.0, 0.0) if was == now else _changes(ratio(was, now))),
                None,
            )
    return _windows(before, after, noise)


def _windows(
    before: CellProfile, after: CellProfile, noise: float | None
) -> Time | None:
    (was, was_busy, was_steps), (now, now_busy, now_steps) = map(
        _window, (before, after)
    )
    if not was or not now:
        return None
    if noise is None:
        noise = max(_noise(was, was_busy), _noise(now, now_busy))
    per_step = bool(was_steps and now_steps)
    was_ns, now_ns = (was / was_steps, now / now_steps) if per_step else (was, now)
    middle = now_ns / was_ns
    interval = Shift(middle / (1 + noise), middle, middle * (1 + noise))
    return Time(
        "window",
        was_ns,
        now_ns,
        was_steps,
        now_steps,
        per_step,
        *_changes(interval),
        noise,
    )


def _window(profile: CellProfile) -> tuple[int, int, int]:
    """Give a run's time less the profiler's own, the GPU's part, and its steps."""
    if profile.work is not None:
        work = profile.work
        return work.time_ns, work.busy_ns, work.steps
    return profile.wall_ns, profile.gpu_busy_ns or 0, len(profile.steps)


def _positive(times: tuple[int, ...]) -> list[int]:
    chosen = [one for one in times if one > 0]
    return chosen[:: max(-(-len(chosen) // _MOST_RUNS), 1)]


def _median(times: list[int]) -> float:
    ordered = sorted(times)
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2


def _changes(interval: Shift) -> tuple[float, float, float]:
    return interval.middle - 1, interval.low - 1, interval.high - 1


def _noise(time_ns: int, busy_ns: int) -> float:
    """Expect so much between two profiles of one code, as a part of their time."""
    busy = min(busy_ns / time_ns, 1.0)
    return _BUSY_NOISE * busy + _REST_NOISE * (1 - busy)


def said(time: Time) -> str:
    """Write both times: "1.66 ms instead of 9.23 ms a step"."""
    unit = " a step" if time.per_step else ""
    return (
        f"{units.duration_ns(time.after_ns)} instead of "
        f"{units.duration_ns(time.before_ns)}{unit}"
    )


def certainty(time: Time) -> str:
    """Say how sure the change is, and what would make it surer."""
    interval = f"{signed_share(time.low)} to {signed_share(time.high)}"
    if time.noise is None:
        return (
            f"{time.after_count:,} {time.basis} against {time.before_count:,}: the "
            f"change is {interval}, at 95 %."
        )
    return (
        "Too few runs or steps for their own range. Two profiles of the same code may "
        f"differ by {units.share(time.noise)} here, so the change is {interval}. For a "
        f"narrower range repeat both with -r {LEAST_RUNS + 1}, or profile {LEAST_RUNS} "
        "steps of each, with schedule() and prof.step()."
    )


def signed_share(change: float) -> str:
    """Write a change: "+22 %"."""
    return f"{'-' if change < 0 else '+'}{units.share(abs(change))}"
