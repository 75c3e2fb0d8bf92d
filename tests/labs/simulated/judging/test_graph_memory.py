"""How much of the GPU's memory a graph holds: what it needed once, until it is gone."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.labs.simulated.judging.writing import Writer, kinds, numbers, rows
from warpbook_labs.engines.simulated import program as recorded
from warpbook_labs.engines.simulated.program import ProgramRefused, View

#: 4 KiB
N = 1 << 10
PIECE = 4 * N


def writer() -> Writer:
    return Writer(x=(N, "device", "in"), out=(N, "device", "out"))


def chain(w: Writer, source: View, times: int) -> list[View]:
    """Each makes the next, and only then is let go."""
    made = [source]
    for _ in range(times):
        made.append(w.new(N, stream=1))
        w.launch("neg", [made[-2]], [made[-1]], stream=1)
        if len(made) > 2:
            w.release(made[-2])
    return made


def held(w: Writer, calls: int = 2) -> list[int]:
    judged = w.judged(*({"x": numbers(N)} for _ in range(calls)))
    assert kinds(judged) == []
    return [counts.held_bytes for counts in judged.counts]


def captured(pieces: int) -> Writer:
    """A graph with room of its own for so many pieces, all at one time."""
    w = writer()
    w.call(0)
    w.capture(0)
    room = [w.new(N, stream=1) for _ in range(pieces)]
    for piece in room:
        w.launch("neg", [w.views["x"]], [piece], stream=1)
    for piece in room:
        w.release(piece)
    w.captured(0)
    return w


def test_what_a_graph_was_captured_with_is_held_in_later_calls() -> None:
    w = captured(8)
    w.call(1)
    w.replay(0)
    assert held(w) == [8 * PIECE] * 2


def test_the_lines_that_made_what_is_held_are_told() -> None:
    w = writer()
    small, large = w.new(8), w.new(2 * N)
    w.release(w.new(3 * N))
    w.call(0)
    w.release(large)
    w.release(small)
    judged = w.judged({"x": numbers(N)})
    assert judged.count_lines[0]["held_bytes"] == (2,)


def test_an_output_names_the_lines_of_the_work_that_it_came_from() -> None:
    w = writer()
    batch, result = w.new(N, stream=1), w.new(N, stream=1)
    w.capture(0)
    captured = w.launch("neg", [batch], [result], stream=1)
    w.captured(0)
    w.call(0)
    copied = w.launch("copy", [w.views["x"]], [batch])
    replayed = w.replay(0)
    written = w.launch("copy", [result], [w.views["out"]])
    other = w.launch("neg", [w.views["x"]], [w.new(N)])
    judged = w.judged({"x": numbers(N)})
    lines = judged.sources[0]["out"]
    assert lines[0] == written and set(lines) == {written, captured, replayed, copied}
    assert other not in lines


def test_within_a_graph_released_memory_is_used_again() -> None:
    w = writer()
    w.call(0)
    w.capture(0)
    *_, last = chain(w, w.views["x"], 10)
    w.release(last)
    w.captured(0)
    w.call(1)
    w.replay(0)
    assert held(w) == [2 * PIECE] * 2


@pytest.mark.parametrize("is_told", [False, True])
def test_what_another_stream_uses_is_not_used_again_in_the_capture(
    is_told: bool,
) -> None:
    w = writer()
    w.call(0)
    w.capture(0)
    for _ in range(5):
        piece = w.new(N, stream=1)
        w.launch("neg", [w.views["x"]], [piece], stream=1)
        if is_told:
            w.use_on(piece, 2)
        w.release(piece)
    w.captured(0)
    w.call(1)
    assert held(w) == [(5 if is_told else 1) * PIECE] * 2


def test_a_graph_that_is_gone_holds_nothing() -> None:
    w = captured(8)
    w.said.append(recorded.ReleaseGraph(0))
    w.call(1)
    assert held(w) == [8 * PIECE, 0]


def test_its_tensors_may_stay_longer() -> None:
    w = writer()
    w.call(0)
    w.capture(0)
    made = chain(w, w.views["x"], 4)
    w.captured(0)
    w.said.append(recorded.ReleaseGraph(0))
    w.call(1)
    w.call(2)
    w.release(made[-1])
    w.call(3)
    assert held(w, 4) == [2 * PIECE, PIECE, PIECE, 0]


@pytest.mark.parametrize("again", [recorded.ReleaseGraph(0), recorded.Replay(0, 0)])
def test_a_graph_that_is_gone_is_gone(again: recorded.Instruction) -> None:
    w = captured(1)
    w.said += [recorded.ReleaseGraph(0), again]
    with pytest.raises(ProgramRefused):
        w.judged({"x": numbers(N)})


def test_a_number_of_a_large_tensor_is_captured_alone() -> None:
    w = writer()
    large = w.new(1 << 20, "pinned")
    w.launch("fill", [], [large], -1, (2.0,))
    one = w.new(1)
    w.capture(0)
    for at in range(40):
        w.launch("neg", [rows(large, at, at + 1)], [one], stream=1)
    w.captured(0)
    w.call(0)
    tracemalloc.start()
    w.judged({"x": numbers(N)})
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 5 * (4 << 20)
