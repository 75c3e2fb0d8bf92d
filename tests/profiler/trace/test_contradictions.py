"""Files with states that can't be, as public bug reports show them, and those that can.

Each was taken as fact once.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import GPU
from tests.profiler.trace.written import call, kernel, trace
from warpbook_profiler.files.chrome import read_chrome_traces
from warpbook_profiler.report.report import TraceReport, report

Event = dict[str, Any]
AMD = {"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "warpSize": 64}


def reports_of(tmp_path: Path, *events: Event, **more: Any) -> list[TraceReport]:
    path = tmp_path / "trace.json"
    path.write_bytes(trace(*events, **more))
    return [report(one.events, one.run) for one in read_chrome_traces(str(path))]


def report_of(tmp_path: Path, *events: Event, **more: Any) -> TraceReport:
    (one,) = reports_of(tmp_path, *events, **more)
    return one


def steps(took_us: float, count: int = 60, **launched: Any) -> list[Event]:
    """Give launches and kernels of a stream, one each 120 µs."""
    events = []
    for at in range(count):
        events.append(call(at + 1, 120.0 * at, **launched))
        events.append(kernel(at + 1, 120.0 * at + 10, dur=took_us))
    return events


def of_process(pid: Any, gpu: Any, events: list[Event], late_us: float) -> list[Event]:
    return [
        {
            **event,
            "pid": gpu if event["cat"] == "kernel" else pid,
            "ts": event["ts"] + late_us,
        }
        for event in events
    ]


def operator(name: str, category: str, at_us: float, took_us: float) -> Event:
    return {
        **{"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1},
        **{"ts": at_us, "dur": took_us, "args": {"External id": 1}},
    }


def warnings(one: TraceReport) -> str:
    return " ".join(one.completeness.warnings)


@pytest.mark.parametrize(
    ("gpu", "launch", "took_us", "contradicts"),
    [
        # ends that come late, on GPUs without an early start of the next kernel
        (AMD, "hipLaunchKernel", 139.0, True),
        ({**GPU, "computeMajor": 8}, "cudaLaunchKernelExC", 125.0, True),
        # Hopper has it for launches that say so
        (GPU, "cudaLaunchKernel", 139.0, True),
        (GPU, "cudaLaunchKernelExC", 139.0, False),
        (GPU, "cuLaunchKernelEx", 139.0, False),
        (AMD, "hipLaunchKernel", 119.0, False),
    ],
)
def test_ends_against_the_order_of_a_stream_conclude_nothing(
    gpu: Event, launch: str, took_us: float, contradicts: bool, tmp_path: Path
) -> None:
    one = report_of(tmp_path, *steps(took_us, name=launch), deviceProperties=[gpu])
    assert ("contradict the order" in one.verdict.sentence) == contradicts
    if contradicts:
        assert one.verdict.kind == "unknown" and not one.findings


def test_branches_of_a_graph_have_no_order(tmp_path: Path) -> None:
    graph = call(5, 0.0, name="cudaGraphLaunch")
    branches = [kernel(5, 10.0 + 3 * at, dur=20.0) for at in range(40)]
    one = report_of(tmp_path, graph, *branches, deviceProperties=[AMD])
    assert "contradict" not in one.verdict.sentence


def test_one_end_that_is_far_too_late_concludes_nothing(tmp_path: Path) -> None:
    events = steps(20.0)
    events[1]["dur"] = 3000.0
    assert "contradict the order" in report_of(tmp_path, *events).verdict.sentence


@pytest.mark.parametrize("wait", ["cudaDeviceSynchronize", "cudaStreamSynchronize"])
@pytest.mark.parametrize("times", [1, 5])
def test_a_wait_for_more_than_was_recorded_concludes_nothing(
    wait: str, times: int, tmp_path: Path
) -> None:
    """A graph with a while node: what it repeats is in no trace."""
    events = []
    for at in range(times):
        begin = 9000.0 * at
        events.append(call(2 * at + 1, begin, name="cudaGraphLaunch"))
        events += [kernel(2 * at + 1, begin + 20 + 10 * i, dur=8.0) for i in range(10)]
        events.append(call(2 * at + 2, begin + 12, name=wait, dur=8000.0))
    one = report_of(tmp_path, *events)
    assert one.verdict.kind == "unknown"
    assert "work is missing" in one.verdict.sentence


def test_gaps_between_small_kernels_are_no_work_that_is_missing(tmp_path: Path) -> None:
    """Launched ahead of the GPU, which takes some µs from one to the next."""
    events = []
    for at in range(400):
        events.append(call(at + 1, 2.0 * at, dur=1.5))
        events.append(kernel(at + 1, 20.0 + 6.0 * at, dur=2.0))
    events.append(call(900, 800.0, name="cudaDeviceSynchronize", dur=1630.0))
    one = report_of(tmp_path, *events)
    assert "work is missing" not in one.verdict.sentence + warnings(one)


def test_work_after_the_host_has_waited_for_it_concludes_nothing(
    tmp_path: Path,
) -> None:
    """The GPU's clock is seconds late."""
    events = steps(20.0)
    for event in events:
        event["ts"] += 5e6 if event["cat"] == "kernel" else 0.0
    waited = call(900, 7300.0, name="cudaDeviceSynchronize", dur=3.0)
    one = report_of(tmp_path, *events, waited)
    assert "after the host had waited for them" in one.verdict.sentence


