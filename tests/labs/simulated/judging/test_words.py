"""What is said of mistakes: lines that the learner can change, and what to do there."""

from __future__ import annotations

import pytest

from tests.labs.simulated.judging.writing import Writer, kinds, numbers, rows
from warpbook_labs.engines.simulated.judging import accesses
from warpbook_labs.engines.simulated.program import ProgramRefused, View

N = 64


def small() -> Writer:
    return Writer(x=(N, "device", "in"), out=(N, "device", "out"))


def message_of(w: Writer, kind: str = "race") -> str:
    """Give what is said of the only mistake."""
    judged = w.judged({"x": numbers(N)})
    (finding,) = judged.findings
    assert finding.kind == kind
    return finding.message


def graph(w: Writer, number: int, read: View, write: View) -> int:
    """Capture one kernel on stream 5."""
    w.capture(number, stream=5)
    line = w.launch("neg", [read], [write], stream=5)
    w.captured(number)
    return line


# -- a race with a replay


def test_a_replay_that_does_not_wait_is_named_with_its_own_line() -> None:
    w = small()
    static = w.new(N)
    kernel = graph(w, 0, static, w.views["out"])
    w.call()
    copied = w.launch("copy", [w.views["x"]], [static])
    replay = w.replay(0, stream=1)
    assert message_of(w) == (
        f"Line {replay} replays on stream 1 `neg` of line {kernel}, which reads the "
        f"memory of line 1 while `copy` of line {copied} on the default stream may not "
        "yet have written it: let stream 1 wait before the replay for an event that is "
        f"recorded after line {copied}."
    )
    (finding,) = w.judged({"x": numbers(N)}).findings
    assert finding.line == replay


def test_who_does_not_wait_for_a_replay_is_told_its_stream_and_line() -> None:
    w = small()
    result = w.new(N)
    kernel = graph(w, 0, w.views["x"], result)
    w.call()
    replay = w.replay(0, stream=1)
    copied = w.launch("copy", [result], [w.views["out"]])
    assert message_of(w) == (
        f"Line {copied}: `copy` on the default stream reads the memory of line 1, "
        f"which `neg` of line {kernel}, which line {replay} replays on stream 1, may "
        "not yet have written: let the default stream wait for stream 1 after the "
        f"replay of line {replay}."
    )


def test_two_graphs_are_told_by_both_replays() -> None:
    w = small()
    middle = w.new(N)
    graph(w, 0, w.views["x"], middle)
    graph(w, 1, middle, w.views["out"])
    w.call()
    first = w.replay(0, stream=1)
    second = w.replay(1, stream=2)
    message = message_of(w)
    assert message.startswith(f"Line {second} replays on stream 2 `neg` of line ")
    advice = "let stream 2 wait before the replay for stream 1 after the replay of "
    assert message.endswith(f"{advice}line {first}.")


def test_a_host_that_does_not_wait_for_a_replay_is_told() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "pageable", "out"))
    landed = w.new(N, "pinned")
    w.capture(0)
    w.copy(w.views["x"], landed, stream=1)
    w.captured(0)
    w.call()
    replay = w.replay(0, stream=2)
    w.on_host("copy", [landed], w.views["out"])
    message = message_of(w, "host read too early")
    assert f"which line {replay} replays on stream 2, may not yet have" in message
    assert "nobody waits for a replay. Synchronize" in message


def test_branches_of_one_graph_are_told_by_the_lines_of_the_capture() -> None:
    w = small()
    middle = w.new(N)
    w.capture(0, stream=1)
    w.record(5, stream=1)
    written = w.launch("neg", [w.views["x"]], [middle], stream=1)
    w.wait(5, stream=2)
    read = w.launch("neg", [middle], [w.views["out"]], stream=2)
    w.then(2, 1)
    w.captured(0)
    w.call()
    replay = w.replay(0)
    message = message_of(w)
    assert message.startswith(f"Line {read}: `neg` on stream 2 of the graph reads ")
    assert f"line {written}" in message and f"line {replay}" not in message


def test_of_a_stream_that_a_graph_leaves_behind_only_the_capture_is_told() -> None:
    w = small()
    result = w.new(N)
    w.capture(0, stream=1)
    w.then(1, 2)
    w.launch("neg", [w.views["x"]], [result], stream=2)
    w.captured(0)
    w.call()
    w.replay(0)
    w.launch("copy", [result], [w.views["out"]])
    assert "stream of the capture does not wait for it" in message_of(w, "capture")


# -- waits that change nothing


@pytest.mark.parametrize("is_side", [True, False])
def test_a_stream_that_waits_for_itself_is_told_beside_a_race(is_side: bool) -> None:
    w = small()
    side, other = (1, 0) if is_side else (0, 1)
    middle = w.new(N, stream=other)
    w.call()
    w.launch("neg", [w.views["x"]], [middle], stream=other)
    w.record(7, side)
    w.line -= 1  # `wait_stream` does both
    w.wait(7, side)
    w.launch("neg", [middle], [w.views["out"]], stream=side)
    why = ": inside `with torch.cuda.stream(...)` it is itself the current stream"
    name = f"stream 1 wait for itself{why}" if is_side else "the default stream wait "
    assert f" after it. Line 3 lets {name}" in message_of(w)


