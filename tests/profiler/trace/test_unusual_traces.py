"""Traces unlike the samples: of other programs, streams, threads and GPUs."""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import GPU
from tests.profiler.trace.written import call, kernel, program, report_of, trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.verdict.analysis import analyse


def test_a_graphs_many_kernels_have_one_launch(tmp_path: Path) -> None:
    graph = call(5, 0.0, name="cudaGraphLaunch")
    kernels = [kernel(5, 10.0 + 3 * at) for at in range(800)]
    trace_report = report_of(tmp_path, trace(graph, *kernels))
    whole = trace_report.completeness
    assert (whole.launches, whole.matched, whole.lost) == (1, 1, 0)
    assert trace_report.metrics.kernels == 800
    assert trace_report.metrics.gpu_busy_ns == 800 * 2000
    # only the first was waited for
    assert trace_report.metrics.launch.latency_ns == 6000
    assert trace_report.metrics.idle.kernel_wait_ns == 10_000 + 799 * 1000


def test_launches_too_close_to_starve_the_gpu_still_hold_it_up(tmp_path: Path) -> None:
    """Each is made while the one before runs, and still most of the time is gaps.

    As 1,000 tiny kernels of CuPy on an H200: a launch takes longer to come through than
    the host takes for the next one.
    """
    events = []
    for at in range(1000):
        events += [
            call(at + 1, 8.0 * at, dur=4.0),
            kernel(at + 1, 8.0 * at + 9.0, dur=1.0),
        ]
    trace_report = report_of(tmp_path, trace(*events))
    assert (
        trace_report.metrics.idle.kernel_wait_ns > 0.8 * trace_report.metrics.window_ns
    )
    assert trace_report.verdict.kind == "launch-bound"
    assert (
        "going from one launched kernel or copy to the next (1,000 in all)"
        in trace_report.verdict.sentence
    )


def test_kernels_of_a_microsecond_are_added_up_to_the_nanosecond(
    tmp_path: Path,
) -> None:
    events = []
    for at in range(1000):
        events += [
            call(at + 1, 10.0 * at),
            kernel(at + 1, 10.0 * at + 6.001, dur=1.003),
        ]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.metrics.gpu_busy_ns == 1000 * 1003
    assert trace_report.kernels[0].time_ns == 1_003_000


def test_one_kernel_makes_a_report(tmp_path: Path) -> None:
    trace_report = report_of(tmp_path, trace(call(1, 0.0), kernel(1, 6.0)))
    assert trace_report.metrics.gpu_busy_ns == trace_report.metrics.gpu_span_ns == 2000
    assert trace_report.verdict.kind in ("host-bound", "launch-bound", "mixed")


def test_kernels_of_somebodys_own_that_fill_the_gpu_are_not_judged(
    tmp_path: Path,
) -> None:
    """Full grids back to back, in CUDA C++ or Triton: their limit is in no trace."""
    launch = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
    launch["shared memory"] = 0
    events = []
    for at in range(10):
        events.append(call(at, 10.0 * at))
        events.append(kernel(at, 10.0 + 500 * at, dur=499.0, args=launch))
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.verdict.kind == "unknown"
    assert "show what limits the kernels" in trace_report.verdict.sentence


@pytest.mark.parametrize(
    "events",
    [
        [],
        [call(1, 0.0, name="cudaDeviceSynchronize")],
        [call(1, 0.0, name="aten::add", cat="cpu_op")],
    ],
)
def test_without_work_on_the_gpu_nothing_is_concluded(
    events: list[dict[str, Any]], tmp_path: Path
) -> None:
    idle = {**call(0, 0.0), "cat": "cpu_op", "name": "aten::ones", "args": {}}
    trace_report = report_of(tmp_path, trace(idle, *events))
    assert trace_report.verdict.kind == "unknown"
    assert trace_report.metrics.gpu_busy_ns == trace_report.metrics.kernels == 0
    assert trace_report.metrics.tensor_core_share is None


def test_launches_without_their_work_are_lost_and_conclude_nothing(
    tmp_path: Path,
) -> None:
    events = [call(at, 10.0 * at) for at in range(1, 101)]
    trace_report = report_of(tmp_path, trace(*events, kernel(1, 16.0)))
    assert (trace_report.completeness.launches, trace_report.completeness.lost) == (
        100,
        99,
    )
    assert trace_report.verdict.kind == "unknown"
    assert any(
        "99 of 100 launches" in text for text in trace_report.completeness.warnings
    )


def test_equal_streams_of_two_gpus_are_two_streams(tmp_path: Path) -> None:
    events = []
    for at in range(50):
        for gpu in (0, 1):
            number = 2 * at + gpu + 1
            begin = 20.0 * at + 10 * gpu
            events += [
                call(number, begin),
                kernel(number, begin + 6.0, args={"device": gpu}),
            ]
    trace_report = report_of(
        tmp_path, trace(*events, deviceProperties=[GPU, GPU | {"id": 1}])
    )
    assert trace_report.gpu == "NVIDIA H200, NVIDIA H200"
    assert [
        (stream.device, stream.stream) for stream in trace_report.metrics.streams
    ] == [
        (0, 7),
        (1, 7),
    ]
    for stream in trace_report.metrics.streams:
        # each waits 20 - 2 µs for its next launch
        assert stream.host_wait_ns == 49 * 18_000
    assert trace_report.metrics.launch.latency_ns == 100 * 2000


