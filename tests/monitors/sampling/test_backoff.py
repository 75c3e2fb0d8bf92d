"""The monitor reads less often while it disturbs, and comes back."""

import pytest

from warpbook_monitors.sampling.backoff import (
    BAD_SECONDS,
    CALM_SECONDS,
    BackOff,
    Second,
)
from warpbook_monitors.sampling.own_cost import Costs

CALM = Second(cpu_ratio=0.01, tick_ms=1.0, loop_lag_ms=1.0)


def after(back_off: BackOff, second: Second, seconds: int) -> float:
    for _ in range(seconds):
        back_off.judge(second)
    return back_off.rate_hz


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (Second(0.3, 1.0, 1.0), "30.0 % of a CPU core, and 20 % is the most"),
        (Second(0.01, 60.0, 1.0), "the devices took 60 ms to answer"),
        (Second(0.01, 1.0, 400.0), "event loop ran 400 ms late"),
    ],
)
def test_what_disturbs_halves_the_rate_and_is_told(second: Second, words: str) -> None:
    back_off = BackOff(10.0)
    assert after(back_off, second, BAD_SECONDS - 1) == 10, "a blip is no reason"
    assert back_off.sentence() == ""
    assert after(back_off, second, 1) == 5
    assert words in back_off.sentence()
    assert "5 times a second instead of 10" in back_off.sentence()


def test_it_never_goes_below_once_a_second() -> None:
    disturbing = Second(0.9, 1.0, 1.0)
    assert after(BackOff(10.0), disturbing, 60) == 1.25
    assert after(BackOff(4.0), disturbing, 60) == 1
    assert after(BackOff(1.0), disturbing, 60) == 1


def test_it_comes_back_step_by_step_after_a_calm() -> None:
    back_off = BackOff(10.0)
    after(back_off, Second(0.9, 1.0, 1.0), 2 * BAD_SECONDS)
    assert after(back_off, CALM, CALM_SECONDS) == 5
    assert "5 times" in back_off.sentence()
    assert after(back_off, CALM, CALM_SECONDS) == 10
    assert back_off.sentence() == ""


def test_it_stays_where_twice_the_rate_would_disturb_again() -> None:
    back_off = BackOff(10.0)
    after(back_off, Second(0.3, 1.0, 1.0), BAD_SECONDS)
    # half the rate costs half
    assert after(back_off, Second(0.15, 1.0, 1.0), 300) == 5


def test_seconds_that_were_not_bad_in_a_row_change_nothing() -> None:
    back_off = BackOff(10.0)
    for _ in range(20):
        after(back_off, Second(0.3, 1.0, 1.0), BAD_SECONDS - 1)
        after(back_off, CALM, 1)
    assert back_off.rate_hz == 10


def test_a_rest_begins_anew() -> None:
    back_off, costs = BackOff(10.0, most_cpu_ratio=0.1), Costs()
    for tick in range(60):
        costs.add_cpu(0.05)
        back_off.after_tick(tick / 10, costs)
    assert costs.rate_hz == back_off.rate_hz < 10
    assert costs.back_off
    back_off.rest()
    back_off.after_tick(100.0, costs)
    assert (costs.rate_hz, costs.back_off) == (10, "")