def test_an_event_of_its_own_is_told_with_the_line_that_recorded_it() -> None:
    w = small()
    middle = w.new(N)
    w.call()
    w.launch("neg", [w.views["x"]], [middle])
    w.then(1, 1)
    w.launch("neg", [middle], [w.views["out"]], stream=1)
    words = "Line 4 lets stream 1 wait for itself: line 3 records the event on that"
    assert words in message_of(w)


def test_an_event_that_nobody_had_recorded_is_told() -> None:
    w = small()
    middle = w.new(N)
    w.call()
    w.launch("neg", [w.views["x"]], [middle])
    w.wait(7, 1)
    w.launch("neg", [middle], [w.views["out"]], stream=1)
    w.record(7, 0)
    assert message_of(w).endswith(
        "Line 3 waits for an event that was not recorded by then, so it waits for "
        "nothing."
    )


def test_a_host_that_waits_for_no_event_is_told() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "pageable", "out"))
    w.call()
    landed = w.new(N, "pinned")
    w.copy(w.views["x"], landed)
    w.synchronize("event", 7)
    w.on_host("copy", [landed], w.views["out"])
    assert "Line 3 waits for an event that" in message_of(w, "host read too early")


def test_waits_that_change_nothing_are_no_mistake_by_themselves() -> None:
    w = small()
    w.call()
    w.then(0, 0)
    w.wait(7, 1)
    w.synchronize("event", 7)
    w.launch("neg", [w.views["x"]], [w.views["out"]])
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_a_line_that_waits_in_a_later_turn_is_not_told() -> None:
    w = small()
    slot = w.new(N)
    w.call()
    for turn in range(2):
        w.line = 10
        w.wait(7, 1)
        w.launch("neg", [w.views["x"]], [slot], stream=1)
        w.record(7, 2)
        w.launch("neg", [slot], [w.views["out"]], stream=2 if turn else 1)
    judged = w.judged({"x": numbers(N)})
    assert kinds(judged) == ["race"] * 2
    assert not any("Line 11" in finding.message for finding in judged.findings)


# -- memory


def test_the_stream_and_the_tensor_for_record_stream_are_told() -> None:
    w = small()
    w.call()
    old = w.new(N)
    w.launch("neg", [w.views["x"]], [old])
    w.then(0, 1)
    w.launch("neg", [old], [w.views["out"]], stream=1)
    w.use_on(old, 0)
    w.release(old)
    w.launch("fill", [], [w.new(N)], numbers=(1.0,))
    advice = "call `record_stream` with stream 1 on the tensor of line 1 before it is"
    assert advice in message_of(w, "released too early")


def test_too_many_pieces_are_told_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesses, "MOST_COMPARISONS", 10)
    w = small()
    w.call()
    for at in range(8):
        piece = rows(w.views["out"], at, at + 1)
        w.launch("neg", [rows(w.views["x"], at, at + 1)], [piece])
    with pytest.raises(ProgramRefused, match=r"^Line 4: more pieces .* wait for a "):
        w.judged({"x": numbers(N)})


# -- what nobody wrote


def test_a_capture_whose_result_is_copied_without_a_replay_is_told() -> None:
    w = small()
    w.capture(0)
    result = w.new(N, stream=1)
    kernel = w.launch("neg", [w.views["x"]], [result], stream=1)
    w.captured(0)
    w.call()
    copied = w.launch("copy", [result], [w.views["out"]])
    assert message_of(w, "uninitialised read") == (
        f"Line {copied}: `copy` reads memory of line 2, which nobody has written "
        f"before. Line {kernel} writes it in a capture, which runs nothing until it is "
        "replayed."
    )
    w.replay(0)
    w.launch("copy", [result], [w.views["out"]])
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_what_is_carried_along_is_told_by_the_first_copy() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "pinned", "out"))
    w.call()
    stage, there = w.new(N, "pinned"), w.new(N)
    w.copy(stage, there)
    w.launch("copy", [there], [there])
    w.copy(there, w.views["out"])
    assert message_of(w, "uninitialised read") == (
        "Line 3: the copy to the GPU reads memory of line 1, which nobody has written "
        "before."
    )
    w.launch("neg", [there], [there])
    w.copy(there, w.views["out"])
    assert "Line 3: the copy to the GPU" in message_of(w, "uninitialised read")


def test_what_is_carried_along_and_written_later_or_not_needed_is_no_mistake() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "pinned", "out"))
    w.call()
    stage, there = w.new(2 * N, "pinned"), w.new(2 * N)
    w.copy(stage, there)
    w.launch("neg", [w.views["x"]], [rows(there, 0, N)])
    w.copy(there, stage)
    w.copy(rows(there, 0, N), w.views["out"])
    assert kinds(w.judged({"x": numbers(N)})) == []
