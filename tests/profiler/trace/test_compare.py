"""What a comparison of two profiles says, on traces recorded on a real H200."""

from pathlib import Path

import msgspec
import pytest

from warpbook_monitors.history.span import DeviceSpan, MetricSpan
from warpbook_monitors.verdicts.health import Condition
from warpbook_profiler.compare.clocks import Clocks, clocks_of
from warpbook_profiler.compare.compare import compare
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile, KernelRow, Repeats
from warpbook_profiler.report.comparison_view import shown
from warpbook_profiler.report.profile_view import view_of
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
COOL = Clocks(1980.0, 45.0, (), is_throttled=False)
HOT = Clocks(1200.0, 88.0, ("thermal slowdown",), is_throttled=True)


def profile(trace: str, *bare_ms: float) -> CellProfile:
    figures = analyse(*read_chrome_trace(str(TRACES / f"{trace}.json.gz")))
    bare_ns = tuple(round(time_ms * 1e6) for time_ms in bare_ms)
    repeats = Repeats(0, bare_ns, bare_ns) if bare_ns else None
    return msgspec.structs.replace(figures, repeats=repeats)


def test_the_same_work_in_a_graph_took_less_idle_time() -> None:
    difference = compare(profile("tiny_kernels"), profile("graph_replay"))
    assert difference.sentence.startswith("82 % less time: 1.66 ms instead of 9.23 ms.")
    assert (
        "Most of the change: GPU idle: the host launched (-8.15 ms)"
        in difference.sentence
    )
    assert difference.causes[0].change_ns == pytest.approx(-8_150_000, abs=10_000)
    # both kernels are in both, 400 times each
    assert [(row.before_calls, row.after_calls) for row in difference.kernels] == [
        (400, 400),
        (400, 400),
    ]
    only_before = {row.name: row for row in difference.paths}["aten::add"]
    assert (only_before.before_calls, only_before.after_calls) == (400, None)
    total = sum(row.change_ns for row in difference.causes)
    assert difference.time is not None
    assert total == difference.time.after_ns - difference.time.before_ns
    # one bar fills the width, the other is to the same scale
    lengths = [sum(part.ratio for part in bar.parts) for bar in shown(difference).bars]
    assert lengths == pytest.approx([1.0, 1.66 / 9.23], rel=0.01)
    assert [bar.title[:15] for bar in shown(difference).bars] == [
        "Before: 9.23 ms",
        "After: 1.66 ms,",
    ]


def test_causes_are_called_as_in_a_report() -> None:
    """What is far from a roof is not bound by it."""
    near = profile("matmul_bf16")
    (first, *others) = near.findings
    findings = (msgspec.structs.replace(first, is_far=True), *others)
    far = msgspec.structs.replace(near, findings=findings)
    bars = shown(compare(near, far)).bars
    of_report = [view_of(one, {}).causes[0] for one in (near, far)]
    assert of_report[1].label == "far from the roof"
    assert [bar.parts[0].label for bar in bars] == [
        f"{cause.label} {cause.share}" for cause in of_report
    ]


def test_the_largest_change_comes_first() -> None:
    a = msgspec.structs.replace(
        profile("tiny_kernels"),
        kernels=(KernelRow("x", 1, 5000, 0.5), KernelRow("y", 1, 5000, 0.5)),
    )
    b = msgspec.structs.replace(
        a, kernels=(KernelRow("z", 3, 1000, 0.1), KernelRow("y", 1, 9000, 0.9))
    )
    changes = [(row.name, row.change_ns) for row in compare(a, b).kernels]
    assert changes == [("x", -5000), ("y", 4000), ("z", 1000)]