def test_launches_of_another_thread_count_as_the_first_ones(tmp_path: Path) -> None:
    """Backward passes launch from autograd's thread, while the first one waits."""
    events = []
    for at in range(100):
        thread = 1 if at < 50 else 2
        events += [call(at + 1, 10.0 * at, tid=thread), kernel(at + 1, 10.0 * at + 6)]
    trace_report = report_of(tmp_path, trace(*events), untaxed=True)
    idle = trace_report.metrics.idle
    assert trace_report.completeness.matched == 100
    assert trace_report.verdict.kind == "launch-bound"
    assert idle.host_launching_ns > 0.9 * idle.host_wait_ns


def test_python_within_an_annotation_is_python(tmp_path: Path) -> None:
    """A profiler's schedule puts one around everything, and operators none."""
    step = {"cat": "user_annotation", "name": "ProfilerStep#3", "args": {}}
    events = [
        call(0, 0.0, **step, dur=11_000.0),
        call(1, 5.0),
        kernel(1, 12.0),
        call(0, 4000.0, cat="cpu_op", name="aten::sort", dur=1000.0),
        call(2, 10_000.0),
        kernel(2, 10_006.0),
    ]
    idle = report_of(tmp_path, trace(*events)).metrics.idle
    assert idle.host_operator_ns == 1_000_000
    assert idle.host_python_ns > 8_000_000


def test_calls_of_another_thread_after_the_end_hide_no_wait_of_the_profiler(
    tmp_path: Path,
) -> None:
    events = [
        *program(),
        call(200, 1100.0, name="cudaDeviceSynchronize", dur=5.0),
        call(201, 1110.0, name="cudaDeviceSynchronize", dur=5.0),
        # NCCL's watchdog goes on
        call(202, 1120.0, name="cudaEventQuery", tid=2),
    ]
    assert report_of(tmp_path, trace(*events)).metrics.synchronizations == 0


def test_a_gpu_is_found_by_its_number(tmp_path: Path) -> None:
    shape = {"grid": [1, 1, 1], "block": [1024, 1, 1], "registers per thread": 16}
    events = [call(1, 0.0), kernel(1, 9.0, args={"device": 3, **shape})]
    third = {**GPU, "id": 3, "name": "NVIDIA L4", "numSms": 1}
    trace_report = report_of(tmp_path, trace(*events, deviceProperties=[GPU, third]))
    assert trace_report.gpu == "NVIDIA L4"
    # one block of 1,024 threads on its one multiprocessor, which holds 2,048
    assert trace_report.metrics.occupancy_share == 0.5


def test_a_gpu_without_properties_is_judged_by_its_work(tmp_path: Path) -> None:
    trace_report = report_of(tmp_path, trace(*program(), deviceProperties=[]))
    assert trace_report.gpu == "unnamed GPU"
    assert trace_report.verdict.kind == "launch-bound"


def test_work_of_several_gpus_is_told_to_be_added_up(tmp_path: Path) -> None:
    events = [*program(), call(60, 3000.0), kernel(60, 3006.0, args={"device": 1})]
    trace_report = report_of(
        tmp_path, trace(*events, deviceProperties=[GPU, GPU | {"id": 1}])
    )
    assert any("Work of 2 GPUs" in text for text in trace_report.completeness.warnings)


def test_steps_of_a_schedule_are_added_up(tmp_path: Path) -> None:
    """The profiler numbers its annotations, so each step has another name."""
    events: list[dict[str, Any]] = []
    for step in range(60):
        begin = 200.0 * step
        around = {"cat": "user_annotation", "name": f"ProfilerStep#{step + 3}"}
        within = {"cat": "cpu_op", "name": "aten::item"}
        events += [
            call(0, begin, **around, dur=190.0, args={}),
            call(step, begin + 1),
            kernel(step, begin + 8, dur=50.0),
            call(0, begin + 20, **within, dur=60.0, args={}),
            call(1000 + step, begin + 21, name="cudaStreamSynchronize", dur=40.0),
        ]
    path = tmp_path / "t.json"
    path.write_bytes(trace(*events))
    cell_profile = analyse(*read_chrome_trace(str(path)))
    assert cell_profile.metrics is not None
    (sync,) = cell_profile.metrics.sync_points
    assert (sync.operator, sync.calls) == ("aten::item", 60)
    assert [row.number for row in cell_profile.steps] == list(range(3, 63))
    assert [(row.path, row.calls) for row in cell_profile.paths] == [
        ("ProfilerStep#", 60)
    ]
    assert {row.name: row.calls for row in cell_profile.operators} == {
        "ProfilerStep#": 60,
        "aten::item": 60,
    }


