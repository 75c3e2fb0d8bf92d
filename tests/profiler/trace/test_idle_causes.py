"""Who is blamed for the GPU's idle time, as an expert would, and in which words."""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import GPU, Program
from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.report.report import TraceReport
from warpbook_profiler.verdict.metrics import measure

Event = dict[str, Any]
#: fills the GPU, and no operator tells what limits it
FULL = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
FULL["shared memory"] = 0


def around(name: str, at: float, dur: float, category: str = "cpu_op") -> Event:
    return call(0, at, cat=category, name=name, dur=dur, args={})


def with_item(work_us: float, then: list[Event], step_us: float) -> list[Event]:
    """Twenty steps, each a kernel, `.item()`, and what the host does then."""
    events = []
    for step in range(20):
        at = step_us * step
        waits = call(1000 + step, at + 22, name="cudaStreamSynchronize", dur=work_us)
        events += [
            call(step, at),
            kernel(step, at + 12, dur=work_us),
            around("aten::item", at + 20, work_us + 5),
            waits,
            *({**event, "ts": at + work_us + 30 + event["ts"]} for event in then),
        ]
    return events


def test_a_slow_loader_is_not_blamed_on_the_wait_before_it(tmp_path: Path) -> None:
    """A step waits 5 ms and loads for 45: without the wait it would still load."""
    loader = around("enumerate(DataLoader)#next", 0, 45_000, "user_annotation")
    step = around("ProfilerStep#1", 0, 1_010_000, "user_annotation")
    events = [step, *with_item(5000, [loader], 50_100)]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.verdict.kind == "host-bound"
    assert "mostly in enumerate(DataLoader)#next." in trace_report.verdict.sentence
    assert (
        "100 ms at best, instead of 945 ms to 1.03 s" in trace_report.verdict.sentence
    )
    # between the end of each kernel and the wait's return
    assert trace_report.metrics.idle.host_synchronize_ns == 20 * 10_000
    assert (
        sum(point.stall_ns for point in trace_report.metrics.sync_points) == 20 * 10_000
    )


def test_a_queue_is_filled_again_on_account_of_the_wait(tmp_path: Path) -> None:
    """Operators of 30 µs after each wait would run beside kernels of 40 without it."""
    trace_report = report_of(tmp_path, trace(*with_item(40, [], 100)), untaxed=True)
    assert trace_report.verdict.kind == "sync-bound"
    # the host waits for 40 of 100 µs: without that it still needs the other 60
    assert trace_report.metrics.idle.host_synchronize_ns > 20 * 50_000
    window_ns = trace_report.metrics.window_ns
    assert trace_report.findings[0].bound_ns == window_ns - 20 * 40_000
    assert trace_report.metrics.idle.host_python_ns == 0


def reads(at: float, number: int, waits: Event) -> list[Event]:
    """A kernel of 2 µs, and a copy to the host, asked for 10 µs after its end."""
    copy = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)"}
    return [
        call(2 * number, at),
        kernel(2 * number, at + 5),
        around("aten::item", at + 8, 30),
        call(2 * number + 1, at + 17, name="cudaMemcpyAsync"),
        kernel(2 * number + 1, at + 23, **copy, args={"bytes": 4}),
        call(5000 + number, at + 22, name="cudaStreamIsCapturing", dur=1.0),
        call(6000 + number, 0, **{"dur": 4.0, **waits, "ts": at + waits["ts"]}),
    ]


def told_of(steps: list[list[Event]], tmp_path: Path) -> TraceReport:
    return report_of(tmp_path, trace(*(event for step in steps for event in step)))


def test_asking_for_a_result_is_a_part_of_waiting_for_it(tmp_path: Path) -> None:
    """A host so slow that the kernel is over before `.item()` asks for its sum."""
    waits = {"name": "cudaStreamSynchronize", "ts": 24}
    trace_report = told_of([reads(40.0 * at, at, waits) for at in range(50)], tmp_path)
    assert trace_report.verdict.kind == "sync-bound"
    # 16 µs before each copy, and 20 from its end to the next kernel
    assert trace_report.metrics.idle.host_synchronize_ns > 50 * 30_000
    assert [point.operator for point in trace_report.metrics.sync_points] == [
        "aten::item"
    ]
    agree(trace_report.metrics)


@pytest.mark.parametrize(
    "other",
    [
        {"name": "cudaEventQuery", "ts": 24},
        # the copy was over before, or goes on: nobody waited for it
        {"name": "cudaEventSynchronize", "ts": 34},
        {"name": "cudaEventSynchronize", "ts": 22, "dur": 1.0},
    ],
)
def test_a_copy_that_nobody_waited_for_is_launched(
    other: Event, tmp_path: Path
) -> None:
    trace_report = told_of([reads(40.0 * at, at, other) for at in range(50)], tmp_path)
    assert trace_report.metrics.idle.host_synchronize_ns == 0
    assert trace_report.verdict.kind == "launch-bound"
    agree(trace_report.metrics)


