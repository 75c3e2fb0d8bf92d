"""What a process does once is told apart, and the rest of its trace is judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace


def busy(begin_us: float, count: int = 40, first: int = 1) -> list[dict[str, Any]]:
    """Kernels back to back, which only read and write."""
    name = "void at::native::vectorized_elementwise_kernel<4, add>(int)"
    events = []
    for at in range(count):
        events += [
            call(first + at, begin_us + 6.0 * at),
            kernel(first + at, begin_us + 10 + 101 * at, name=name, dur=100.0),
        ]
    return events


@pytest.mark.parametrize(
    ("first", "said"),
    [
        # CUDA's context, a library that is loaded, a kernel's first launch; HIP's
        ([call(900, 10.0, name="cudaFree", dur=400_000.0)], "cudaFree 400 ms"),
        ([call(900, 10.0, name="cudaMalloc", dur=80_000.0)], "cudaMalloc 80.0 ms"),
        (
            [
                call(900, 10.0, dur=300_000.0),
                kernel(900, 300_020.0, name="void at::native::reduce_kernel<512>"),
            ],
            "first cudaLaunchKernel 300 ms",
        ),
        (
            [
                call(900, 10.0, name="hipMemcpyWithStream", dur=463_000.0),
                {
                    **kernel(900, 463_000.0, name="Memcpy HtoD (Host -> Device)"),
                    "cat": "gpu_memcpy",
                },
            ],
            "first hipMemcpyWithStream 463 ms",
        ),
    ],
)
def test_a_first_call_is_left_out_and_the_rest_is_judged(
    first: list[dict[str, Any]], said: str, tmp_path: Path
) -> None:
    begin = first[0]["ts"] + first[0]["dur"] + 100.0
    trace_report = report_of(tmp_path, trace(*first, *busy(begin)))
    assert trace_report.verdict.kind == "memory-bound"
    assert trace_report.set_up is not None and trace_report.set_up.share > 0.15
    (warning,) = (
        text for text in trace_report.completeness.warnings if "Set-up" in text
    )
    assert said in warning
    # nothing else is lost of it
    assert trace_report.metrics.kernels == 40 + (
        said == "first cudaLaunchKernel 300 ms"
    )
    assert trace_report.metrics.gpu_busy_ns >= 40 * 100_000
    assert trace_report.metrics.window_ns == pytest.approx(
        begin * 1000 + 4_050_000 - trace_report.set_up.time_ns, abs=20_000
    )


@pytest.mark.parametrize(
    ("captures", "replays", "is_set_up"),
    [(1, 0, True), (1, 1, True), (6, 20, True), (6, 6, False)],
)
def test_captures_at_the_beginning_are_set_up_and_those_of_each_replay_are_not(
    captures: int, replays: int, is_set_up: bool, tmp_path: Path
) -> None:
    events = []
    for at in range(captures):
        begin = 30_000.0 * at
        events += [
            call(0, begin, name="cudaStreamBeginCapture"),
            call(0, begin + 9000.0),
            call(0, begin + 20_000.0, name="cudaStreamEndCapture"),
            call(0, begin + 20_010.0, name="cudaGraphInstantiateWithFlags", dur=900.0),
        ]
    over = 30_000.0 * captures
    for at in range(replays):
        graph = call(910 + at, over + 500 * at, name="cudaGraphLaunch")
        events += [graph, kernel(910 + at, over + 10 + 500 * at, dur=480.0)]
    trace_report = report_of(tmp_path, trace(*events, *busy(over + 500 * replays)))
    assert (trace_report.set_up is not None) == is_set_up
    if trace_report.set_up is not None:
        assert trace_report.set_up.parts[0].name == "capture of graphs"
        assert trace_report.set_up.time_ns == pytest.approx(captures * 20.9e6, rel=0.01)


def test_slow_calls_of_each_step_are_no_set_up(tmp_path: Path) -> None:
    """An empty cache makes each step ask for its memory again."""
    events = []
    for step in range(10):
        begin = 30_000.0 * step
        events.append(call(900 + step, begin, name="cudaMalloc", dur=20_000.0))
        events += busy(begin + 20_010, count=10, first=10 * step + 1)
    trace_report = report_of(tmp_path, trace(*events))
    # the first may be, the others are what holds it back
    assert trace_report.verdict.kind == "host-bound"
    assert trace_report.metrics.idle.host_api_ns > 0.6 * trace_report.metrics.window_ns


def test_what_runs_beside_set_up_keeps_its_time(tmp_path: Path) -> None:
    long_call = call(900, 10.0, name="cudaHostAlloc", dur=100_000.0)
    beside = [call(901, 5.0, tid=2), kernel(901, 50.0, dur=60_000.0)]
    trace_report = report_of(tmp_path, trace(long_call, *beside, *busy(100_100.0)))
    assert trace_report.metrics.gpu_busy_ns == 60_000_000 + 40 * 100_000
    assert trace_report.set_up is not None
    assert trace_report.set_up.time_ns == pytest.approx(40e6, rel=0.01)


def test_little_set_up_stays_where_it_is(tmp_path: Path) -> None:
    first = call(900, 10.0, name="cudaMalloc", dur=6000.0)
    trace_report = report_of(tmp_path, trace(first, *busy(6100.0, count=900)))
    assert trace_report.set_up is None
    assert json.loads(json.dumps(trace_report.metrics.window_ns)) > 90_000_000
