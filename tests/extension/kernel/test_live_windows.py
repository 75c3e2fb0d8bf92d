"""The arithmetic of a long cell: its budget, its windows, its step times."""

import functools
import itertools
import random
from pathlib import Path

import pytest

from warpbook.kernel.live.live_plan import Durations, Plan
from warpbook.kernel.live.live_text import line, words
from warpbook.kernel.live.live_windows import WindowProfile, Windows
from warpbook_monitors import units
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.live import Live, LiveWindow, SlowStep, StepTimes
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
MS = 1_000_000


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("cost_rate", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("step_ms", [0.2, 30, 4000])
def test_windows_keep_to_their_share_of_the_time(
    share: float, cost_rate: float, step_ms: float
) -> None:
    plan = Plan(share, 0)
    now_ns, ends = 0, []
    while now_ns < 3_600_000 * MS and len(ends) < 30:
        now_ns += round(step_ms * MS)
        if not plan.may_open(now_ns, step_ms * MS):
            # on to when anything can change
            now_ns += 20 * MS
            continue
        recorded_ns = round(max(plan.length_ns, step_ms * MS))
        overhead_ns = round(recorded_ns * cost_rate)
        now_ns += recorded_ns + overhead_ns
        plan.took(now_ns, recorded_ns, overhead_ns, events=recorded_ns // 10_000)
        ends.append(plan.overhead_ns / now_ns)
    assert len(ends) > 1
    # before the first nobody knows what one takes; from then on it is known
    assert all(share_now <= share for share_now in ends[1:])
    assert plan.length_ns <= 1000 * MS


def test_a_program_of_many_events_gets_short_windows() -> None:
    plan = Plan(0.05, 0)
    plan.took(1000 * MS, 100 * MS, 60 * MS, events=50_000)
    assert plan.length_ns == 80 * MS


@pytest.mark.parametrize("cost_rate", [0.1, 0.5, 3.0])
def test_a_dear_profile_gets_shorter_windows_not_rarer_ones(cost_rate: float) -> None:
    plan = Plan(0.1, 0)
    now_ns, begins = 0, []
    while now_ns < 120_000 * MS:
        now_ns += 3 * MS
        if plan.may_open(now_ns, 3 * MS):
            begins.append(now_ns)
            overhead_ns = round(plan.length_ns * cost_rate)
            now_ns += plan.length_ns + overhead_ns
            plan.took(now_ns, plan.length_ns, overhead_ns, events=10_000)
    waits = [later - before for before, later in itertools.pairwise(begins)]
    # before the second nobody knew what one takes
    assert max(waits[1:]) < 10_000 * MS


def test_quantiles_are_within_one_percent() -> None:
    drawn = random.Random(1)
    times = sorted(round(drawn.lognormvariate(15, 2)) for _ in range(20_000))
    counted = Durations()
    for time_ns in times:
        counted.add(time_ns)
    assert counted.quantile(0.5) == pytest.approx(times[9_999], rel=0.011)
    assert counted.quantile(0.95) == pytest.approx(times[18_999], rel=0.011)
    assert counted.longest_ns == times[-1] >= counted.quantile(1.0)
    assert Durations().quantile(0.5) == 0


def add(windows: Windows, trace: str, at_ms: int) -> CellProfile:
    """Add a window of a second that held what a trace of an H200 holds."""
    figures = figures_of(trace)
    window = LiveWindow(
        at_ms * MS,
        (at_ms + 1000) * MS,
        10,
        1000 * MS,
        90 * MS,
        500 * MS,
        None,
        "",
        5,
        5,
        20 * MS,
    )
    windows.add(window, WindowProfile(figures, None))  # type: ignore[arg-type]
    return figures


@functools.cache
def figures_of(trace: str) -> CellProfile:
    return analyse(*read_chrome_trace(str(TRACES / f"{trace}.json.gz")))


def test_a_long_list_is_merged_and_adds_up_to_the_same() -> None:
    windows = Windows()
    for number in range(1000):
        add(windows, "tiny_kernels", 2000 * number)
    merged = windows.shown
    assert len(merged) <= 60
    assert sum(window.merged for window in merged) == 1000
    assert sum(window.steps for window in merged) == 10_000
    assert sum(window.recorded_ns for window in merged) == 1_000_000 * MS
    assert sum(window.launches for window in merged) == 5000
    starts = [window.start_ns for window in merged]
    assert starts == sorted(starts)
    assert merged[0].start_ns == 0 and merged[-1].end_ns == 1_999_000 * MS
    # the newest are as they came
    assert merged[-1].merged == 1


def test_the_verdict_is_of_all_windows_by_their_time() -> None:
    windows = Windows()
    assert windows.verdict is None and windows.typical is None
    launch_bound = add(windows, "tiny_kernels", 0)
    assert windows.verdict is not None
    assert windows.verdict.kind == "launch-bound"
    share = sum(
        finding.share
        for finding in launch_bound.findings
        if finding.kind == "launch-bound"
    )
    said = f"Over 1 window {units.share(share)} of the time is launch-bound"
    assert windows.verdict.sentence.startswith(said)
    # the trace of copies is longer
    copies = add(windows, "pinned_h2d", 5000)
    assert windows.verdict.kind == "transfer-bound"
    assert "in the one after 5.00 s" in windows.verdict.sentence
    assert windows.typical is not None and windows.typical.figures is copies
    assert windows.newest is not None
    add(windows, "pinned_h2d", 7000)
    newest = add(windows, "tiny_kernels", 9000)
    # what is shown at the end is what the verdict is about
    assert windows.newest.figures is newest is launch_bound
    assert windows.typical.figures is copies


def test_words_tell_steps_cost_and_what_is_slow() -> None:
    windows = Windows()
    add(windows, "tiny_kernels", 1000)
    live_view = Live(
        elapsed_ns=60_000 * MS,
        steps=1234,
        steps_by="optimizer",
        bare=StepTimes(1200, 21_300_000, 25 * MS, 3000 * MS, 22 * MS),
        profiled=StepTimes(10, 29 * MS, 31 * MS, 33 * MS, 30 * MS),
        slow_steps=(SlowStep(500, 30_000 * MS, 3000 * MS),),
        slow_ns=2_978_700_000,
        windows=windows.shown,
        verdict=windows.verdict,
        overhead_ns=1200 * MS,
        aim_share=0.05,
        setup_ns=2700 * MS,
    )
    text = "\n".join(words(live_view))
    assert "1,234 steps in 1 min 00 s, reported by an optimizer" in text
    assert "Without the profiler a step took 21.3 ms (22.0 ms on average" in text
    assert "In windows a step took 29.0 ms" in text
    assert "the slowest is step 500, 3.00 s" in text
    assert "took 1.20 s, 2.0 % of the time (aim: below 5.0 %)" in text
    assert "2.70 s once to set the profiler up" in text
    short = line(live_view)["text/plain"]
    assert "Live: 1,234 steps · 21.3 ms a step · 1 window · GPU busy 50 %" in short
