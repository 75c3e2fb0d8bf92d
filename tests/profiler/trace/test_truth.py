"""Every figure against a simulated program that knows the truth, for many mixes."""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import Program, covered, merged, stream_idle
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.verdict.findings import find, judge
from warpbook_profiler.verdict.metrics import measure

MIXES = [
    {},
    {"host_slow": 4.0},
    {"host_slow": 4.0, "sync_every": 0},
    {"communication": 0.4},
    {"sync_every": 3},
    {"communication": 0.0, "sync_every": 0},
    {"steps": 1, "sync_every": 1},
]
CASES = [(seed, mix) for seed in range(5) for mix in MIXES]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Program, Metrics]:
    seed, mix = request.param
    program = Program(seed=seed, **mix)
    return program, measure(
        Trace(*read_chrome_trace(program.write(tmp_path / "t.json")))
    )


def test_every_figure_equals_the_truth(case: tuple[Program, Metrics]) -> None:
    program, metrics = case
    sums, spans = program.sums, program.spans
    everything = [span for spans_of_kind in spans.values() for span in spans_of_kind]
    assert metrics.window_ns == program.window_ns
    assert metrics.gpu_busy_ns == covered(everything)
    starts, ends = zip(*everything, strict=True)
    assert metrics.gpu_span_ns == max(ends) - min(starts)
    assert metrics.compute_ns == covered(spans["compute"])
    assert metrics.communication_ns == covered(spans["communication"])
    assert metrics.copy_ns == covered(spans["copy"])
    compute = merged(spans["compute"])
    both = covered(compute + merged(spans["communication"]), depth=2)
    assert metrics.communication_compute_overlap_ns == both
    assert metrics.exposed_communication_ns == metrics.communication_ns - both
    # kernels that communicate hide copies, too
    kernels = merged(spans["compute"] + spans["communication"])
    copy_both = covered(kernels + merged(spans["copy"]), depth=2)
    assert metrics.copy_compute_overlap_ns == copy_both
    assert metrics.launches == sums["launches"]
    assert metrics.launch.cost_ns == sums["launch_cost_ns"]
    assert metrics.kernels == sums["kernels"]
    assert metrics.kernel_time_ns == sums["kernel_ns"]
    assert metrics.tensor_core_ns == sums["tensor_ns"]
    assert metrics.tensor_core_unknown_ns == 0
    assert metrics.synchronizations == sums["syncs"]
    assert metrics.synchronization_ns == sums["sync_ns"]
    for copy in metrics.copies:
        kind = f"{copy.direction} {copy.host_memory}"
        assert copy.size_bytes == sums[f"{kind} bytes"]
        assert copy.time_ns == sums[f"{kind} ns"]


def test_idle_time_is_split_by_cause_and_sums_up(
    case: tuple[Program, Metrics],
) -> None:
    program, metrics = case
    idle = metrics.idle
    split = idle.host_wait_ns + idle.kernel_wait_ns + idle.other_ns
    assert split == metrics.window_ns - metrics.gpu_busy_ns
    assert idle.host_wait_ns == (
        idle.host_synchronize_ns
        + idle.host_launching_ns
        + idle.host_operator_ns
        + idle.host_api_ns
        + idle.host_python_ns
    )
    by_stream = {stream.stream: stream for stream in metrics.streams}
    for stream, truth in stream_idle(program.works):
        idle_of_stream = by_stream.pop(stream)
        assert idle_of_stream.host_wait_ns == truth["host_wait"]
        assert idle_of_stream.kernel_wait_ns == truth["kernel_wait"]
        assert idle_of_stream.other_ns == truth["other"]
    assert not by_stream


def test_latency_and_queue_delay_are_told_apart(
    case: tuple[Program, Metrics],
) -> None:
    program, metrics = case
    free: dict[int, int] = {}
    latency = queued = 0
    for work in program.works:
        before, returned = free.get(work.stream, 0), work.launch[1]
        if before > returned:
            queued += before - returned
        else:
            latency += work.span[0] - returned
        free[work.stream] = work.span[1]
    assert metrics.launch.latency_ns == latency
    assert metrics.launch.queue_delay_ns == queued


@pytest.mark.parametrize(
    ("mix", "kind"),
    [
        # kernels of 2 µs, which take the host 10 µs to launch
        ({"kernel_scale": 0.02, "sync_every": 0}, "launch-bound"),
        # kernels of 15 µs, and the host waits after each
        ({"kernel_scale": 0.15, "sync_every": 1}, "sync-bound"),
        # copies that no kernel hides
        ({"kernel_scale": 0.02, "copy_bytes": 64 << 20}, "transfer-bound"),
        # one all-reduce after another, and little else
        ({"communication": 0.9, "sync_every": 0}, "communication-bound"),
        # matrix products and pointwise kernels, and nothing in their way
        ({"sync_every": 0}, "compute-bound"),
    ],
)
def test_the_verdict_names_the_cause(
    mix: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    program = Program(seed=1, **{"copy_bytes": 4096, "communication": 0.0, **mix})
    measured = measure(Trace(*read_chrome_trace(program.write(tmp_path / "t.json"))))
    assert judge(measured, find(measured)).kind == kind
