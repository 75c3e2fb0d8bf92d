"""When things happen on the simulated machine, and what is counted."""

from __future__ import annotations

import pytest

from tests.labs.simulated.judging.writing import Writer, kinds, numbers, rows
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.judging.judge import MOST_BARS, NO_BOUND_PERCENT
from warpbook_labs.engines.simulated.judging.timeline import Timeline

#: 16 MiB, which take a link 303 µs
N = 4 << 20


def pipeline(chunks: int, streams: int) -> Writer:
    """Copy in, double, copy out, in chunks on streams in turn."""
    w = Writer(x=(N, "pinned", "in"), out=(N, "pinned", "out"))
    x, out = w.views["x"], w.views["out"]
    there, result = w.new(N), w.new(N)
    w.call()
    size = N // chunks
    for chunk in range(chunks):
        part, stream = (chunk * size, chunk * size + size), 1 + chunk % streams
        w.copy(rows(x, *part), rows(there, *part), stream)
        twice = [rows(there, *part)] * 2
        w.launch("add", twice, [rows(result, *part)], stream)
        w.copy(rows(result, *part), rows(out, *part), stream)
    w.synchronize()
    return w


def test_chunks_on_streams_overlap() -> None:
    given = {"x": numbers(N)}
    serial = pipeline(1, 1).judged(given).counts[0]
    chunked = pipeline(8, 3).judged(given).counts[0]
    link_ns = 4 * N / rates.PINNED_BYTES_PER_S * 1e9
    assert serial.total_ns > 2 * link_ns
    assert serial.percent_of_bound > 200
    assert chunked.total_ns < 1.5 * link_ns
    assert chunked.percent_of_bound < 150
    assert chunked.copies == 16
    assert chunked.h2d_bytes == chunked.d2h_bytes == 4 * N
    assert chunked.pageable_bytes == 0


def test_who_sleeps_beside_them_brings_the_bound_no_nearer() -> None:
    w = pipeline(8, 1)
    w.launch("sleep", [], [], stream=2, numbers=(2e6,))
    counts = w.judged({"x": numbers(N)}).counts[0]
    assert counts.compute_ns > 1_000_000
    assert counts.percent_of_bound > 200


def test_chunks_on_one_stream_do_not() -> None:
    counts = pipeline(8, 1).judged({"x": numbers(N)}).counts[0]
    assert counts.percent_of_bound > 200


def test_a_pageable_copy_makes_the_host_wait_whatever_was_asked() -> None:
    w = Writer(x=(N, "pageable", "in"), out=(N, "device", "out"))
    w.call()
    w.copy(w.views["x"], w.views["out"])
    (counts,) = w.judged({"x": numbers(N)}).counts
    assert counts.synchronizations == 1
    assert counts.pageable_bytes == counts.h2d_bytes == 4 * N
    # it is told from the time that a pinned copy would have taken
    assert counts.percent_of_bound > 300


def test_a_pinned_copy_that_is_asynchronous_does_not() -> None:
    w = Writer(x=(N, "pinned", "in"), out=(N, "device", "out"))
    w.call()
    w.copy(w.views["x"], w.views["out"])
    (counts,) = w.judged({"x": numbers(N)}).counts
    assert counts.synchronizations == 0
    assert counts.host_ns < counts.total_ns


def test_small_kernels_are_bound_by_launches_unless_they_are_a_graph() -> None:
    def counts(is_graph: bool) -> tuple[int, int]:
        w = Writer(x=(64, "device", "in"), out=(64, "device", "out"))
        x, out = w.views["x"], w.views["out"]
        if is_graph:
            w.capture(0)
        else:
            w.call()
        for _ in range(200):
            w.launch("neg", [x], [out], stream=1)
        if is_graph:
            w.captured(0)
            w.call()
            w.replay(0)
        (counts,) = w.judged({"x": numbers(64)}).counts
        return counts.total_ns, counts.launches + counts.graph_launches

    eager_ns, launches = counts(is_graph=False)
    graph_ns, graphs = counts(is_graph=True)
    assert (launches, graphs) == (200, 1)
    assert eager_ns > 3 * graph_ns


