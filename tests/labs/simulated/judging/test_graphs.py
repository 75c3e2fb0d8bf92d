"""Graphs: what is captured, what is replayed, and what goes wrong with them."""

from __future__ import annotations

import numpy as np

from tests.labs.simulated.judging.writing import Writer, kinds, numbers
from warpbook_labs.engines.simulated.program import View

N = 64


def small() -> Writer:
    return Writer(x=(N, "device", "in"), out=(N, "device", "out"))


def test_a_capture_computes_nothing_and_each_replay_does() -> None:
    w = small()
    x, out = w.views["x"], w.views["out"]
    w.capture(0)
    w.launch("neg", [x], [out], stream=1)
    w.captured(0)
    w.call(0)
    w.call(1)
    w.replay(0)
    given = numbers(N), numbers(N, 1)
    judged = w.judged({"x": given[0]}, {"x": given[1]})
    (finding,) = judged.findings
    message = (
        "Line 2 writes `out` in a capture, which runs nothing until it is replayed."
    )
    assert (finding.kind, finding.message) == ("capture", message)
    assert judged.unwritten == ({"out": 0}, {})
    np.testing.assert_array_equal(judged.outputs[1]["out"], -given[1])
    assert judged.counts[1].launches == 0
    assert judged.counts[1].graph_launches == 1


def static_graph() -> tuple[Writer, View, View]:
    w = small()
    static, result = w.new(N), w.new(N)
    w.launch("fill", [], [static], numbers=(0.0,))
    w.synchronize()
    w.capture(0)
    w.launch("neg", [static], [result], stream=1)
    w.captured(0)
    return w, static, result


def test_inputs_that_are_not_copied_in_are_told_as_stale() -> None:
    w, static, result = static_graph()
    for call in range(2):
        w.call(call)
        if call == 0:
            w.launch("copy", [w.views["x"]], [static])
        w.replay(0)
        w.launch("copy", [result], [w.views["out"]])
    judged = w.judged({"x": numbers(N)}, {"x": numbers(N, 1)})
    (finding,) = judged.findings
    assert finding.kind == "stale graph"
    np.testing.assert_array_equal(judged.outputs[1]["out"], judged.outputs[0]["out"])


def test_inputs_that_are_copied_in_are_not() -> None:
    w, static, result = static_graph()
    given = [{"x": numbers(N, seed)} for seed in range(3)]
    for call in range(3):
        w.call(call)
        w.launch("copy", [w.views["x"]], [static])
        w.replay(0)
        w.launch("copy", [result], [w.views["out"]])
    judged = w.judged(*given)
    assert kinds(judged) == []
    for inputs, outputs in zip(given, judged.outputs, strict=True):
        np.testing.assert_array_equal(outputs["out"], -inputs["x"])


def test_a_replay_on_another_stream_than_the_copy_is_a_race() -> None:
    for is_ordered, expected in ((False, ["race"]), (True, [])):
        w, static, result = static_graph()
        w.call(0)
        w.launch("copy", [w.views["x"]], [static], stream=2)
        if is_ordered:
            w.then(2, 3)
        w.replay(0, stream=3)
        w.launch("copy", [result], [w.views["out"]], stream=3)
        assert kinds(w.judged({"x": numbers(N)})) == expected


def forked(joins: bool, order: bool = True) -> Writer:
    """Capture two branches."""
    w = small()
    x, out = w.views["x"], w.views["out"]
    middle = w.new(N)
    w.capture(0, stream=1)
    w.launch("neg", [x], [middle], stream=1)
    w.record(5, stream=1)
    if not order:
        w.launch("neg", [middle], [middle], stream=1)
    w.wait(5, stream=2)
    w.launch("add", [x, middle], [out], stream=2)
    if joins:
        w.then(2, 1, event=6)
    w.captured(0)
    w.call(0)
    w.replay(0)
    return w


def test_a_stream_that_waits_for_the_captured_one_takes_part() -> None:
    judged = forked(joins=True).judged({"x": numbers(N)})
    assert kinds(judged) == []
    np.testing.assert_array_equal(judged.outputs[0]["out"], np.zeros(N))


def test_a_branch_that_is_not_joined_is_told() -> None:
    judged = forked(joins=False).judged({"x": numbers(N)})
    assert kinds(judged) == ["capture"]
    assert "stream 2" in judged.findings[0].message


def test_branches_of_a_graph_race_as_streams_do() -> None:
    judged = forked(joins=True, order=False).judged({"x": numbers(N)})
    assert kinds(judged) == ["race"]