def test_a_graph_that_ends_with_a_copy_is_launched(tmp_path: Path) -> None:
    """To wait for its result is not why it was launched so late."""
    copy = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)"}
    steps = [
        [
            call(2 * at, 120.0 * at),
            kernel(2 * at, 120.0 * at + 5),
            call(2 * at + 1, 120.0 * at + 90, name="cudaGraphLaunch"),
            kernel(2 * at + 1, 120.0 * at + 97),
            kernel(2 * at + 1, 120.0 * at + 100, **copy, args={"bytes": 4}),
            call(5000 + at, 120.0 * at + 95, name="cudaStreamSynchronize", dur=8.0),
        ]
        for at in range(40)
    ]
    trace_report = told_of(steps, tmp_path)
    assert trace_report.verdict.kind == "launch-bound"
    assert trace_report.metrics.idle.host_launching_ns > 40 * 80_000


def test_memory_taken_between_launches_is_no_launching(tmp_path: Path) -> None:
    events = []
    for at in range(100):
        malloc = call(1000 + at, 90.0 * at + 10, name="cudaMalloc", dur=70.0)
        events += [call(at, 90.0 * at), kernel(at, 90.0 * at + 6, dur=3.0), malloc]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.verdict.kind == "host-bound"
    idle = trace_report.metrics.idle
    assert idle.host_api_ns > idle.host_launching_ns


def test_a_thread_that_waits_is_not_to_blame_for_another_that_launches(
    tmp_path: Path,
) -> None:
    """It returns with the other's last kernel, not before any of its launches."""
    waits = call(9000, 0.0, name="cudaStreamSynchronize", dur=9_000.0)
    events = [waits]
    for at in range(100):
        events += [
            call(at, 10 + 90.0 * at, tid=2),
            kernel(at, 16 + 90.0 * at),
        ]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.verdict.kind == "launch-bound"
    agree(trace_report.metrics)


def cold(first_us: float) -> list[Event]:
    """Eleven products of 2 ms, of which the first has its module loaded."""
    events = [around("aten::mm", 0, first_us + 10)]
    for at in range(11):
        begin = 10 + at * 20 + (first_us if at else 0)
        cost = 4.0 if at else first_us
        start = 10 + first_us + 10 + at * 2010
        events += [call(at, begin, dur=cost), kernel(at, start, dur=2000.0)]
    return events


def test_one_slow_launch_is_set_up(tmp_path: Path) -> None:
    """A CUDA graph would not launch it faster: to run it once before does."""
    trace_report = report_of(tmp_path, trace(*cold(100_000)))
    assert (
        trace_report.set_up is not None and trace_report.set_up.time_ns == 100_000_000
    )
    assert any("warmup=1" in warning for warning in trace_report.completeness.warnings)
    assert trace_report.metrics.idle.host_api_ns <= 20_000


def test_a_slow_launch_after_a_wait_is_not_the_waits(tmp_path: Path) -> None:
    """It would be as slow without: a module is loaded."""
    events = with_item(50, [], 150)
    slow = [call(900, 3000, dur=100_000.0), kernel(900, 103_010)]
    trace_report = report_of(tmp_path, trace(*events, *slow))
    assert trace_report.verdict.kind == "host-bound"
    assert trace_report.metrics.idle.host_api_ns == 100_000_000
    assert trace_report.metrics.idle.host_synchronize_ns < 20 * 100_000


def test_a_single_launch_is_not_one_by_one(tmp_path: Path) -> None:
    """Of a graph of 400 kernels: what else could be launched as one?"""
    graph = call(5, 10.0, name="cudaGraphLaunch", dur=800.0)
    kernels = [kernel(5, 820.0 + 3 * at) for at in range(400)]
    trace_report = report_of(
        tmp_path, trace(around("aten::ones", 0, 5), graph, *kernels)
    )
    assert trace_report.metrics.idle.host_launching_ns == 0
    assert not [
        finding for finding in trace_report.findings if "one by one" in finding.evidence
    ]
    assert trace_report.metrics.idle.host_api_ns >= 800_000


def test_graphs_that_take_long_each_time_are_no_set_up(tmp_path: Path) -> None:
    """Against launches of kernels each is an outlier, and among its own it is none."""
    events = []
    for at in range(40):
        launches = [call(50 * at + n, 1000.0 * at + 10 * n) for n in range(40)]
        kernels = [kernel(50 * at + n, 1000.0 * at + 10 * n + 6) for n in range(40)]
        graph = call(50 * at + 49, 1000.0 * at + 420, name="cudaGraphLaunch", dur=500.0)
        events += [*launches, *kernels, graph, kernel(50 * at + 49, 1000.0 * at + 925)]
    idle = report_of(tmp_path, trace(*events)).metrics.idle
    assert idle.host_api_ns == 0
    assert idle.host_launching_ns > 40 * 500_000