def test_a_sleeping_kernel_occupies_its_stream_alone() -> None:
    w = Writer(x=(64, "device", "in"), out=(64, "device", "out"))
    w.call()
    w.launch("sleep", [], [], stream=1, numbers=(1.98e6,))
    w.launch("sleep", [], [], stream=2, numbers=(1.98e6,))
    (counts,) = w.judged({"x": numbers(64)}).counts
    assert 1_000_000 < counts.total_ns < 1_100_000
    # two at the same time, and each counts where it is alone
    assert 1_000_000 <= counts.compute_ns < 1_100_000
    # but added up they are two
    assert counts.kernel_ns == 2_000_000


def test_reading_a_number_of_the_gpu_waits_for_it() -> None:
    w = Writer(x=(64, "device", "in"), out=(64, "device", "out"))
    w.call()
    w.launch("neg", [w.views["x"]], [w.views["out"]])
    w.read(rows(w.views["out"], 0, 1))
    judged = w.judged({"x": numbers(64)})
    assert kinds(judged) == []
    assert judged.counts[0].synchronizations == 1
    assert judged.counts[0].d2h_bytes == 4


def test_work_of_the_processor_alone_has_no_bound() -> None:
    w = Writer(x=(64, "pageable", "in"), out=(64, "pageable", "out"))
    w.call()
    w.on_host("neg", [w.views["x"]], w.views["out"])
    (counts,) = w.judged({"x": numbers(64)}).counts
    assert counts.percent_of_bound == NO_BOUND_PERCENT


def test_only_the_call_itself_is_counted() -> None:
    w = Writer(x=(64, "device", "in"), out=(64, "device", "out"))
    w.new(1 << 20)
    for call in range(2):
        w.call(call)
        w.launch("neg", [w.views["x"]], [w.views["out"]])
    first, second = w.judged({"x": numbers(64)}, {"x": numbers(64)}).counts
    assert first == second
    assert (first.launches, first.device_bytes) == (1, 0)
    assert first.held_bytes == 4 << 20


def test_the_picture_is_bounded_and_in_order() -> None:
    w = Writer(x=(64, "device", "in"), out=(64, "device", "out"))
    w.call()
    for _ in range(1_000):
        w.launch("neg", [w.views["x"]], [w.views["out"]])
        w.launch("sqrt", [w.views["x"]], [w.views["out"]])
    bars = w.judged({"x": numbers(64)}).bars
    assert 2 <= len(bars) <= MOST_BARS
    assert all(bar.begin_ns < bar.end_ns for bar in bars)
    assert [bar.begin_ns for bar in bars] == sorted(bar.begin_ns for bar in bars)
    assert {bar.engine for bar in bars} == {"host", "compute"}


def test_an_engine_takes_what_is_ready_first() -> None:
    timeline = Timeline()
    first = timeline.queue("h2d", "a", 10_000, (), 1, gap_ns=0)
    waits = timeline.queue("compute", "b", 1_000, (first,), 2, gap_ns=0)
    free = timeline.queue("compute", "c", 1_000, (), 3, gap_ns=0)
    assert timeline.finish() == rates.LAUNCH_LATENCY_NS + 11_000
    begins = {bar.label: bar.begin_ns for bar in timeline.bars()}
    assert begins["c"] < begins["b"]
    assert (waits, free) == (1, 2)


@pytest.mark.parametrize("wait", [False, True])
def test_the_host_goes_on_unless_it_waits(wait: bool) -> None:
    timeline = Timeline()
    first = timeline.queue("h2d", "a", 1_000_000, (), 1, gap_ns=0)
    if wait:
        timeline.wait((first,))
    assert (timeline.now_ns >= 1_000_000) == wait
