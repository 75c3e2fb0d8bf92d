"""Every figure against a simulated program that knows the truth, for many mixes."""

from pathlib import Path
from typing import Any

import pytest

from tests.monitors.trace.simulated import Program, covered, merged, stream_idle
from warpbook_monitors.trace.chrome import read_chrome_trace
from warpbook_monitors.trace.figures import Metrics
from warpbook_monitors.trace.findings import find, judge
from warpbook_monitors.trace.metrics import measure

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
    return program, measure(*read_chrome_trace(program.write(tmp_path / "t.json")))


def test_every_figure_equals_the_truth(case: tuple[Program, Metrics]) -> None:
    program, found = case
    sums, spans = program.sums, program.spans
    everything = [span for each in spans.values() for span in each]
    assert found.window_ns == program.window_ns
    assert found.gpu_busy_ns == covered(everything)
    starts, ends = zip(*everything, strict=True)
    assert found.gpu_span_ns == max(ends) - min(starts)
    assert found.compute_ns == covered(spans["compute"])
    assert found.communication_ns == covered(spans["communication"])
    assert found.copy_ns == covered(spans["copy"])
    compute = merged(spans["compute"])
    both = covered(compute + merged(spans["communication"]), depth=2)
    assert found.communication_compute_overlap_ns == both
    assert found.exposed_communication_ns == found.communication_ns - both
    copy_both = covered(compute + merged(spans["copy"]), depth=2)
    assert found.copy_compute_overlap_ns == copy_both
    assert found.launches == sums["launches"]
    assert found.launch.cost_ns == sums["launch_cost_ns"]
    assert found.kernels == sums["kernels"]
    assert found.kernel_time_ns == sums["kernel_ns"]
    assert found.tensor_core_ns == sums["tensor_ns"]
    assert found.tensor_core_unknown_ns == 0
    assert found.synchronizations == sums["syncs"]
    assert found.synchronization_ns == sums["sync_ns"]
    for each in found.copies:
        kind = f"{each.direction} {each.host_memory}"
        assert each.size_bytes == sums[f"{kind} bytes"]
        assert each.time_ns == sums[f"{kind} ns"]


def test_idle_time_is_split_by_cause_and_sums_up(
    case: tuple[Program, Metrics],
) -> None:
    program, found = case
    idle = found.idle
    split = idle.host_wait_ns + idle.kernel_wait_ns + idle.other_ns
    assert split == found.window_ns - found.gpu_busy_ns
    assert idle.host_wait_ns == (
        idle.host_synchronize_ns
        + idle.host_launching_ns
        + idle.host_operator_ns
        + idle.host_api_ns
        + idle.host_python_ns
    )
    by_stream = {each.stream: each for each in found.streams}
    for stream, truth in stream_idle(program.works):
        told = by_stream.pop(stream)
        assert told.host_wait_ns == truth["host_wait"]
        assert told.kernel_wait_ns == truth["kernel_wait"]
        assert told.other_ns == truth["other"]
    assert not by_stream


def test_latency_and_queue_delay_are_told_apart(
    case: tuple[Program, Metrics],
) -> None:
    program, found = case
    free: dict[int, int] = {}
    latency = queued = 0
    for work in program.works:
        before, returned = free.get(work.stream, 0), work.launch[1]
        if before > returned:
            queued += before - returned
        else:
            latency += work.span[0] - returned
        free[work.stream] = work.span[1]
    assert found.launch.latency_ns == latency
    assert found.launch.queue_delay_ns == queued


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
    found = measure(*read_chrome_trace(program.write(tmp_path / "t.json")))
    assert judge(found, find(found)).kind == kind
