"""How much faster: right, and as sure as it says, under noise of every kind."""

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from warpbook_labs.gpu.ratio import Stopping, compared, fraction, sides, verdict
from warpbook_labs.results.measurements import Ratio

Times = NDArray[np.float64]
#: what the calls of both sides, in the order of their turns, take too much of
Noise = Callable[[np.random.Generator, int], Times]

LEARNER_NS, BASELINE_NS = 80_000.0, 100_000.0
RIGHT = BASELINE_NS / LEARNER_NS


def timed(noise: Noise, pairs: int, seed: int) -> tuple[Times, Times]:
    turns = np.array(list(sides(pairs)))
    disturbed = noise(np.random.default_rng(seed), len(turns))
    is_learner = turns == "learner"
    return LEARNER_NS * disturbed[is_learner], BASELINE_NS * disturbed[~is_learner]


def quiet(rng: np.random.Generator, calls: int) -> Times:
    return rng.normal(1, 0.01, calls)


def drifting(rng: np.random.Generator, calls: int) -> Times:
    """The clocks fall by a tenth while it is measured."""
    return quiet(rng, calls) * np.linspace(1, 1.1, calls)


def outlying(rng: np.random.Generator, calls: int) -> Times:
    """One call of twenty waits for something else."""
    late = rng.random(calls) < 0.05
    return quiet(rng, calls) * np.where(late, rng.uniform(2, 50, calls), 1)


def bimodal(rng: np.random.Generator, calls: int) -> Times:
    """The clock jumps between two steps, and stays there for some calls."""
    steps = np.cumsum(rng.random(calls) < 0.05) % 2
    return quiet(rng, calls) * (1 + 0.2 * steps)


def second_is_slower(rng: np.random.Generator, calls: int) -> Times:
    return quiet(rng, calls) * np.where(np.arange(calls) % 2, 1.05, 1.0)


each_noise = pytest.mark.parametrize(
    "noise", [quiet, drifting, outlying, bimodal, second_is_slower]
)


def test_the_sides_take_turns_so_that_neither_is_always_first() -> None:
    assert list(sides(4)) == [
        *("learner", "baseline", "baseline", "learner"),
        *("learner", "baseline", "baseline", "learner"),
    ]


@each_noise
def test_the_ratio_is_right_whatever_the_noise(noise: Noise) -> None:
    ratio = compared(*timed(noise, 160, seed=1))
    assert ratio.median == pytest.approx(RIGHT, rel=0.01)
    assert ratio.low <= ratio.median <= ratio.high
    assert ratio.pairs == 160


@each_noise
def test_the_interval_holds_the_truth_as_often_as_it_says(noise: Noise) -> None:
    """Stopped when it is precise, as it is used, which makes any interval too sure."""
    stopping = Stopping(20, 160, 0.005)
    held, trials = 0, 120
    for seed in range(trials):
        learner, baseline = timed(noise, stopping.most_pairs, seed)
        for pairs in stopping.looks():
            ratio = compared(learner[:pairs], baseline[:pairs])
            if stopping.is_done(ratio):
                break
        held += ratio.low <= RIGHT <= ratio.high
    assert 0.9 <= held / trials


def test_a_kernel_against_itself_is_neither_faster_nor_slower() -> None:
    one, same = timed(quiet, 160, seed=3)
    ratio = compared(one, same / BASELINE_NS * LEARNER_NS)
    assert ratio.low < 1 < ratio.high
    assert ratio.median == pytest.approx(1, abs=0.003)


def test_the_same_times_give_the_same_interval() -> None:
    times = timed(outlying, 40, seed=4)
    assert compared(*times) == compared(*times)


def test_more_pairs_make_it_surer() -> None:
    few, many = (compared(*timed(quiet, pairs, seed=5)) for pairs in (20, 640))
    assert many.precision < few.precision / 3


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_can_not_be_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="clock can't be trusted"):
        compared([1.0, wrong], [1.0, 1.0])


def test_a_lonely_pair_is_no_round() -> None:
    with pytest.raises(ValueError, match="no rounds"):
        compared([1.0], [1.0])
    with pytest.raises(ValueError, match="no rounds"):
        compared([1.0, 1.0, 1.0, 1.0], [1.0, 1.0])


def test_the_fraction_of_the_limit() -> None:
    ratio = fraction(50_000, timed(outlying, 160, seed=6)[0])
    assert ratio.median == pytest.approx(50_000 / LEARNER_NS, rel=0.01)
    assert ratio.low < ratio.median < ratio.high


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.9, 1.0, "fast"),
        (0.85, 0.86, "fast"),
        (0.8, 0.9, "can't tell"),
        (0.7, 0.8499, "slow"),
    ],
)
def test_a_mark_needs_the_whole_interval(low: float, high: float, said: str) -> None:
    assert verdict(Ratio((low + high) / 2, low, high, 40), 0.85) == said


def test_it_looks_at_twice_as_many_each_time_and_ends() -> None:
    assert list(Stopping().looks()) == [40, 80, 160, 320, 640]
    assert list(islice(Stopping(10, 25).looks(), 9)) == [10, 20, 25]


def test_it_goes_on_until_it_is_precise_and_can_tell() -> None:
    stopping = Stopping()
    precise = Ratio(1.0, 0.999, 1.001, 40)
    assert stopping.is_done(precise)
    assert not stopping.is_done(Ratio(1.0, 0.98, 1.02, 40))
    assert not stopping.is_done(precise, [(precise, 1.0)])
    assert stopping.is_done(precise, [(precise, 0.9), (precise, 1.1)])
    assert stopping.is_done(Ratio(1.0, 0.5, 2.0, 640), [(precise, 1.0)])