def test_kernels_without_times_conclude_nothing(tmp_path: Path) -> None:
    """ROCm writes kernels at 0: they do not begin in 1970."""
    events = steps(20.0)
    for event in events:
        event["ts"] += 1.6e15
    for event in events[1:50:2]:
        event |= {"ts": 0, "dur": 0}
    one = report_of(tmp_path, *events, baseTimeNanoseconds=0)
    assert one.verdict.kind == "unknown"
    assert one.metrics.window_ns < 10_000_000
    assert one.completeness.corrupt == 25


@pytest.mark.parametrize(
    ("first", "second"),
    [(("[TP00] 83", "[TP00] 0"), ("[TP01] 84", "[TP01] 0")), (("83_0", 0), ("84_1", 1))]
    + [(("83_0", "0_0"), ("84_1", "0_1")), ((83, 0), (84, 1))],
)
def test_processes_of_a_merged_file_are_judged_apart_or_not_at_all(
    first: tuple[Any, Any], second: tuple[Any, Any], tmp_path: Path
) -> None:
    of_second = steps(30.0)
    of_second.append(operator("second", "user_annotation", -5.0, 7300.0))
    reports = reports_of(
        tmp_path,
        *of_process(*first, [*steps(20.0)], 0.0),
        *of_process(*second, of_second, 200_000.0),
    )
    if len(reports) == 1:
        assert reports[0].verdict.kind == "unknown"
        assert "2 processes (83" in reports[0].verdict.sentence
        return
    one, other = reports
    assert (one.metrics.kernels, one.metrics.gpu_busy_ns) == (60, 60 * 20_000)
    assert (other.metrics.kernels, other.metrics.gpu_busy_ns) == (60, 60 * 30_000)
    assert other.metrics.window_ns < 10_000_000
    assert [(row.work, row.gpu_ns) for row in other.annotations] == [(60, 1_800_000)]
    assert "traces of 2 processes" in warnings(one)


def test_ids_that_are_unique_tell_processes_apart(tmp_path: Path) -> None:
    later = steps(30.0)
    for event in later:
        event["args"] = {
            **event["args"],
            "correlation": event["args"]["correlation"] + 500,
        }
    reports = reports_of(
        tmp_path, *of_process(83, 0, steps(20.0), 0.0), *of_process(84, 0, later, 5.0)
    )
    assert [one.metrics.gpu_busy_ns for one in reports] == [1_200_000, 1_800_000]


@pytest.mark.parametrize("at_us", [-240_000.0, 240_000.0])
def test_what_is_outside_the_recorded_window_is_left_out(
    at_us: float, tmp_path: Path
) -> None:
    strays = [kernel(9000 + at, at_us + 30 * at, dur=20.0) for at in range(60)]
    span = {
        **{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans"},
        **{"tid": "PyTorch Profiler", "ts": -50.0, "dur": 7400.0},
    }
    one = report_of(tmp_path, *strays, *steps(110.0), span)
    assert one.metrics.kernels == 60 and one.metrics.window_ns < 8_000_000
    assert "60 pieces of work on the GPU" in warnings(one)


def test_kernels_from_before_the_first_step_are_left_out(tmp_path: Path) -> None:
    strays = [kernel(9000 + at, -240_000.0 + 30 * at) for at in range(60)]
    step = operator("ProfilerStep#3", "user_annotation", -10.0, 7400.0)
    one = report_of(tmp_path, *strays, *steps(110.0), step)
    assert one.metrics.kernels == 60 and one.metrics.window_ns < 8_000_000
    assert "Outside the recorded window" in warnings(one)


def test_work_without_a_link_is_not_lost(tmp_path: Path) -> None:
    """RCCL's kernels, and all of a file whose calls are linked otherwise."""
    events = steps(110.0)
    for event in events[1:40:2]:
        event["args"] = {**event["args"], "correlation": 0}
    one = report_of(tmp_path, *events)
    assert "was not recorded" not in one.verdict.sentence
    assert "20 kernels have no launch" in warnings(one)


def test_a_drivers_call_within_a_runtimes_is_no_second_launch(tmp_path: Path) -> None:
    events = steps(110.0)
    nested = [
        {**event, "cat": "cuda_driver", "name": "cuLaunchKernel", "ts": event["ts"] + 1}
        | {"dur": 2.0}
        for event in events[::2]
    ]
    one = report_of(tmp_path, *events, *nested)
    assert (one.metrics.launches, one.completeness.matched) == (60, 60)


def test_paths_of_windows_are_read(tmp_path: Path) -> None:
    """torch does not escape them (pytorch#98432)."""
    path = tmp_path / "trace.json"
    named = operator("C__new_Users", "user_annotation", 0.0, 7000.0)
    text = trace(*steps(20.0), named).replace(b"C__new_Users", rb"C:\\new\Users\ui")
    path.write_bytes(text)
    (one,) = read_chrome_traces(str(path))
    assert "C:\\new\\Users\\ui" in one.events.names


def test_a_trace_without_a_host_is_told_what_it_is(tmp_path: Path) -> None:
    kernels = [
        {**kernel(0, 50.0 * at, dur=41.5), "tid": "Stream: 7", "args": {}}
        for at in range(50)
    ]
    for event in kernels:
        event["args"] = {"call_stack": ["ROOT", "matmul"]}
    one = report_of(tmp_path, *kernels)
    assert "Proton" in warnings(one)
    assert {finding.kind for finding in one.findings} == {"unknown"}
