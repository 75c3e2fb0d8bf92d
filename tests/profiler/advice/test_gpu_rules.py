"""Rules about launches and streams: what they fire on, and what comes true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.profiler.advice.programs import Written
from tests.profiler.replay.exam import TIMES_MS, TRACES, read, times
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import analyse


def of_exam(name: str, is_measured: bool) -> dict[str, Change]:
    events, run = read(name)
    if is_measured:
        run = replace(run, bare=times(name))
    return {change.name: change for change in analyse(events, run).changes}


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize(
    ("cell", "name"),
    [("resnet18_one_image", "cuda-graph"), ("wait_on_side_stream", "one-stream")],
)
def test_the_range_holds_what_the_change_gave(
    cell: str, name: str, is_measured: bool
) -> None:
    change = of_exam(cell, is_measured)[name]
    fixed_ns = TIMES_MS[cell]["fixed"][0] * 1e6
    assert change.basis == "predicted"
    assert change.low_ns is not None
    assert change.time_ns is not None
    assert change.high_ns is not None
    assert change.low_ns <= fixed_ns <= change.high_ns
    assert 0.8 <= change.time_ns / fixed_ns <= 1.25


def test_the_change_that_is_meant_comes_first() -> None:
    assert next(iter(of_exam("resnet18_one_image", True))) == "cuda-graph"
    assert next(iter(of_exam("wait_on_side_stream", True))) == "one-stream"


def test_what_is_a_graph_or_busy_gets_none() -> None:
    fired = {
        path.name.removesuffix(".json.gz")
        for path in TRACES
        if any(
            change.name == "cuda-graph"
            for change in analyse(*read_chrome_trace(str(path))).changes
        )
    }
    assert fired == {
        "loss_item_each_step",
        "resnet18_one_image",
        "tiny_kernels",
        "wait_on_side_stream",
    }


def test_a_loop_that_reads_is_not_promised() -> None:
    """The host waits for each result, so a graph holds only what is between."""
    change = of_exam("loss_item_each_step", True)["cuda-graph"]
    assert (change.basis, change.high_ns) == ("not below", None)
    assert "reads" in change.reason


def launched(steps: int, kernels: int = 20, time_us: float = 3.0) -> Written:
    program = Written()
    for _ in range(steps):
        for number in range(kernels):
            program.does("aten::mul", f"void at::native::kernel<{number}>", time_us)
            program.host(10.0)
    return program


def test_short_kernels_one_by_one_become_a_graph() -> None:
    change = launched(10).changes()["cuda-graph"]
    assert change.basis == "predicted"
    # 200 kernels of 3 µs, and up to 1 µs between two
    assert change.low_ns is not None
    assert change.high_ns is not None
    assert 600_000 <= change.low_ns * 1.1
    assert change.high_ns <= 1_200_000
    assert "the same 20" in change.evidence


def test_a_long_loop_launches_a_graph_in_each_turn() -> None:
    """What comes once before it does not hide its turns."""
    program = Written()
    program.does("aten::clone", "void at::native::copy", 3.0)
    for _ in range(200):
        for number in range(10):
            program.does("aten::mul", f"void at::native::kernel<{number}>", 3.0)
    change = program.changes()["cuda-graph"]
    assert "the same 10" in change.evidence
    assert change.time_ns is not None
    # 2,000 kernels with 160 ns between two, and 1.3 µs between two graphs; and first
    # calls, which a measured time of the host's has in all of them
    least_ns = 2_001 * 3_160 + 200 * 1_100
    assert change.time_ns == pytest.approx(least_ns + 490_000, rel=0.03)


@pytest.mark.parametrize(
    "program",
    [
        # kernels that are longer than their launches, and few kernels
        launched(10, time_us=40.0),
        launched(1),
    ],
)
def test_a_graph_is_not_for_everything(program: Written) -> None:
    assert "cuda-graph" not in program.changes()


def test_sizes_that_only_the_gpu_knows_are_in_no_graph() -> None:
    program = launched(10)
    program.does("aten::nonzero", "void at::native::kernel<20>", 3.0)
    assert "cuda-graph" not in program.changes()


def test_what_gpus_say_to_one_another_is_in_no_promise() -> None:
    program = launched(10)
    program.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 20.0)
    assert "cuda-graph" not in program.changes()


def test_what_is_set_up_once_stays() -> None:
    """Modules that are loaded, and memory that is taken, take as long with a graph."""
    program = launched(5)
    for number in range(5):
        program.call("cudaMalloc", 3_000.0)
        program.launch(f"k{number}", 3.0, cost_us=5_000.0)
    change = program.changes().get("cuda-graph")
    assert change is None or (change.low_ns or 0) >= 35_000_000


def test_work_of_the_host_stays_beside_a_graph() -> None:
    program = Written()
    for _ in range(10):
        for number in range(20):
            program.does("aten::mul", f"void at::native::kernel<{number}>", 3.0)
            program.host(10.0)
        program.host(2_000.0)
    change = program.changes()["cuda-graph"]
    assert change.low_ns is not None
    assert change.low_ns >= 17_000_000


def test_waits_stay_beside_a_graph() -> None:
    program = launched(0)
    for _ in range(10):
        for number in range(20):
            program.does("aten::mul", f"void at::native::kernel<{number}>", 3.0)
        program.read()
    change = program.changes()["cuda-graph"]
    assert change.basis == "not below"
    assert change.low_ns is not None
    assert change.low_ns >= 200 * 3_000


@pytest.mark.parametrize("pause_us", [200.0, 5_000.0])
def test_a_graph_is_not_for_launches_that_are_a_small_part(pause_us: float) -> None:
    """As of a model that is fed by a loader in Python: the host's other work stays."""
    program = Written()
    for _ in range(10):
        for number in range(8):
            program.does("aten::mul", f"void at::native::kernel<{number}>", 3.0)
        program.read()
        program.host(pause_us)
    assert ("cuda-graph" in program.changes()) == (pause_us < 1_000)


def alternating(
    time_us: float = 10.0, waits: bool = True, copies: bool = False
) -> Written:
    """Work on two streams in turn, each behind the other's event."""
    program = Written()
    end = 0.0
    for number in range(40):
        stream = 7 + number % 2
        if waits:
            program.call("cudaEventRecordWithFlags")
            program.host(8.0)
            program.call("cudaStreamWaitEvent")
        program.host(8.0)
        is_copy = copies and number % 2
        more = {"cat": "gpu_memcpy", "args": {"bytes": 1 << 20}} if is_copy else {}
        begin = program.now
        program.now += 3
        name = "Memcpy DtoD (Device -> Device)" if is_copy else "nvjet_tst_64x64"
        after = end + 2 if waits else 0.0
        end = program.launch(name, time_us, stream, after=after, **more)[1]
        program.now += 3
        program.operator("aten::copy_" if is_copy else "aten::mm", begin)
    return program


def test_streams_in_turn_are_one() -> None:
    change = alternating(40.0).changes().get("one-stream")
    # the GPU decides, and has as much to do
    assert change is None
    change = alternating(20.0).changes()["one-stream"]
    assert change.basis == "predicted"
    assert change.low_ns is not None
    assert change.time_ns is not None
    assert 800_000 <= change.time_ns <= 950_000
    assert change.evidence.startswith("Work switches between 2 streams 39 times")


@pytest.mark.parametrize(
    "program",
    [
        # nothing waits, so work may overlap; a stream of copies is there to overlap
        alternating(60.0, waits=False),
        alternating(20.0, copies=True),
        launched(10),
    ],
)
def test_streams_that_gain_something_are_left(program: Written) -> None:
    assert "one-stream" not in program.changes()
