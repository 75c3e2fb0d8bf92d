"""What the figures say of traces that no recording of ours holds."""

import dataclasses
from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from warpbook_profiler.events.columns import Category, Columns, interned, make_columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict import lanes
from warpbook_profiler.verdict.analysis import MAX_ROWS, analyse

GPU = Run(0, 1_000_000, 1_000_000, gpu_name="NVIDIA H200", cuda_used=True)
KINDS_ON_GPU = (Category.KERNEL, Category.COPY, Category.MEMSET)


@dataclasses.dataclass
class Event:
    name: str
    category: Category
    start_ns: int
    duration_ns: int
    correlation: int = -1
    track: int = 1
    size_bytes: int = -1


def columns(events: Iterable[Event]) -> Columns:
    listed = list(events)

    def numbers(name: str) -> np.ndarray:
        return np.array([getattr(event, name) for event in listed], np.int64)

    return make_columns(
        names=interned(event.name for event in listed),
        categories=[event.category for event in listed],
        device=np.array(
            [0 if e.category in KINDS_ON_GPU else -1 for e in listed], np.int64
        ),
        **{
            name: numbers(name)
            for name in (
                "start_ns",
                "duration_ns",
                "track",
                "correlation",
                "size_bytes",
            )
        },
    )


def figures(*events: Event, run: Run = GPU) -> CellProfile:
    return analyse(columns(events), run)


def launch(correlation: int, at: int, name: str = "cudaLaunchKernel") -> Event:
    return Event(name, Category.API, at, 10, correlation)


def kernel(correlation: int, at: int, name: str = "k") -> Event:
    return Event(name, Category.KERNEL, at, 100, correlation, track=7)


def only_warning(cell_profile: CellProfile) -> str:
    (warning,) = cell_profile.completeness.warnings
    return warning


def test_launches_without_gpu_activity_are_incomplete_never_idle() -> None:
    cell_profile = figures(launch(1, 0), launch(2, 20))
    assert (
        cell_profile.gpu_busy_ns
        is cell_profile.kernel_time_ns
        is cell_profile.kernel_calls
        is None
    )
    assert (cell_profile.completeness.launches, cell_profile.completeness.matched) == (
        2,
        0,
    )
    assert "does not mean that the GPU was idle" in only_warning(cell_profile)


def test_a_trace_without_even_the_profilers_own_calls_is_incomplete() -> None:
    cell_profile = figures(Event("aten::add", Category.OPERATOR, 0, 10))
    assert cell_profile.gpu_busy_ns is None
    assert (
        cell_profile.launches
        is cell_profile.synchronizations
        is cell_profile.launch_api_ns
        is None
    )
    assert "can't see the GPU" in only_warning(cell_profile)


def test_a_cell_that_leaves_the_gpu_alone_is_idle() -> None:
    own = Event("cudaDeviceSynchronize", Category.API, 1_000_100, 10, 9)
    cell_profile = figures(Event("aten::add", Category.OPERATOR, 0, 10), own)
    assert cell_profile.gpu_busy_ns == 0
    assert (cell_profile.synchronizations, cell_profile.completeness.warnings) == (
        0,
        (),
    )


def test_without_a_gpu_its_figures_are_unknown_and_operators_are_there() -> None:
    run = dataclasses.replace(GPU, gpu_name=None, cuda_used=False)
    cell_profile = figures(Event("aten::add", Category.OPERATOR, 0, 1_000_000), run=run)
    assert (
        cell_profile.gpu_busy_ns
        is cell_profile.kernel_calls
        is cell_profile.copy_time_ns
        is None
    )
    assert [(row.name, row.self_ns) for row in cell_profile.operators] == [
        ("aten::add", 1_000_000)
    ]
    assert cell_profile.completeness.warnings == ()


def test_missing_gpu_records_are_counted() -> None:
    pairs = [e for i in range(10) for e in (launch(i, i), kernel(i, 1000 + i * 100))]
    cell_profile = figures(*pairs, *(launch(i, i) for i in range(10, 15)))
    assert (cell_profile.completeness.launches, cell_profile.completeness.matched) == (
        15,
        10,
    )
    assert "5 of 15 launches is missing" in only_warning(cell_profile)


def test_a_kernel_long_before_its_launch_has_a_wrong_time() -> None:
    cell_profile = figures(launch(1, 500_000), kernel(1, 1000))
    warning = only_warning(cell_profile)
    assert warning.startswith("Kernels or copies that start before the call")
    assert warning.endswith(" are wrong: 1.")
    near = figures(launch(1, 500_000), kernel(1, 496_000))
    assert near.completeness.warnings == ()


def test_launches_noted_into_a_graph_expect_no_work() -> None:
    cell_profile = figures(
        launch(1, 0, "cudaStreamBeginCapture_v10000"),
        launch(2, 20),
        launch(3, 40),
        launch(4, 60, "cudaStreamEndCapture"),
        launch(5, 80, "cudaGraphLaunch"),
        kernel(5, 200),
        kernel(5, 300),
    )
    assert (cell_profile.launches, cell_profile.kernel_calls) == (1, 2)
    assert cell_profile.completeness.warnings == ()


def test_a_copy_to_pageable_memory_is_a_wait() -> None:
    copy = Event("Memcpy DtoH (Device -> Pageable)", Category.COPY, 50, 100, 1, 7, 400)
    cell_profile = figures(
        launch(1, 0, "cudaMemcpyAsync"),
        copy,
        launch(2, 200, "cudaStreamSynchronize"),
        launch(3, 300, "cudaStreamWaitEvent"),
    )
    assert (cell_profile.launches, cell_profile.launch_api_ns) == (1, 0)
    assert (cell_profile.synchronizations, cell_profile.synchronization_ns) == (2, 20)
    assert cell_profile.copies[0].size_bytes == 400


