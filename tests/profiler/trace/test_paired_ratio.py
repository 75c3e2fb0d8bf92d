"""Ratios of interleaved runs: right on average, and as sure as they say."""

import random

import pytest

from warpbook_profiler.compare.paired_ratio import speed_ratio
from warpbook_profiler.model.trials import (
    Interval,
    OutputDifference,
    Promise,
    Trial,
    measured,
    outcome_of,
    refused,
)


def runs(pairs: int, median_ns: float, draw: random.Random) -> list[float]:
    return [median_ns * draw.lognormvariate(0, 0.1) for _ in range(pairs)]


@pytest.mark.parametrize("pairs", [3, 4, 5, 6, 7, 10, 20])
def test_nineteen_of_twenty_intervals_hold_the_truth(pairs: int) -> None:
    draw = random.Random(pairs)
    holding = 0
    for _ in range(1000):
        ratio = speed_ratio(runs(pairs, 20, draw), runs(pairs, 10, draw))
        holding += ratio.low <= 2 <= ratio.high
    assert 925 <= holding <= 1000


def test_drift_and_a_disturbed_run_go_out_of_it() -> None:
    unchanged = [20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0, 34.0]
    changed = [time_ns / 2 for time_ns in unchanged]
    changed[3] *= 50
    ratio = speed_ratio(unchanged, changed)
    assert ratio.ratio == pytest.approx(2)
    assert outcome_of(ratio) == "no difference shown" or ratio.low > 1


@pytest.mark.parametrize(
    "unchanged, changed", [([1.0, 1.0], [1.0, 1.0]), ([1.0] * 3, [1.0, 1.0, 0.0])]
)
def test_what_is_no_measurement_is_refused(
    unchanged: list[float], changed: list[float]
) -> None:
    with pytest.raises(ValueError):
        speed_ratio(unchanged, changed)


@pytest.mark.parametrize(
    "interval, outcome",
    [
        ((2.0, 1.9, 2.1), "faster"),
        ((1.05, 1.01, 1.1), "no difference shown"),
        ((1.0, 0.97, 1.03), "no difference shown"),
        ((0.5, 0.4, 0.6), "slower"),
    ],
)
def test_the_whole_interval_decides(
    interval: tuple[float, float, float], outcome: str
) -> None:
    assert outcome_of(Interval(*interval)) == outcome


def test_a_trial_says_what_was_promised_measured_and_changed() -> None:
    difference = OutputDifference("y", "float32", 2, 1e-3, 2e-3, 8e-6, 0.0, True)
    speed = Interval(2.0, 1.9, 2.1)

    def said(promise: Promise) -> Trial:
        given = ("tf32", "Write this.", speed, 10_000_000, 5_000_000, 8, difference)
        return measured(*given, promise)

    trial = said(Promise((1.0, 3.5), 9_500_000))
    assert trial.promised == (1.0, 3.5)
    assert trial.outcome == "faster"
    assert trial.sentence == (
        "Faster: 5.00 ms instead of 10.0 ms (1.9 to 2.1 times as fast at 95 %, 8 "
        "pairs). Promised: 1 to 3.5 times. The results differ: y by up to 0.001, 0.002 "
        "of its largest value, where float32 is expected to differ by 8e-06. "
        "Write this."
    )
    assert (
        "Promised: not below 13.0 µs. The"
        in said(Promise((1, 800), 9_500_000, 13_000)).sentence
    )
    first = said(Promise((1.07, 1.08), 150_000_000)).sentence
    assert (
        "Promised: 1.07 to 1.08 times, of a run of 150 ms, which did more than these."
    ) in first
    assert refused("pinned", "no GPU.").sentence == "Not tried: no GPU."
