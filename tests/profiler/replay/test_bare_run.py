"""The bare time of a profiled cell: near what was measured, or a range around it."""

from dataclasses import replace

import pytest

from tests.profiler.replay.exam import BY_GPU, BY_HOST, TIMES_MS, TRACES, read, times
from tests.profiler.replay.hosts import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareRun, BareTimes
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict.analysis import analyse, profile

MS = 1_000_000


def estimated(name: str) -> CellProfile:
    return analyse(*read(name))


def measured(name: str) -> CellProfile:
    events, run = read(name)
    return analyse(events, replace(run, bare=times(name)))


def bare_of(profile: CellProfile) -> BareRun:
    assert profile.bare is not None
    return profile.bare


def near(name: str) -> float:
    """The median before or after the profile that is nearer to the estimate, in ms."""
    estimate_ms = bare_of(estimated(name)).time_ns / MS
    medians = (TIMES_MS[name][when][0] for when in ("before", "after"))
    return min(medians, key=lambda median: abs(median - estimate_ms))


@pytest.mark.parametrize("name", BY_GPU)
def test_a_time_that_the_gpu_decides_is_known_within_a_tenth(name: str) -> None:
    bare = bare_of(estimated(name))
    assert (bare.basis, bare.limit) == ("estimated", "GPU")
    assert bare.time_ns / MS == pytest.approx(near(name), rel=0.1)
    assert bare.low_ns <= TIMES_MS[name]["before"][0] * MS <= bare.high_ns


@pytest.mark.parametrize("name", [*BY_HOST, "wait_on_side_stream"])
def test_a_time_that_the_host_decides_is_a_range_that_holds(name: str) -> None:
    bare = bare_of(estimated(name))
    assert bare.limit == ("host" if name in BY_HOST else "between")
    for when in ("before", "after"):
        assert bare.low_ns <= TIMES_MS[name][when][0] * MS <= bare.high_ns
    assert bare.high_ns <= 1.02 * bare.profiled_ns
    assert "Run the cell once without the profiler to measure it" in bare.sentence


def test_cells_that_the_profiler_stretched_are_judged_by_what_they_are() -> None:
    """By the profiled window it was "host-bound": 1 of 4 ms was the GPU's."""
    assert estimated("attention_by_hand").verdict.kind == "memory-bound"
    assert estimated("resnet18_one_image").verdict.kind == "launch-bound"
    assert estimated("adam_loop_over_tensors").verdict.kind == "launch-bound"
    assert estimated("fp32_linear_stack").verdict.kind == "compute-bound"
    assert estimated("batches_from_pageable").verdict.kind == "transfer-bound"


@pytest.mark.parametrize("name", TIMES_MS)
def test_a_measured_time_makes_the_range_a_number(name: str) -> None:
    profile = measured(name)
    bare = bare_of(profile)
    assert (bare.basis, bare.runs) == ("measured", 7)
    assert bare.time_ns == TIMES_MS[name]["before"][0] * MS
    assert not bare.between and not bare.cautions
    # the replay that is judged takes as long
    assert bare.judged_ns == pytest.approx(bare.time_ns, rel=0.1)
    assert bare.limit == ("host" if name in BY_HOST else "GPU")


def test_a_verdict_that_the_range_leaves_open_says_between_which() -> None:
    open_ = estimated("wait_on_side_stream")
    assert open_.verdict.kind == "mixed"
    assert bare_of(open_).between == ("compute-bound", "launch-bound")
    assert "Either compute-bound or launch-bound" in open_.verdict.sentence
    assert "Run the cell once without the profiler" in open_.verdict.sentence
    known = measured("wait_on_side_stream")
    # the GPU takes 53 %, and the host 47 %
    assert known.verdict.kind == "mixed"
    assert "Either" not in known.verdict.sentence


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_no_promise_is_above_the_bare_time(path) -> None:
    profile = analyse(*read_chrome_trace(str(path)))
    bare = bare_of(profile)
    assert bare.low_ns <= bare.time_ns <= bare.high_ns <= 1.02 * bare.profiled_ns
    for finding in profile.findings:
        assert finding.bound_ns is None or finding.bound_ns <= bare.low_ns
    name = path.name.split(".")[0]
    if name in TIMES_MS:
        # the fastest of the runs that it was told of
        least_ns = TIMES_MS[name]["before"][1] * MS
        for finding in measured(name).findings:
            assert finding.bound_ns is None or finding.bound_ns <= least_ns