@pytest.mark.parametrize("mix", [{}, {"host_slow": 4.0}, {"sync_every": 3}])
def test_places_add_up_to_the_totals(mix: dict[str, Any], tmp_path: Path) -> None:
    """The figures and the tables are two views of one split."""
    program = Program(seed=2, **mix)
    measured = measure(Trace(*read_chrome_trace(program.write(tmp_path / "t.json"))))
    agree(measured)
    # what comes late after a while in Python spends some time in its launch, too
    late = [call(900, 40_000), kernel(900, 40_010)]
    slow = report_of(tmp_path, trace(*cold(300), *with_item(50, [], 400), *late))
    agree(slow.metrics)


def test_pythons_part_of_a_gap_is_not_the_operators(tmp_path: Path) -> None:
    """One gap of both: the profiler's buffer puts its middle into the operator."""
    events = [
        around("aten::ones", 0, 5),
        # 600 µs of Python
        around("aten::mul", 605, 1500),
        around("Activity Buffer Request", 650, 1400, "overhead"),
        call(1, 2080),
        kernel(1, 2090),
        call(2, 2090),
        kernel(2, 2101),
    ]
    places = report_of(tmp_path, trace(*events)).metrics.idle_places
    spent = {
        place.operator: place.time_ns for place in places if place.cause == "other"
    }
    assert spent[None] == 600_000
    assert spent["aten::mul"] < 100_000


def agree(metrics: Metrics) -> None:
    idle = metrics.idle
    sums = {"launching": 0, "other": 0}
    for place in metrics.idle_places:
        sums[place.cause] += place.time_ns
    assert len(metrics.idle_places) < 5
    assert sums["launching"] == idle.host_launching_ns
    assert sums["other"] == (
        idle.host_operator_ns + idle.host_api_ns + idle.host_python_ns
    )
    stalls = sum(point.stall_ns for point in metrics.sync_points)
    assert stalls == idle.host_synchronize_ns


def queued(wait_us: float) -> list[Event]:
    """Kernels of 100 µs, all launched at the start, that wait before each."""
    launches = [call(at, 5.0 * at) for at in range(20)]
    return launches + [
        kernel(at, 200 + at * (100 + wait_us), dur=100.0, args=FULL) for at in range(20)
    ]


def test_idle_time_with_work_queued_is_told(tmp_path: Path) -> None:
    """Nothing in the trace says what each kernel waits for; that it waits is clear."""
    trace_report = report_of(tmp_path, trace(*queued(800)))
    first = trace_report.findings[0]
    assert trace_report.verdict.kind == first.kind == "unknown"
    assert "its next work was queued" in trace_report.verdict.sentence
    assert "At best" not in trace_report.verdict.sentence
    assert first.explains_ns == pytest.approx(
        trace_report.metrics.idle.other_ns, rel=0.001
    )
    assert trace_report.metrics.idle.other_ns >= 19 * 800_000


def test_the_profilers_own_share_of_other_is_nobodys(tmp_path: Path) -> None:
    """It asks for a buffer between two kernels, and holds the second up."""
    flush = around("Buffer Flush", 310, 780, "overhead")
    events = queued(800)
    trace_report = report_of(tmp_path, trace(*events[:2], *events[20:22], flush))
    assert trace_report.metrics.idle.profiler_ns == 780_000
    [explained] = [
        finding.explains_ns
        for finding in trace_report.findings
        if finding.bound_ns is None
    ]
    assert explained == pytest.approx(
        trace_report.metrics.idle.other_ns - 780_000, rel=0.15
    )


@pytest.mark.parametrize(
    ("gpu", "is_named"),
    [("NVIDIA H200", True), ("Tesla V100-SXM2-16GB", True), ("AMD MI300X", False)],
)
def test_a_makers_tool_is_named_for_its_gpus(
    gpu: str, is_named: bool, tmp_path: Path
) -> None:
    """Stalls are sampled on NVIDIA's GPUs alone."""
    events = queued(1)
    for event in events[20:]:
        # with so much shared memory, a launch says nothing of what limits a kernel
        event["args"] = event["args"] | {"shared memory": 65536}
    trace_report = report_of(
        tmp_path, trace(*events, deviceProperties=[GPU | {"name": gpu}])
    )
    assert "show what limits the kernels" in trace_report.verdict.sentence
    assert ("--stalls" in trace_report.verdict.sentence) == is_named
