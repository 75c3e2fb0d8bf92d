"""What is known about one event of a timeline: its launch, its facts, its line."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.profiler.trace.recorded import BEGIN_NS, NAMES, run_of
from warpbook_profiler.events.columns import (
    Category,
    Columns,
    KernelShape,
    Operands,
    make_columns,
)
from warpbook_profiler.events.marks import make_marks
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.model.timeline_answers import EventFacts
from warpbook_profiler.timeline.timeline import Timeline
from warpbook_profiler.timeline.timeline_body import Body, NotATimeline, pack, unpack

GPU = GpuLimits("NVIDIA H100", (9, 0), 132, 2048, 65536, 233_472)


def recorded() -> Columns:
    category = [
        Category.OPERATOR,
        Category.API,
        Category.KERNEL,
        Category.API,
        Category.COPY,
    ]
    return make_columns(
        names=(NAMES, np.array([2, 3, 0, 3, 1], np.int32)),
        categories=np.array(category, np.int8),
        start_ns=BEGIN_NS + np.array([0, 10, 100, 200, 300], np.int64),
        duration_ns=np.array([50, 20, 80, 20, 30], np.int64),
        device=np.array([-1, -1, 0, -1, 0], np.int64),
        track=np.array([42, 42, 7, 42, 7], np.int64),
        correlation=np.array([-1, 1, 1, 2, 2], np.int64),
        size_bytes=np.array([-1, -1, -1, -1, 4096], np.int64),
        external=np.array([9, 9, 9, -1, -1], np.int64),
        shapes=(
            (KernelShape((264, 1, 1), (1024, 1, 1), 64, 0),),
            np.array([-1, -1, 0, -1, -1], np.int32),
        ),
        operands=(
            (Operands(((64, 128), ()), ("c10::Half", "Scalar")),),
            np.array([0, -1, -1, -1, -1], np.int32),
        ),
    )


def timeline(**run) -> Timeline:
    whole = replace(run_of(1000), gpus=(GPU,), **run)
    return Timeline(unpack(pack(recorded(), whole)))


def row_of(line: Timeline, kind: str) -> int:
    return next(at for at, row in enumerate(line.rows) if row.kind == kind)


def test_a_kernel_tells_its_launch_and_that_of_its_operator() -> None:
    line = timeline()
    kernel = line.details(row_of(line, "gpu"), 100)
    assert kernel is not None
    assert kernel.event.name == "gemm"
    assert kernel.launch is not None
    assert (kernel.launch.name, kernel.launch.start_ns) == ("cudaLaunchKernel", 10)
    assert kernel.facts.grid == (264, 1, 1)
    assert kernel.facts.block == (1024, 1, 1)
    assert kernel.facts.registers_per_thread == 64
    # registers allow one block of 1,024 threads of the 2,048 that fit
    assert kernel.facts.occupancy_ratio == pytest.approx(0.5)
    assert kernel.facts.dims == ((64, 128), ())
    assert kernel.facts.dtypes == ("c10::Half", "Scalar")
    assert kernel.facts.size_bytes is None


def test_a_call_tells_what_it_launched() -> None:
    line = timeline()
    call = line.details(row_of(line, "call"), 200)
    assert call is not None
    assert [event.name for event in call.launched] == ["Memcpy HtoD"]
    assert call.launched_events == 1
    assert call.launch is None
    copy = line.details(call.launched[0].row, 300)
    assert copy is not None
    assert copy.facts == EventFacts(size_bytes=4096)


def test_an_operator_tells_its_operands_and_nothing_of_a_launch() -> None:
    line = timeline()
    details = line.details(row_of(line, "operator"), 0)
    assert details is not None
    assert details.facts.dims == ((64, 128), ())
    assert details.facts.grid is None
    assert details.launched == ()


def test_a_line_is_that_of_the_host_at_the_launch() -> None:
    line = timeline(marks=make_marks([3, 4], [BEGIN_NS + 5, BEGIN_NS + 150]))
    gpu, call = row_of(line, "gpu"), row_of(line, "call")

    def told_line(row: int, start_ns: int) -> int | None:
        details = line.details(row, start_ns)
        assert details is not None
        return details.line

    assert told_line(call, 10) == 3
    assert told_line(gpu, 100) == 3
    assert told_line(gpu, 300) == 4
    assert told_line(row_of(line, "operator"), 0) is None


def test_what_is_no_event_has_no_details() -> None:
    line = timeline()
    assert line.details(row_of(line, "gpu"), 101) is None
    assert line.details(0, 10**9) is None
    assert line.details(99, 100) is None


def test_a_message_of_an_older_kernel_has_events_without_details() -> None:
    decoded = msgspec.msgpack.decode(pack(recorded(), run_of(1000)))
    for new in ("facts", "fact", "launch", "line_starts_ns", "lines"):
        del decoded[new]
    line = Timeline(unpack(msgspec.msgpack.encode(decoded)))
    kernel = line.details(row_of(line, "gpu"), 100)
    assert kernel is not None
    assert (kernel.facts, kernel.launch, kernel.line) == (EventFacts(), None, None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fact": np.array([0], "<i4").tobytes()}, "length"),
        ({"fact": np.array([9] * 5, "<i4").tobytes()}, "detail"),
        ({"launch": np.array([5] * 5, "<i4").tobytes()}, "detail"),
        ({"launch": np.array([-2] * 5, "<i4").tobytes()}, "detail"),
        ({"lines": np.array([1], "<i4").tobytes()}, "lines"),
        ({"facts": (EventFacts(dtypes=("x" * 41,)),) * 3}, "large"),
        ({"facts": (EventFacts(dims=((1,) * 17,)),) * 3}, "large"),
        ({"facts": (EventFacts(size_bytes=2**60),) * 3}, "large"),
    ],
)
def test_details_that_lie_are_refused(change, why) -> None:
    body = msgspec.msgpack.decode(pack(recorded(), run_of(1000)), type=Body)
    lie = msgspec.structs.replace(body, **change)
    with pytest.raises(NotATimeline, match=why):
        unpack(msgspec.msgpack.encode(lie))