def steps(operators: int, gap: int, kernel: int = 2_000) -> Trace:
    """Fifty launches, `gap` ns apart, with so many operators before each."""
    trace = Trace()
    for step in range(50):
        at = gap * step
        for number in range(operators):
            trace.operator(at + 500 * number, 400)
        trace.launch(at + gap - 8_000, at + gap - 2_000, kernel)
    return trace


def judged(trace: Trace, bare: BareTimes | None = None) -> CellProfile:
    read = trace.read()
    return analyse(read.events, replace(read.run, bare=bare))


def test_time_of_python_without_records_is_no_tax() -> None:
    """A host that sleeps between launches sleeps without the profiler, too."""
    bare = bare_of(judged(steps(0, 10 * MS)))
    assert bare.low_ns >= 0.9 * 490 * MS
    # with many records in the same time, most of it may be the profiler's
    many = bare_of(judged(steps(20, 200_000)))
    assert many.low_ns < 0.5 * many.profiled_ns


def test_records_before_the_first_call_are_a_tax_as_elsewhere() -> None:
    trace = Trace()
    for number in range(2_000):
        trace.operator(10_000 * number, 8_000)
    trace.launch(20 * MS, 20 * MS + 6_000, 2_000)
    bare = bare_of(judged(trace))
    assert (
        bare.low_ns < 0.5 * bare.profiled_ns and bare.time_ns < 0.7 * bare.profiled_ns
    )


def test_what_the_profiler_names_is_no_part_of_the_bare_run() -> None:
    trace = steps(0, 100_000, kernel=90_000)
    plain = bare_of(profile(trace.read()))
    from_overhead = Trace(list(trace.events), trace.correlation)
    moved = [
        (*event[:2], event[2] + (20 * MS if event[2] > 2 * MS else 0), *event[3:])
        for event in from_overhead.events
    ]
    from_overhead.events = moved
    from_overhead.overhead(2 * MS + 1_000, 20 * MS - 2_000)
    bare = bare_of(judged(from_overhead))
    assert bare.time_ns == pytest.approx(plain.time_ns, rel=0.05)


def test_threads_that_launch_together_are_told() -> None:
    trace = Trace()
    for step in range(30):
        at = 100_000 * step
        for tid in (1, 2):
            trace.operator(at + tid, 80_000, tid=tid)
            trace.launch(at + 10_000 * tid, at + 10_000 * tid + 6_000, 5_000, tid=tid)
    [caution] = bare_of(judged(trace)).cautions
    assert "Several threads launched at the same time" in caution


def test_a_stall_that_nothing_explains_is_told() -> None:
    trace = steps(0, 100_000)
    trace.launch(6 * MS, 9 * MS, 1_000)
    [caution] = bare_of(judged(trace)).cautions
    assert "later than anything in the trace explains" in caution


def test_a_time_that_is_longer_than_the_profiled_one_is_not_believed() -> None:
    profile = judged(
        steps(0, 100_000), BareTimes(1, 50 * MS, 50 * MS, 50 * MS, "executions")
    )
    bare = bare_of(profile)
    assert bare.basis == "estimated"
    [caution] = bare.cautions
    assert "which is longer than with it" in caution


def test_a_first_run_counts_with_a_caution() -> None:
    once = BareTimes(1, 4 * MS, 4 * MS, 4 * MS, "first execution")
    bare = bare_of(judged(steps(0, 100_000), once))
    assert (bare.basis, bare.time_ns) == ("measured", 4 * MS)
    assert "measured once" in bare.sentence
    assert "first run" in bare.cautions[0]


def test_a_time_that_the_gpu_alone_exceeds_is_told_as_a_misfit() -> None:
    trace = steps(0, 100_000, kernel=90_000)
    bare = bare_of(
        judged(trace, BareTimes(3, 2 * MS, 1_900_000, 2_100_000, "executions"))
    )
    assert bare.time_ns == 2 * MS
    assert "did different work" in bare.cautions[0]


def test_the_last_wait_may_be_the_cells_or_ours() -> None:
    """A notebook compiles the last statement while, or after, the GPU works."""
    trace = Trace()
    trace.launch(10_000, 20_000, 200_000)
    trace.call("cudaDeviceSynchronize", 620_000, 5_000)
    of_the_cell = bare_of(profile(trace.read()))
    ours = bare_of(profile(trace.read(code_end_ns=620_000)))
    assert of_the_cell.time_ns == pytest.approx(ours.time_ns, rel=0.05)
