"""Which operator and which line of the cell each figure belongs to."""

import dataclasses
import random

import numpy as np
import pytest

from tests.profiler.trace.test_analysis import GPU, Event, columns, kernel, launch
from warpbook_profiler.events.columns import Category
from warpbook_profiler.events.marks import make_marks
from warpbook_profiler.facts.lines import by_line
from warpbook_profiler.facts.paths import Paths
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.memory import highest, memory_use
from warpbook_profiler.verdict.analysis import MAX_ROWS, analyse

THREAD = 5
MARKED = dataclasses.replace(GPU, marks=make_marks([2, 3, 2], [0, 1000, 500_000]))
#: two steps that launch on line 2, a wait in .item() on line 3, work on another thread
STEPS = (
    Event("my step", Category.OPERATOR, 90, 400),
    Event("aten::linear", Category.OPERATOR, 100, 300),
    Event("aten::mm", Category.OPERATOR, 150, 200),
    launch(1, 200),
    kernel(1, 2000),
    Event("aten::item", Category.OPERATOR, 1500, 98_500),
    Event("aten::_local_scalar_dense", Category.OPERATOR, 1600, 98_000),
    Event("cudaStreamSynchronize", Category.API, 2000, 90_000, 2),
    launch(4, 550_000),
    kernel(4, 560_000),
    # autograd's thread works while the main thread is on line 2 again
    Event("AddBackward0", Category.OPERATOR, 600_000, 900, track=9),
    Event("cudaLaunchKernel", Category.API, 600_100, 10, 3, track=9),
    kernel(3, 600_200),
)


def test_gpu_work_is_told_by_the_path_of_its_operators() -> None:
    cell_profile = analyse(columns(STEPS), GPU)
    assert {(row.path, row.calls) for row in cell_profile.paths} == {
        ("my step > aten::linear > aten::mm", 1),
        ("AddBackward0", 1),
        ("(no operator)", 1),
    }
    assert sum(row.time_ns for row in cell_profile.paths) == cell_profile.kernel_time_ns


def test_a_launch_after_an_inner_operator_is_the_outer_ones() -> None:
    cell_profile = analyse(
        columns([*STEPS[1:3], launch(1, 360), kernel(1, 900), launch(2, 500)]), GPU
    )
    assert [row.path for row in cell_profile.paths] == ["aten::linear"]
    alone = analyse(columns([*STEPS[1:3], launch(1, 500), kernel(1, 900)]), GPU)
    assert [row.path for row in alone.paths] == ["(no operator)"]


def test_many_paths_keep_their_sum() -> None:
    events = [
        event
        for n in range(80)
        for event in (
            Event(f"op {n}", Category.OPERATOR, n * 1000, 100),
            launch(n, n * 1000 + 10),
            kernel(n, n * 1000 + 50),
        )
    ]
    cell_profile = analyse(columns(events), GPU)
    assert len(cell_profile.paths) == MAX_ROWS
    assert sum(row.calls for row in cell_profile.paths) == 80


def test_a_wait_is_told_with_its_operator_and_line() -> None:
    cell_profile = analyse(columns(STEPS), MARKED)
    assert cell_profile.metrics is not None
    (sync,) = cell_profile.metrics.sync_points
    assert (sync.operator, sync.line) == ("aten::item", 3)
    evidence = next(f.evidence for f in cell_profile.findings if f.kind == "sync-bound")
    assert "in aten::item on line 3 (1 call of cudaStreamSynchronize)" in evidence
    unmarked = analyse(columns(STEPS), GPU).metrics
    assert unmarked is not None and unmarked.sync_points[0].line is None


def test_the_lines_share_out_the_window() -> None:
    rows = by_line(Trace(columns(STEPS), MARKED), ["%%gpuprof", "step()", "x" * 999])
    assert [(row.line, row.times) for row in rows] == [(2, 2), (3, 1)]
    assert rows[0].code == "step()" and len(rows[1].code) == 120
    assert [row.host_ns for row in rows] == [501_000, 499_000]
    # the kernel that ran during line 3 was launched on line 2
    assert [(row.kernels, row.kernel_ns) for row in rows] == [(3, 300), (0, 0)]
    assert [row.wait_ns for row in rows] == [0, 90_000]
    assert sum(row.idle_ns or 0 for row in rows) == 1_000_000 - 300


def test_the_profilers_own_time_is_no_lines_idle_time() -> None:
    overhead = Event("Activity Buffer Request", Category.OVERHEAD, 200_000, 100_000)
    rows = by_line(Trace(columns([*STEPS, overhead]), MARKED), [])
    assert sum(row.idle_ns or 0 for row in rows) == 900_000 - 300


def test_without_a_gpu_a_line_has_only_its_time() -> None:
    run = dataclasses.replace(MARKED, gpu_name=None, cuda_used=False)
    row = by_line(Trace(columns(STEPS[:3]), run), [])[0]
    assert row.host_ns == 501_000 and row.code == ""
    assert row.kernels is row.kernel_ns is row.wait_ns is row.idle_ns is None


def counts(allocated: int, peak: int, reserved: int, **more: int) -> dict[str, int]:
    return {
        "allocated_bytes.all.current": allocated,
        "allocated_bytes.all.peak": peak,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": reserved,
        "inactive_split_bytes.all.current": 0,
        "num_alloc_retries": 0,
        "num_device_alloc": 1,
        "num_device_free": 0,
        **more,
    }


