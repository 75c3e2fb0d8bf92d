"""Which accesses are told to have no order, and which are not."""

from __future__ import annotations

import numpy as np

from tests.labs.simulated.judging.writing import Writer, columns, kinds, numbers, rows

N = 64


def two_streams(is_ordered: bool) -> Writer:
    """One stream doubles, another adds."""
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    middle = w.new(N)
    w.launch("add", [x, x], [middle], stream=1)
    if is_ordered:
        w.then(1, 2)
    w.launch("add", [middle, x], [out], stream=2)
    return w


def test_a_missing_wait_is_a_race_with_both_lines() -> None:
    judged = two_streams(is_ordered=False).judged({"x": numbers(N)})
    (finding,) = judged.findings
    assert (finding.kind, finding.line) == ("race", 3)
    assert "Line 3" in finding.message
    assert "line 2" in finding.message
    assert "stream 2" in finding.message


def test_a_stream_that_waits_for_an_event_has_no_race() -> None:
    x = numbers(N)
    judged = two_streams(is_ordered=True).judged({"x": x})
    assert kinds(judged) == []
    np.testing.assert_array_equal(judged.outputs[0]["out"], 3 * x)


def test_an_event_that_is_recorded_too_early_orders_nothing() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    w.record(7, stream=1)
    w.launch("copy", [x], [out], stream=1)
    w.wait(7, stream=2)
    w.launch("add", [x, out], [out], stream=2)
    assert kinds(w.judged({"x": numbers(N)})) == ["race"]


def test_an_event_that_was_never_recorded_makes_nobody_wait() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    w.launch("copy", [x], [out], stream=1)
    w.wait(7, stream=2)
    w.launch("add", [x, out], [out], stream=2)
    assert kinds(w.judged({"x": numbers(N)})) == ["race"]


def test_an_event_counts_as_it_was_last_recorded_before_the_wait() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    w.record(7, stream=1)
    w.launch("copy", [x], [out], stream=1)
    w.record(7, stream=1)
    w.wait(7, stream=2)
    w.launch("add", [x, out], [out], stream=2)
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_waits_go_through_streams_and_the_host() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    w.launch("copy", [x], [out], stream=1)
    w.then(1, 2)
    w.then(2, 3)
    w.launch("add", [x, out], [out], stream=3)
    w.synchronize("stream", 3)
    w.launch("add", [x, out], [out], stream=0)
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_the_default_stream_does_not_wait_for_others() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    w.launch("copy", [x], [out], stream=1)
    w.launch("add", [x, out], [out])
    assert kinds(w.judged({"x": numbers(N)})) == ["race"]


def test_the_device_is_idle_between_calls() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    for call in range(2):
        w.call(call)
        w.launch("copy", [x], [out], stream=1 + call)
    assert kinds(w.judged({"x": numbers(N)}, {"x": numbers(N, 1)})) == []


def test_chunks_of_one_buffer_do_not_conflict() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    for chunk in range(4):
        begin, end = 16 * chunk, 16 * chunk + 16
        w.launch("neg", [rows(x, begin, end)], [rows(out, begin, end)], 1 + chunk)
    given = numbers(N)
    judged = w.judged({"x": given})
    assert kinds(judged) == []
    np.testing.assert_array_equal(judged.outputs[0]["out"], -given)


def test_blocks_of_columns_conflict_only_where_they_overlap() -> None:
    for first_end, expected in ((4, []), (5, ["race"])):
        w = Writer(x=((8, 8), "device", "in"), out=((8, 8), "device", "out"))
        x, out = w.views["x"], w.views["out"]
        w.call()
        w.launch("neg", [columns(x, 0, first_end)], [columns(out, 0, first_end)], 1)
        w.launch("neg", [columns(x, 4, 8)], [columns(out, 4, 8)], 2)
        assert kinds(w.judged({"x": numbers(64).reshape(8, 8)})) == expected


def test_a_host_that_reads_a_copy_which_is_under_way_reads_too_early() -> None:
    for is_awaited in (False, True):
        w = Writer(x=(N, "device", "in"), out=(N, "pageable", "out"))
        x, out = w.views["x"], w.views["out"]
        w.call()
        landed = w.new(N, "pinned")
        down = w.copy(x, landed)
        if is_awaited:
            w.synchronize("stream", 0)
        early = w.on_host("copy", [landed], out)
        judged = w.judged({"x": numbers(N)})
        assert kinds(judged) == ([] if is_awaited else ["host read too early"])
        if not is_awaited:
            assert judged.findings[0].line == early
            assert f"line {down}" in judged.findings[0].message