def test_what_explains_little_is_not_called_the_most_of_it() -> None:
    a = msgspec.structs.replace(profile("tiny_kernels"), metrics=None, launches=None)
    row = a.operators[0]
    less = msgspec.structs.replace(row, self_ns=row.self_ns - 1000)
    assert a.work is not None
    work = msgspec.structs.replace(a.work, time_ns=a.work.time_ns // 4)
    b = msgspec.structs.replace(
        a, launches=None, work=work, operators=(less, *a.operators[1:])
    )
    difference = compare(a, b)
    assert difference.verdict == "less time" and "Most" not in difference.sentence


def test_a_profile_against_itself_is_the_same() -> None:
    difference = compare(profile("train_fp32"), profile("train_fp32"))
    assert difference.verdict == "about the same"
    assert difference.sentence.startswith("About the same")
    assert difference.cautions == () and difference.likeness.score == 1.0
    assert "Too few runs" in difference.notes[0]
    assert {row.change_ns for row in difference.kernels} == {0}


def test_repeats_tell_a_change_from_chance() -> None:
    slow = profile("tiny_kernels", 2.0, 2.1, 2.2, 2.3, 2.15)
    fast = profile("tiny_kernels", 1.0, 1.1, 1.2, 1.3, 1.15)
    difference = compare(slow, fast)
    assert difference.sentence.startswith("47 % less time: 1.15 ms instead of 2.15 ms")
    assert "5 runs against 5: the change is -5" in difference.notes[0]
    noisy = profile("tiny_kernels", 1.0, 9.0, 2.0, 2.4, 2.2)
    assert compare(slow, noisy).verdict == "unknown"


def test_what_is_not_proven_different_is_not_called_the_same() -> None:
    noisy = profile("tiny_kernels", 40.0, 60.0, 9.0, 46.0, 50.0)
    difference = compare(noisy, profile("tiny_kernels", 10.0, 55.0, 10.7, 44.0, 9.0))
    assert difference.sentence == "Within noise: 10.7 ms instead of 46.0 ms."
    steady = profile("tiny_kernels", 2.0, 2.01, 2.02, 1.99, 2.0)
    difference = compare(steady, profile("tiny_kernels", 2.01, 2.0, 2.02, 2.0, 1.98))
    assert difference.sentence == "About the same: 2.00 ms instead of 2.00 ms."


def test_three_runs_of_each_are_too_few() -> None:
    difference = compare(
        profile("tiny_kernels", 1.0, 1.1, 1.2), profile("tiny_kernels", 2.0, 2.1, 2.2)
    )
    assert difference.time is not None and difference.time.basis == "window"
    assert "repeat both with -r 5" in difference.notes[0]


def test_a_throttled_run_is_no_regression() -> None:
    a, b = profile("tiny_kernels", *[1.0, 1.1] * 3), profile("tiny_kernels", *[2.0] * 6)
    difference = compare(a, b, (COOL, HOT))
    assert difference.cautions == (
        (
            "The GPU itself ran slower (thermal slowdown): the code may not have "
            "changed in speed."
        ),
    )
    assert "88 °C, 45; SM clock 1,200 MHz, 1,980" in difference.notes[1]
    lower = Clocks(1500.0, 50.0, ("power cap",), is_throttled=False)
    (caution,) = compare(a, b, (COOL, lower)).cautions
    assert "SM clock 1,500 instead of 1,980 MHz" in caution
    assert compare(a, b, (COOL, COOL)).cautions == ()
    assert compare(b, a, (COOL, HOT)).cautions == ()
    (caution,) = compare(b, a, (HOT, COOL)).cautions
    assert "ran faster" in caution


def test_unknown_clocks_are_said() -> None:
    difference = compare(profile("tiny_kernels"), profile("graph_replay"), (COOL, None))
    assert "did not read the GPUs during both runs" in difference.notes[1]
    assert not any("The GPU itself" in caution for caution in difference.cautions)
    half = Clocks(None, 40.0, (), is_throttled=False)
    difference = compare(profile("tiny_kernels"), profile("graph_replay"), (COOL, half))
    assert "40 °C, 45;" in difference.notes[1] and "MHz" not in difference.notes[1]


def test_clocks_are_those_of_the_gpus_that_worked() -> None:
    def span(device: str, mhz: float | None, *conditions: Condition) -> DeviceSpan:
        metric = MetricSpan(mhz, mhz, mhz, 1.0)
        return DeviceSpan(device, {"sm_clock_mhz": metric}, None, None, conditions)

    hot = Condition("thermal slowdown", "warning", 0.5, "hot")
    spans = [span("gpu:a", 1900.0), span("gpu:b", 1200.0, hot), span("gpu:c", None)]
    assert clocks_of(spans, ["gpu:a"]) == Clocks(1900.0, None, (), is_throttled=False)
    both = clocks_of(spans, ["gpu:a", "gpu:b"])
    assert both == Clocks(1200.0, None, ("thermal slowdown",), is_throttled=True)
    assert clocks_of(spans, ["gpu:c"]) is clocks_of(spans, []) is None