def test_a_peak_below_the_processs_is_known_from_allocations_only() -> None:
    before, after = [counts(100, 900, 1000)], [counts(150, 900, 1000)]
    (blind,) = memory_use(before, after, None)
    assert blind.peak_allocated_bytes is None
    # nothing was given back to the driver, so what is reserved only grew
    assert blind.peak_reserved_bytes == 1000
    (known,) = memory_use(before, after, {0: 400})
    assert known.peak_allocated_bytes == 400
    assert known.allocated_change_bytes == 50
    (risen,) = memory_use(before, [counts(150, 950, 1000)], None)
    assert risen.peak_allocated_bytes == 950


def test_memory_of_each_gpu_with_fragmentation_and_retries() -> None:
    idle = counts(0, 0, 0)
    after = counts(
        100,
        500,
        1000,
        **{"inactive_split_bytes.all.current": 250},
        num_alloc_retries=2,
        num_device_alloc=4,
        num_device_free=1,
    )
    (only,) = memory_use([idle, idle], [idle, after], None)
    assert (only.device, only.fragmentation_share, only.retries) == (1, 0.25, 2)
    assert only.driver_allocations == 3
    older = {
        name: value for name, value in after.items() if "num_device" not in name
    } | {"segment.all.allocated": 6, "segment.all.freed": 2}
    (only,) = memory_use([idle], [older], None)
    assert only.driver_allocations == 6
    # CUDA was set up by the run itself
    assert memory_use([], [after], None)[0].allocated_change_bytes == 100
    assert (highest([3, 5]), highest([3, None]), highest([])) == (5, None, None)


def test_a_wait_before_a_backward_pass_is_still_a_wait() -> None:
    """Autograd launches on a thread of its own, which did not wait."""
    backward = [dataclasses.replace(step) for step in STEPS[-3:]]
    for event in backward:
        # 10 µs after the wait; half a millisecond later it would be Python's doing
        event.start_ns -= 498_000
    run = dataclasses.replace(MARKED, code_end_ns=110_000, end_ns=110_000)
    cell_profile = analyse(columns([*STEPS[:8], *backward]), run)
    assert (
        cell_profile.verdict is not None and cell_profile.verdict.kind == "sync-bound"
    )
    assert "in aten::item on line 3" in cell_profile.verdict.sentence


def test_slow_launches_are_told_with_their_operator_and_line() -> None:
    marks = make_marks([2, 3], [0, 100])
    steps = [
        event
        for n in range(10)
        for event in (
            Event("aten::add", Category.OPERATOR, 1000 + n * 90_000, 80_000),
            launch(n, 2000 + n * 90_000),
            kernel(n, 3000 + n * 90_000),
        )
    ]
    run = dataclasses.replace(GPU, marks=marks)
    cell_profile = analyse(columns(steps), run)
    assert (
        cell_profile.verdict is not None and cell_profile.verdict.kind == "launch-bound"
    )
    assert "a launch, mostly in aten::add on line 3." in cell_profile.verdict.sentence
    assert cell_profile.metrics is not None
    (place, *_) = cell_profile.metrics.idle_places
    assert (place.cause, place.operator, place.line) == ("launching", "aten::add", 3)


def test_python_that_holds_the_gpu_up_is_told_with_its_line() -> None:
    marks = make_marks([2, 3], [0, 3000])
    events = [launch(1, 1000), kernel(1, 2000), launch(2, 900_000), kernel(2, 901_000)]
    bare = BareTimes(1, 1_000_000, 1_000_000, 1_000_000, "executions")
    run = dataclasses.replace(GPU, marks=marks, bare=bare)
    cell_profile = analyse(columns(events), run)
    assert (
        cell_profile.verdict is not None and cell_profile.verdict.kind == "host-bound"
    )
    assert "in Python or other code (998 µs), mostly on line 3." in (
        cell_profile.verdict.sentence
    )


def nested(draw: random.Random, start: int, end: int, depth: int) -> list[Event]:
    """Operators within a span that enclose one another, with gaps between."""
    events, at = [], start
    while depth and at < end - 10:
        begin = draw.randint(at, end - 5)
        stop = draw.randint(begin + 1, end)
        name = draw.choice("abc")
        events.append(Event(name, Category.OPERATOR, begin, stop - begin, track=THREAD))
        events += nested(draw, begin, stop, depth - 1)
        at = stop + draw.randint(0, 20)
    return events


@pytest.mark.parametrize("seed", range(8))
def test_paths_agree_with_a_search_through_all_operators(seed: int) -> None:
    draw = random.Random(seed)
    events = columns(nested(draw, 0, 3000, 4))
    paths = Paths(events)
    moments = np.array(sorted(draw.sample(range(3100), 400)), np.int64)
    paths_found = paths.at(np.full(len(moments), THREAD), moments)
    for moment, path in zip(moments, paths_found, strict=True):
        # by start, a longer one before those within it
        over = (events.start_ns <= moment) & (events.end_ns > moment)
        names = tuple(events.names[at] for at in events.name[over])
        if moment not in set(events.end_ns.tolist()):
            assert paths.names(int(path)) == names
    other = paths.at(np.array([99]), np.array([10]))
    assert other.tolist() == [-1]
