"""The ring of encoded messages."""

import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from warpbook_monitors.frames import Frame
from warpbook_monitors.history import History, decode


def filled(count: int, seconds: float = 1.0) -> History:
    history = History(seconds=seconds, rate_hz=10)
    for seq in range(count):
        time_ms = 1000.0 + 100 * seq
        history.append(time_ms, msgspec.json.encode(Frame(seq, time_ms, ())))
    return history


@given(st.integers(0, 40), st.floats(0, 6000))
def test_what_came_after_a_time_is_there_or_told_as_lost(count, since_ms) -> None:
    history = filled(count)
    times = [1000.0 + 100 * seq for seq in range(count)]
    wanted = [time_ms for time_ms in times if time_ms > since_ms]
    got = [time_ms for time_ms, _ in history.since(since_ms)]
    gap = history.lost_since(since_ms)
    assert len(got) <= 10
    # these times are long before this history began: what is not there is told
    assert gap is not None
    if gap.reason == "expired":
        assert got == [time_ms for time_ms in wanted if time_ms > gap.to_ms]
    else:
        assert got == wanted


def test_a_history_that_was_there_all_the_time_has_no_gap() -> None:
    assert filled(5).lost_since(time.time() * 1000) is None


def test_a_span_is_what_was_appended() -> None:
    frames = [decode(each) for each in filled(30).entries(3300, 3600)]
    assert [frame.seq for frame in frames] == [23, 24, 25, 26]