def test_copies_between_gpus_are_communication(tmp_path: Path) -> None:
    """As of a model whose layers are on two GPUs."""
    peer = {"cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "dur": 900.0}
    host = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}
    events = []
    for at in range(1, 20):
        begin = 1000.0 * at
        events += [
            call(3 * at, begin),
            kernel(3 * at, begin + 6, **host),
            call(3 * at + 1, begin + 10),
            kernel(3 * at + 1, begin + 20, **peer),
        ]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.verdict.kind == "communication-bound"
    assert trace_report.metrics.exposed_communication_ns == 19 * 900_000
    assert (
        trace_report.metrics.copy_ns
        == trace_report.metrics.exposed_copy_ns
        == 19 * 2000
    )
    assert {copy.direction for copy in trace_report.metrics.copies} == {"PtoP", "HtoD"}
    explained = {finding.kind: finding.explains_ns for finding in trace_report.findings}
    assert "memory-bound" not in explained


@pytest.mark.parametrize(
    ("sizes", "known"),
    [
        ([2**63 - 1] * 8, None),
        ([2**50 + 1, 512], None),
        ([512, 512], 1024),
        # each could be, and all of them fit no 64 bits
        ([2**50] * 10_000, 10_000 * 2**50),
    ],
)
def test_a_copy_larger_than_any_gpu_has_no_size(
    sizes: list[int], known: int | None, tmp_path: Path
) -> None:
    events = []
    for at, size in enumerate(sizes, start=1):
        copy = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}
        events += [
            call(at, 20.0 * at),
            kernel(at, 20.0 * at + 6, **copy, args={"bytes": size}),
        ]
    trace_report = report_of(tmp_path, trace(*events))
    (total,), (row,) = trace_report.metrics.copies, trace_report.copies
    assert total.size_bytes == row.size_bytes == known
    assert (total.gb_per_s is None) == (known is None)


def test_copies_are_exposed_by_their_own_times(tmp_path: Path) -> None:
    """Those from the host are hidden, and those on the GPU are not."""
    events = []
    for at in range(1, 20):
        begin = 2000.0 * at
        copies = {"cat": "gpu_memcpy", "dur": 900.0}
        to_gpu = {"name": "Memcpy HtoD (Pinned -> Device)", "args": {"stream": 9}}
        on_gpu = {"name": "Memcpy DtoD (Device -> Device)"}
        events += [
            call(3 * at + copy_number, begin + 5 * copy_number)
            for copy_number in range(3)
        ]
        events += [
            kernel(3 * at, begin + 20, **copies, **to_gpu),
            kernel(3 * at + 1, begin + 20, dur=900.0),
            kernel(3 * at + 2, begin + 1000, **copies, **on_gpu),
        ]
    trace_report = report_of(tmp_path, trace(*events), untaxed=True)
    assert trace_report.metrics.exposed_host_copy_ns == 0
    assert trace_report.metrics.exposed_copy_ns == 19 * 900_000
    assert "transfer-bound" not in {finding.kind for finding in trace_report.findings}


def test_work_of_the_host_between_two_waits_is_the_codes(tmp_path: Path) -> None:
    """Torch and Kineto wait one right after the other; the code does other things."""
    wait = {"name": "cudaDeviceSynchronize", "dur": 5.0, "args": {"correlation": 0}}
    operator = {"cat": "cpu_op", "name": "aten::mm", "dur": 100.0, "args": {}}
    start = [call(1, 0.0), kernel(1, 6.0), call(0, 20.0, **wait)]

    def window_ns(*events: dict[str, Any]) -> int:
        return report_of(tmp_path, trace(*start, *events)).metrics.window_ns

    assert window_ns(call(0, 45.0, **wait)) == 20_000
    assert window_ns(call(0, 30.0, **operator), call(0, 150.0, **wait)) == 150_000
    assert window_ns(call(0, 5_000.0, **wait)) == 5_000_000


def test_what_warpbook_set_up_with_is_not_the_cells(tmp_path: Path) -> None:
    """In a file that it saved, as in the recording: one kernel before its mark."""
    mark = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1}
    mark |= {"name": "warpbook: start of the cell", "ts": 10.0, "dur": 1.0}
    waited = call(900, 5.0, name="cudaDeviceSynchronize", dur=2.0)
    events = [call(901, 0.0), kernel(901, 3.0), waited, mark, *program()]
    trace_report = report_of(tmp_path, trace(*events))
    assert trace_report.metrics.launches == trace_report.metrics.kernels == 49
    assert trace_report.metrics.synchronizations == 0
    assert trace_report.metrics.window_ns == 982_000 + 6_000 + 2_000 - 11_000 - 2_000
    empty = report_of(tmp_path, trace(*events[:4]))
    assert (empty.metrics.kernels, empty.metrics.launches) == (0, 0)
