"""The ring of encoded messages."""

import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from warpbook_monitors.frames import Frame
from warpbook_monitors.history.history import PIECE_MESSAGES, History, decode


def filled(count: int, seconds: float = 10.0, **bounds: int) -> History:
    history = History(seconds, rate_hz=10, **bounds)
    for seq in range(count):
        time_ms = 1000.0 + 100 * seq
        history.append(time_ms, msgspec.json.encode(Frame(seq, time_ms, ())))
    return history


def caught_up(history: History, since_ms: float) -> list[int]:
    """Numbers of the frames that a viewer gets which comes back."""
    seqs: list[int] = []
    number = history.after(since_ms)
    while (piece := history.piece(number)) is not None:
        number = max(number, piece.first)
        frames = [
            decode(message) for message in piece.messages()[number - piece.first :]
        ]
        seqs += [frame.seq for frame in frames if isinstance(frame, Frame)]
        number = piece.end
    return seqs


@given(st.integers(0, 400), st.floats(0, 45_000))
def test_what_came_after_a_time_is_there_or_told_as_lost(count, since_ms) -> None:
    history = filled(count)
    wanted = [seq for seq in range(count) if 1000.0 + 100 * seq > since_ms]
    got = caught_up(history, since_ms)
    gap = history.lost_since(since_ms)
    assert len(got) <= 100 + PIECE_MESSAGES
    # these times are long before this history began: what is not there is told
    assert gap is not None
    if gap.reason == "expired":
        assert got == [seq for seq in wanted if 1000.0 + 100 * seq > gap.to_ms]
        assert len(got) >= 100, "less is kept than was asked for"
    else:
        assert got == wanted


def test_where_bytes_bind_less_time_is_kept_and_it_is_told() -> None:
    history = filled(2000, seconds=3600, max_bytes=10_000)
    assert history.size_bytes <= 10_000
    gap = history.lost_since(1000.0)
    assert gap is not None and gap.reason == "expired"
    seqs = caught_up(history, 1000.0)
    assert seqs == list(range(seqs[0], 2000))
    assert gap.to_ms == 1000.0 + 100 * (seqs[0] - 1)


def test_a_viewer_that_is_overtaken_by_the_ring_is_given_the_oldest() -> None:
    history = filled(60)
    number = history.after(1000.0)
    for seq in range(60, 400):
        history.append(1000.0 + 100 * seq, b"{}")
    piece = history.piece(number)
    assert piece is not None and piece.first > number


def test_a_clock_that_is_set_back_loses_nothing_in_the_ring() -> None:
    history = History(10, rate_hz=10)
    times = [5000.0, 5100.0, 1000.0, 1100.0]
    for seq, time_ms in enumerate(times):
        history.append(time_ms, msgspec.json.encode(Frame(seq, time_ms, ())))
    assert caught_up(history, 1000.0) == [3]
    assert caught_up(history, 500.0) == [0, 1, 2, 3]


def test_a_span_that_is_being_read_stays_while_the_ring_goes_on() -> None:
    history = filled(100)
    entries = history.entries(1000.0, 1400.0)
    for seq in range(100, 400):
        history.append(1000.0 + 100 * seq, b"{}")
    assert [decode(entry).seq for entry in entries] == [0, 1, 2, 3, 4]


def test_a_history_that_was_there_all_the_time_has_no_gap() -> None:
    assert filled(5).lost_since(time.time() * 1000) is None


def test_a_span_is_what_was_appended() -> None:
    frames = [decode(entry) for entry in filled(30).entries(3300, 3600)]
    assert [frame.seq for frame in frames] == [23, 24, 25, 26]