def test_a_copy_that_is_not_asynchronous_is_waited_for() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "pageable", "out"))
    w.call()
    landed = w.new(N, "pinned")
    w.copy(w.views["x"], landed, wait=True)
    w.on_host("copy", [landed], w.views["out"])
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_the_host_does_not_overwrite_what_a_copy_still_reads() -> None:
    for place, expected in (("pinned", ["race"]), ("pageable", [])):
        w = Writer(x=(N, "pageable", "in"), out=(N, "device", "out"))
        w.call()
        stage = w.new(N, place)  # type: ignore[arg-type]
        w.on_host("copy", [w.views["x"]], stage)
        w.copy(stage, w.views["out"])
        w.on_host("neg", [w.views["x"]], stage)
        assert kinds(w.judged({"x": numbers(N)})) == expected


def test_a_pageable_copy_to_the_gpu_orders_no_other_stream() -> None:
    w = Writer(x=(N, "pageable", "in"), out=(N, "device", "out"))
    w.call()
    there = w.new(N)
    w.copy(w.views["x"], there, stream=1)
    w.launch("neg", [there], [w.views["out"]], stream=2)
    assert kinds(w.judged({"x": numbers(N)})) == ["race"]


def test_reading_together_is_no_race() -> None:
    w = Writer(x=(N, "device", "in"), out=((2, N), "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    for stream in range(2):
        row = rows(out, stream, stream + 1)
        seen = type(x)(x.storage, x.dtype, (1, N), (N, 1))
        w.launch("neg", [seen], [row], stream=stream)
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_what_nobody_wrote_is_told_where_it_is_used_or_given_back() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    empty = w.new(N)
    w.launch("copy", [rows(x, 0, 8)], [rows(empty, 0, 8)])
    w.launch("copy", [rows(empty, 0, 16)], [rows(out, 0, 16)])
    judged = w.judged({"x": numbers(N)})
    assert judged.unwritten == ({"out": 8},)
    [copied] = judged.findings
    w.launch("neg", [empty], [out])
    judged = w.judged({"x": numbers(N)})
    [computed] = judged.findings
    assert {copied.kind, computed.kind} == {"uninitialised read"}
    assert (copied.line, computed.line) == (3, 4)
    assert judged.unwritten == ({},)


def test_what_nobody_wrote_and_nobody_needs_is_no_mistake() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    padded, unused = w.new(2 * N), w.new(N)
    w.launch("neg", [unused], [unused])
    w.call()
    w.launch("copy", [w.views["x"]], [rows(padded, 0, N)])
    w.launch("neg", [padded], [padded])
    w.launch("copy", [rows(padded, 0, N)], [w.views["out"]])
    assert kinds(w.judged({"x": numbers(N)})) == []
    used = w.launch("copy", [rows(padded, N, 2 * N)], [w.views["out"]])
    judged = w.judged({"x": numbers(N)})
    assert kinds(judged) == ["uninitialised read"]
    assert judged.findings[0].line != used


def test_looking_at_what_nobody_wrote_is_told() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    w.launch("copy", [w.views["x"]], [w.views["out"]])
    looked = w.read(w.new(1, "pageable"))
    (finding,) = w.judged({"x": numbers(N)}).findings
    assert (finding.kind, finding.line) == ("uninitialised read", looked)


def test_outputs_hold_nothing_of_the_call_before() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call(0)
    w.launch("copy", [w.views["x"]], [w.views["out"]])
    w.call(1)
    judged = w.judged({"x": numbers(N)}, {"x": numbers(N, 1)})
    assert judged.unwritten == ({}, {"out": 0})


def test_an_input_is_not_to_be_written() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    w.launch("neg", [w.views["x"]], [w.views["x"]])
    w.launch("copy", [w.views["x"]], [w.views["out"]])
    (finding,) = w.judged({"x": numbers(N)}).findings
    assert finding.kind == "read-only"
    assert "`x`" in finding.message
