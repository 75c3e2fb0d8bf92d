"""The rules of a course: what holds for every course, learner and submission."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from warpbook.hub_protocol import GradedFacts, Ratio
from warpbook_hub.class_view import GONE_MS, NO_PROGRESS_MS, Try, stuck
from warpbook_hub.errors import BadRequest
from warpbook_hub.queue.overview import expected_s, finish_times_s
from warpbook_hub.rules.lateness import (
    HOUR_MS,
    LatePolicy,
    Outage,
    Window,
    extended_ms,
    kept_share,
    last_ms,
    late_hours,
)
from warpbook_hub.rules.points import PointScheme, Threshold, check_scheme, points_of
from warpbook_hub.rules.standing import Attempt, LabAttempts, LabMark, marks
from warpbook_hub.rules.visibility import (
    Viewer,
    may_decide,
    may_decide_work,
    may_see_lab,
    may_see_reference,
    may_see_work,
    reference_from_ms,
)

WINDOW = Window(0, 10 * HOUR_MS, 20 * HOUR_MS)
SCHEME = PointScheme(
    (
        Threshold("right", 0.5, 2),
        Threshold("right", 1.0, 6),
        Threshold("of_baseline", 1.0, 1),
        Threshold("of_baseline", 2.0, 4),
    )
)
policies = some.builds(
    LatePolicy, some.sampled_from([0.0, 10.0, 25.0, 50.0, 100.0, 33.3])
)
attempts = some.builds(
    Attempt,
    some.uuids().map(str),
    some.integers(0, 100).map(float),
    some.integers(0, 100),
)
labs = some.lists(
    some.builds(
        LabAttempts,
        some.uuids().map(str),
        some.lists(attempts, max_size=3).map(tuple),
        policies,
    ),
    max_size=4,
)


def graded(
    right: int = 4, of: int = 4, low: float | None = None, verdict: str = "right"
) -> GradedFacts:
    ratio = None if low is None else Ratio(low, low + 0.1, low + 0.2)
    return GradedFacts(
        verdict,  # type: ignore[arg-type]
        "",
        "",
        right,
        of,
        is_speed_graded=low is not None,
        of_baseline=ratio,
    )


# lateness


@given(some.integers(0, 1000 * HOUR_MS))
def test_lateness_never_shrinks_with_time_and_begins_after_the_due_date(
    received_ms: int,
) -> None:
    hours = late_hours(received_ms, WINDOW)
    assert (hours == 0) == (received_ms <= last_ms(WINDOW.due_ms))
    assert late_hours(received_ms + 1, WINDOW) in (hours, hours + 1)


@given(some.integers(0, 2000), policies)
def test_a_penalty_is_a_share_and_grows_with_days(
    hours: int, policy: LatePolicy
) -> None:
    share = kept_share(hours, policy)
    assert 0 <= kept_share(hours + 1, policy) <= share <= 1
    assert kept_share(0, policy) == 1


def test_a_late_day_has_begun_with_its_first_hour() -> None:
    policy = LatePolicy(25)
    shares = [kept_share(hours, policy) for hours in (0, 1, 24, 25, 96, 97)]
    assert shares == [1, 0.75, 0.75, 0.5, 0, 0]


# marks and the late budget


@given(labs, some.integers(0, 150))
def test_the_budget_is_spent_as_well_as_can_be(
    of_labs: list[LabAttempts], budget: int
) -> None:
    marked = marks(of_labs, budget)
    assert [mark.publication for mark in marked] == [lab.publication for lab in of_labs]
    assert sum(mark.budget_hours for mark in marked) <= budget
    assert sum(mark.points for mark in marked) == pytest.approx(
        best_by_trying(of_labs, budget)
    )


def best_by_trying(of_labs: list[LabAttempts], budget: int) -> float:
    """Try every attempt of each lab with every number of days that are still late."""
    choices = []
    for lab in of_labs:
        ways = [(0, 0.0)]
        for attempt in lab.attempts:
            for spent in {0, *range(attempt.late_hours, -1, -24)}:
                share = kept_share(attempt.late_hours - spent, lab.policy)
                ways.append((spent, attempt.points * share))
        choices.append(ways)
    return max(
        sum(points for _, points in way)
        for way in itertools.product(*choices)
        if sum(hours for hours, _ in way) <= budget
    )


def test_a_grace_period_forgives_and_moves_no_date() -> None:
    minute = 60_000
    window = Window(0, 10 * HOUR_MS, 10 * HOUR_MS, grace_ms=5 * minute)
    end_ms = 10 * HOUR_MS + 6 * minute - 1
    assert window.is_open(end_ms) and not window.is_open(end_ms + 1)
    assert late_hours(end_ms, window) == 0
    # after it somebody is late since the date
    later = Window(0, 10 * HOUR_MS, 20 * HOUR_MS, grace_ms=5 * minute)
    assert late_hours(11 * HOUR_MS + 2 * minute, later) == 2
    # an outage within it moves the date, so that as much of it is left
    away = [Outage(10 * HOUR_MS + 3 * minute, 10 * HOUR_MS + 13 * minute)]
    assert extended_ms(10 * HOUR_MS, away) == 10 * HOUR_MS
    assert extended_ms(10 * HOUR_MS, away, 5 * minute) == 10 * HOUR_MS + 10 * minute


@given(labs, some.integers(0, 150), attempts)
def test_another_attempt_and_more_budget_never_take_points(
    of_labs: list[LabAttempts], budget: int, more: Attempt
) -> None:
    def total(marked: tuple[LabMark, ...]) -> float:
        return sum(mark.points for mark in marked)

    before = total(marks(of_labs, budget))
    assert total(marks(of_labs, budget + 24)) >= before - 1e-9
    if of_labs:
        first = of_labs[0]
        with_more = LabAttempts(
            first.publication, (*first.attempts, more), first.policy
        )
        assert total(marks([with_more, *of_labs[1:]], budget)) >= before - 1e-9


def test_hours_go_where_they_earn_most_and_no_further() -> None:
    policy = LatePolicy(25)
    cheap = LabAttempts("cheap", (Attempt("a", 4, 30),), policy)
    dear = LabAttempts("dear", (Attempt("b", 100, 30), Attempt("c", 60, 0)), policy)
    by_lab = {mark.publication: mark for mark in marks([cheap, dear], 30)}
    assert (by_lab["dear"].submission, by_lab["dear"].points) == ("b", 100)
    assert (by_lab["dear"].budget_hours, by_lab["cheap"].budget_hours) == (30, 0)
    assert (by_lab["cheap"].points, by_lab["cheap"].penalty) == (2, 2)
    # six hours save one day of two
    by_lab = {mark.publication: mark for mark in marks([cheap, dear], 6)}
    assert (by_lab["dear"].points, by_lab["dear"].budget_hours) == (75, 6)


def test_a_lab_without_work_is_worth_nothing() -> None:
    [mark] = marks([LabAttempts("lab", (), LatePolicy())], 10)
    assert (mark.submission, mark.points, mark.budget_hours) == (None, 0, 0)


# points


@given(some.integers(0, 20), some.integers(0, 20), some.floats(0.01, 10))
def test_better_results_are_never_worth_less(right: int, more: int, low: float) -> None:
    of = 20
    fewer, better = sorted((right, min(of, right + more)))
    worse_points = points_of(SCHEME, graded(fewer, of, low))
    better_points = points_of(SCHEME, graded(better, of, low * 1.5))
    assert 0 <= worse_points.points <= better_points.points <= better_points.of_all
    assert worse_points.points <= worse_points.of <= worse_points.of_all == 10


def test_thresholds_give_the_best_that_is_reached_of_each_measure() -> None:
    points = [points_of(SCHEME, graded(right)).points for right in (1, 2, 3, 4)]
    assert points == [0, 2, 2, 6]
    fast = [points_of(SCHEME, graded(low=low)).points for low in (0.9, 1.0, 1.9, 2.0)]
    assert fast == [6, 7, 7, 10]
    # the lower end of the interval counts, and only of a right source
    assert points_of(SCHEME, graded(3, 4, 5.0, "wrong")).points == 2


def test_without_a_gpu_nothing_could_be_had_for_speed() -> None:
    right, wrong = points_of(SCHEME, graded()), points_of(SCHEME, graded(1, 4))
    assert (right.points, right.of, right.of_all) == (6, 6, 10)
    # what is wrong has missed them, unless nobody could have had them
    assert wrong.of == 10
    assert points_of(SCHEME, graded(1, 4), has_gpu=False).of == 6
    busy = points_of(SCHEME, graded(verdict="too busy"))
    assert (busy.points, busy.of) == (6, 6)


@pytest.mark.parametrize(
    "thresholds",
    [
        (),
        (Threshold("right", 1.5, 1),),
        (Threshold("right", 0, 1),),
        (Threshold("right", 1, -1),),
        (Threshold("right", 1, math.nan),),
        (Threshold("right", 0.5, 3), Threshold("right", 1, 2)),
        (Threshold("right", 0.5, 3), Threshold("right", 0.5, 4)),
        tuple(Threshold("of_limit", 0.01 * n, n) for n in range(1, 40)),
    ],
)
def test_points_that_cant_be_meant_are_refused(
    thresholds: tuple[Threshold, ...],
) -> None:
    check_scheme(SCHEME)
    with pytest.raises(BadRequest):
        check_scheme(PointScheme(thresholds))


# stuck


def tries(*kinds: str, right: float = 0.5, minutes: float = 1) -> list[Try]:
    return [
        Try(int(number * minutes * 60_000), kind == "", right, kind)
        for number, kind in enumerate(kinds)
    ]


def test_three_equal_failures_are_stuck_and_two_are_not() -> None:
    assert stuck(tries("race", "race"), 200_000) is None
    assert stuck(tries("race", "race", "race"), 200_000) == "equal failures"
    assert stuck(tries("race", "other", "race"), 200_000) is None
    assert stuck(tries("x", "race", "race", "race"), 300_000) == "equal failures"
    assert stuck(tries("race", "race", "race", ""), 300_000) is None


def test_fifteen_minutes_in_vain_are_stuck_until_one_gets_on_or_leaves() -> None:
    two = tries("a", "b", minutes=10)
    assert stuck(two, NO_PROGRESS_MS - 1) is None
    assert stuck(two, NO_PROGRESS_MS) == "no progress"
    better = [*two[:1], Try(600_000, False, 0.75, "b")]
    assert stuck(better, NO_PROGRESS_MS) is None
    assert stuck(two, 600_000 + GONE_MS + 1) is None
    assert stuck([], 0) is None


# estimates


@given(
    some.lists(some.floats(0, 100), max_size=20),
    some.integers(1, 8),
    some.lists(some.floats(0, 100), max_size=8),
)
def test_estimates_fit_the_work_that_is_before(
    durations: list[float], slots: int, running: list[float]
) -> None:
    ends = finish_times_s(durations, slots, running)
    assert len(ends) == len(durations)
    assert all(end >= duration for end, duration in zip(ends, durations, strict=True))
    for place, end in enumerate(ends):
        work = sum(durations[: place + 1]) + sum(sorted(running)[-slots:])
        assert end <= work + 1e-6
    faster = finish_times_s(durations, slots + 1, running[:slots])
    slower = finish_times_s(durations, slots, running[:slots])
    assert all(a <= b + 1e-9 for a, b in zip(faster, slower, strict=True))


def test_estimates_of_a_queue_by_hand() -> None:
    assert finish_times_s([5, 5, 5], 2, [1.0]) == [5, 6, 10]
    assert finish_times_s([5, 5], 0) == [math.inf, math.inf]
    assert finish_times_s([5], 1, [5, 10]) == [15]
    assert (expected_s([], 7.0), expected_s([2, 4], 7.0)) == (7.0, 3.0)


# who sees what


def test_the_reference_is_shown_when_nobody_can_gain_by_it() -> None:
    extended = Window(0, 15 * HOUR_MS, 25 * HOUR_MS)
    for takes_all, hours in ((True, 15), (False, 25)):
        from_ms = reference_from_ms([WINDOW, extended], takes_all)
        assert from_ms == last_ms(hours * HOUR_MS) + 1
        learner = Viewer("ada", "learner", "s1")
        assert not may_see_reference(learner, from_ms, from_ms - 1)
        assert may_see_reference(learner, from_ms, from_ms)
        assert may_see_reference(Viewer("grace", "instructor", ""), from_ms, 0)


def test_a_learner_sees_their_own_work_and_an_assistant_their_sections() -> None:
    people = {
        "own": Viewer("ada", "learner", "s1"),
        "team": Viewer("bob", "learner", "s2"),
        "other": Viewer("cyd", "learner", "s1"),
        "assistant": Viewer("dan", "assistant", "s1"),
        "assistant elsewhere": Viewer("eve", "assistant", "s2"),
        "instructor": Viewer("grace", "instructor", "s9"),
        "dropped": Viewer("ada", "learner", "s1", is_hidden=True),
    }
    seen = {
        who
        for who, viewer in people.items()
        if may_see_work(viewer, ("ada", "bob"), ("s1",))
    }
    assert seen == {"own", "team", "assistant", "instructor", "dropped"}
    decides = {who for who, viewer in people.items() if may_decide(viewer, "s1")}
    assert decides == {"assistant", "instructor"}
    # a team of two sections is both assistants'
    of_both = {
        who for who, viewer in people.items() if may_decide_work(viewer, ("s1", "s2"))
    }
    assert of_both == {"assistant", "assistant elsewhere", "instructor"}
    left = Viewer("grace", "instructor", "s9", is_hidden=True)
    assert not may_decide(left, "s1") and not may_see_work(left, ("ada",), ("s1",))


def test_a_lab_is_shown_from_its_opening_to_whom_it_is_for() -> None:
    window = Window(100, 200, 300)
    learner = Viewer("ada", "learner", "s1")
    shown = [may_see_lab(learner, window, now_ms) for now_ms in (99, 100, 999)]
    assert shown == [False, True, True]
    assert not may_see_lab(learner, None, 150)
    assert may_see_lab(Viewer("dan", "assistant", "s1"), window, 0)