def test_replays_of_one_graph_come_one_after_another() -> None:
    w = small()
    x, out = w.views["x"], w.views["out"]
    w.capture(0, stream=1)
    w.launch("neg", [x], [out], stream=1)
    w.captured(0)
    w.call(0)
    w.replay(0, stream=2)
    w.replay(0, stream=3)
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_what_can_not_be_captured_is_told() -> None:
    w = small()
    x, out = w.views["x"], w.views["out"]
    host = w.new(N, "pageable")
    w.capture(0, stream=1)
    lines = [
        w.synchronize("stream", 1),
        w.read(x, "item", stream=1),
        w.copy(x, host, stream=1),
        w.launch("neg", [x], [out], stream=2),
    ]
    w.captured(0)
    w.call(0)
    judged = w.judged({"x": numbers(N)})
    assert {(finding.kind, finding.line) for finding in judged.findings} >= {
        ("capture", line) for line in lines
    }


def test_an_event_of_before_the_capture_is_no_part_of_it() -> None:
    w = small()
    w.record(5, stream=2)
    w.capture(0, stream=1)
    w.wait(5, stream=1)
    w.launch("neg", [w.views["x"]], [w.views["out"]], stream=1)
    w.captured(0)
    w.call(0)
    w.replay(0)
    assert kinds(w.judged({"x": numbers(N)})) == ["capture"]


def test_memory_that_a_graph_uses_has_to_stay() -> None:
    w, static, result = static_graph()
    w.call(0)
    w.launch("copy", [w.views["x"]], [static])
    w.launch("copy", [w.views["x"]], [w.views["out"]])
    w.release(static)
    w.call(1)
    line = w.replay(0)
    w.launch("copy", [result], [w.views["out"]])
    judged = w.judged({"x": numbers(N)}, {"x": numbers(N, 1)})
    assert ("released too early", line) in {(f.kind, f.line) for f in judged.findings}


def test_memory_of_the_graph_itself_stays() -> None:
    w = small()
    w.capture(0, stream=1)
    temporary = w.new(N, stream=1)
    w.launch("neg", [w.views["x"]], [temporary], stream=1)
    w.launch("neg", [temporary], [w.views["out"]], stream=1)
    w.release(temporary)
    w.captured(0)
    w.call(0)
    w.replay(0)
    given = numbers(N)
    judged = w.judged({"x": given})
    assert kinds(judged) == []
    np.testing.assert_array_equal(judged.outputs[0]["out"], given)


def test_within_a_graph_memory_is_given_out_again_too() -> None:
    w = small()
    x, out = w.views["x"], w.views["out"]
    w.capture(0, stream=1)
    temporary = w.new(N, stream=1)
    w.launch("neg", [x], [temporary], stream=1)
    w.then(1, 2)
    w.launch("neg", [temporary], [out], stream=2)
    w.release(temporary)
    other = w.new(N, stream=1)
    w.launch("fill", [], [other], stream=1, numbers=(1.0,))
    w.then(2, 1)
    w.captured(0)
    w.call(0)
    w.replay(0)
    assert kinds(w.judged({"x": numbers(N)})) == ["released too early"]


def test_a_number_of_the_host_is_captured_as_it_was() -> None:
    w = small()
    one = w.new(1, "pageable")
    w.launch("constant", [], [one], -1, (3.0,))
    spread = View(one.storage, "float32", (N,), (0,))
    w.capture(0, stream=1)
    seen = View(one.storage, "float32", (1,), (1,))
    there = w.new(1, stream=1)
    w.launch("neg", [seen], [there], stream=1)
    wide = View(there.storage, "float32", (N,), (0,))
    w.launch("mul", [w.views["x"], wide], [w.views["out"]], stream=1)
    w.captured(0)
    w.launch("constant", [], [one], -1, (5.0,))
    w.call(0)
    w.replay(0)
    given = numbers(N)
    judged = w.judged({"x": given})
    assert kinds(judged) == []
    np.testing.assert_array_equal(judged.outputs[0]["out"], -3 * given)
    assert spread.storage == one.storage


def test_captures_are_counted_and_take_the_host_time() -> None:
    w = small()
    w.call(0)
    w.capture(0, stream=1)
    for _ in range(50):
        w.launch("neg", [w.views["x"]], [w.views["out"]], stream=1)
    w.captured(0)
    w.replay(0)
    (counts,) = w.judged({"x": numbers(N)}).counts
    assert (counts.captures, counts.graph_launches, counts.launches) == (1, 1, 0)
    assert counts.host_ns >= 50 * 5_000