def test_an_unknown_size_stays_unknown() -> None:
    sized = Event("Memset (Device)", Category.MEMSET, 0, 10, 1, 7, 400)
    unsized = Event("Memset (Device)", Category.MEMSET, 20, 10, 2, 7)
    (row,) = figures(sized, unsized).copies
    assert (row.calls, row.size_bytes) == (2, None)


def test_many_kernels_keep_their_sum() -> None:
    cell_profile = figures(*(kernel(i, i * 100, f"k{i}") for i in range(200)))
    assert len(cell_profile.kernels) == MAX_ROWS
    assert cell_profile.kernels[-1].name == "(151 others)"
    assert sum(row.calls for row in cell_profile.kernels) == 200


def test_lanes_are_bounded_and_short_kernels_survive_long_operators() -> None:
    count = 4000
    cell_profile = figures(
        *(kernel(i, i * 200) for i in range(count)),
        *(Event("op", Category.OPERATOR, i * 200, 199) for i in range(count)),
        launch(1, 0),
    )
    drawn = {lane.label: len(lane.starts_ns) for lane in cell_profile.lanes}
    assert sum(drawn.values()) == lanes.MAX_EVENTS
    assert drawn["Launches"] == 1
    assert drawn["Stream 7"] == pytest.approx(drawn["Operators"], abs=1)
    assert cell_profile.completeness.lanes_omitted == 2 * count + 1 - lanes.MAX_EVENTS


def test_threads_beyond_the_lanes_are_counted_as_left_out() -> None:
    cell_profile = figures(
        *(Event("op", Category.OPERATOR, i, 1, track=i) for i in range(100))
    )
    assert len(cell_profile.lanes) == lanes.MAX_LANES
    assert cell_profile.completeness.lanes_omitted == 100 - lanes.MAX_LANES


def test_no_events_at_all() -> None:
    cell_profile = figures(run=dataclasses.replace(GPU, gpu_name=None, cuda_used=False))
    assert (cell_profile.wall_ns, cell_profile.lanes, cell_profile.kernels) == (
        1_000_000,
        (),
        (),
    )


def test_hostile_names_are_bounded_and_can_be_sent() -> None:
    cell_profile = figures(
        kernel(1, 0, "a" * 10_000), kernel(2, 100, "\ud800<script>\x00"), launch(1, 0)
    )
    assert max(map(len, cell_profile.names)) == 1000
    assert (
        msgspec.json.decode(msgspec.json.encode(cell_profile), type=CellProfile)
        == cell_profile
    )


def test_the_order_of_recording_changes_nothing() -> None:
    events = [
        *(e for i in range(20) for e in (launch(i, i * 50), kernel(i, 100 + i * 60))),
        *(Event("op", Category.OPERATOR, i * 50, 40) for i in range(20)),
    ]
    assert figures(*events) == figures(*reversed(events))


def test_a_million_kernels_are_counted_exactly_in_a_small_report() -> None:
    """Of a thousand launches of a graph, as recorded on one stream."""
    graphs, per_graph = 1000, 1000
    count = graphs * per_graph
    at = np.arange(count) * 1500
    begin = at[::per_graph] - 5000
    start_ns = np.concatenate([begin, at])
    is_launch = np.arange(graphs + count) < graphs
    graph = np.arange(graphs)
    events = make_columns(
        names=(("cudaGraphLaunch", "k"), np.where(is_launch, 0, 1).astype(np.int32)),
        categories=np.where(is_launch, Category.API, Category.KERNEL).astype(np.int8),
        start_ns=start_ns,
        duration_ns=np.where(is_launch, 4000, 1000),
        device=np.where(is_launch, -1, 0),
        track=np.where(is_launch, 1, 7),
        correlation=np.concatenate([graph, np.repeat(graph, per_graph)]),
        size_bytes=np.full(graphs + count, -1),
    )
    end_ns = int(events.end_ns.max())
    run = dataclasses.replace(GPU, start_ns=-5000, code_end_ns=end_ns, end_ns=end_ns)
    cell_profile = analyse(events, run)
    assert cell_profile.kernel_calls == count
    assert (cell_profile.completeness.launches, cell_profile.completeness.matched) == (
        graphs,
        graphs,
    )
    assert cell_profile.metrics is not None
    assert cell_profile.metrics.gpu_busy_ns == 1000 * count
    idle = cell_profile.metrics.idle
    assert idle.host_wait_ns + idle.kernel_wait_ns + idle.other_ns == (
        cell_profile.metrics.window_ns - cell_profile.metrics.gpu_busy_ns
    )
    assert len(msgspec.json.encode(cell_profile)) < 1_000_000


@pytest.mark.parametrize(
    ("bare", "words"),
    [
        (BareTimes(3, 644_000_000, 1, 1, "executions"), "without the profiler 644 ms."),
        (None, "with the profiler on 900 ms."),
    ],
)
def test_a_profiler_that_takes_longer_than_the_cell_is_named(
    bare: BareTimes | None, words: str
) -> None:
    span_ns = 900_000_000
    run = Run(0, span_ns, span_ns, profiler_ns=5_690_000_000, bare=bare)
    said = only_warning(figures(run=run))
    assert "reading of events took 5.69 s, the cell" in said and said.endswith(words)
    quick = dataclasses.replace(run, profiler_ns=600_000_000)
    assert not figures(run=quick).completeness.warnings
