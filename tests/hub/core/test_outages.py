"""Dates and the hub's outages: what is shown decides, and what was left stays left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import START_MS, Classroom, classroom
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.publications import reference_from
from warpbook_hub.course.windows import window_of
from warpbook_hub.errors import Forbidden, NotOpen
from warpbook_hub.outages import forget_answered, note_answered, note_return, outages
from warpbook_hub.rules.lateness import (
    AGAIN_MS,
    HOUR_MS,
    MINUTE_MS,
    UNSEEN_MS,
    Outage,
    Window,
    extended_ms,
    last_ms,
    late_hours,
)
from warpbook_hub.work.appeals import appeal
from warpbook_hub.work.submissions import is_genuine, receipt

#: 23:59 of some day, in any zone whose offset is of whole minutes
DUE_MS = (START_MS // MINUTE_MS + 600) * MINUTE_MS
DATES = some.integers(0, 10**9)


def test_a_minute_that_is_shown_is_the_whole_minute() -> None:
    window = Window(0, DUE_MS, DUE_MS)
    hours = [late_hours(DUE_MS + ms, window) for ms in (0, 1, 59_999, 60_000)]
    assert hours == [0, 0, 0, 1]
    assert window.is_open(DUE_MS + 59_999) and not window.is_open(DUE_MS + 60_000)
    # a time with seconds is shown with them
    assert late_hours(DUE_MS + 1_001, Window(0, DUE_MS + 1_000, DUE_MS)) == 1


def test_what_may_have_been_on_its_way_counts_as_the_last_moment() -> None:
    window = Window(0, DUE_MS, DUE_MS + HOUR_MS)
    for end_ms in (last_ms(window.due_ms), last_ms(window.closes_ms)):
        counted = [window.counted_ms(end_ms + ms) for ms in (0, 1, UNSEEN_MS)]
        assert counted == [end_ms, end_ms, end_ms]
        assert window.counted_ms(end_ms + UNSEEN_MS + 1) == end_ms + UNSEEN_MS + 1


@given(DATES, some.lists(some.tuples(DATES, some.integers(1, 10**7)), max_size=5))
def test_what_was_left_when_the_hub_went_is_left_when_it_is_back(
    date_ms: int, spans: list[tuple[int, int]]
) -> None:
    known, end_ms = [], 0
    for begun_ms, length_ms in sorted(spans):
        if begun_ms > end_ms:
            end_ms = begun_ms + length_ms
            known.append(Outage(begun_ms, end_ms))
    before_ms, moved_ms = last_ms(date_ms), extended_ms(date_ms, known)
    assert moved_ms == date_ms or last_ms(moved_ms) > before_ms
    for outage in known:
        # in none, and not just after one
        ends_ms = last_ms(moved_ms)
        assert not outage.from_ms <= ends_ms < outage.to_ms + AGAIN_MS
        if outage.from_ms <= before_ms < outage.to_ms + AGAIN_MS:
            left_ms = before_ms - outage.from_ms
            assert ends_ms >= max(outage.to_ms + left_ms, outage.to_ms + AGAIN_MS)
    assert extended_ms(moved_ms, known) == moved_ms


def away(room: Classroom, from_ms: int, to_ms: int) -> Outage | None:
    with room.database.write() as connection:
        note_answered(connection, from_ms)
        return note_return(connection, to_ms)


def test_an_outage_moves_every_date_in_it_and_says_so(tmp_path) -> None:
    room = classroom(
        tmp_path / "hub.db", windows={"": Window(START_MS, DUE_MS, DUE_MS)}
    )
    later_ms = DUE_MS + 30 * MINUTE_MS
    with room.database.write() as connection:
        given = (room.lab, room.people["bob"], later_ms, later_ms, "was ill")
        extend(connection, START_MS, room.instructor, *given)
    assert away(room, DUE_MS - MINUTE_MS, DUE_MS + 4 * MINUTE_MS)
    room.now_ms = DUE_MS + 5 * MINUTE_MS
    taken = room.submit("ada")
    assert (taken.late_hours, taken.extended_ms) == (0, 5 * MINUTE_MS)
    with room.database.read() as connection:
        assert is_genuine(connection, taken, "ada")
        bob = window_of(connection, room.lab, room.people["bob"])
        assert bob == Window(START_MS, later_ms, later_ms)
    # who is given a reference gains nothing: nobody may hand in any more
    with room.database.read() as connection:
        assert reference_from(connection, room.lab) == last_ms(later_ms) + 1
    room.now_ms = DUE_MS + 6 * MINUTE_MS
    with pytest.raises(NotOpen):
        room.submit("cyd")
    # a receipt without an outage is written as before there were any
    with room.database.read() as connection:
        assert receipt(connection, taken.submission) == taken


def test_an_outage_that_goes_on_is_one_and_others_are_forgotten(
    room: Classroom,
) -> None:
    hour = START_MS + HOUR_MS
    assert away(room, hour, hour + 1_999) is None
    away(room, hour, hour + 20_000)
    # the service began anew, and the proxy was not there yet
    both = away(room, hour + 20_000, hour + 50_000)
    assert both == Outage(hour, hour + 50_000)
    # no date lay in it
    later = away(room, hour + HOUR_MS, hour + HOUR_MS + 9_000)
    with room.database.read() as connection:
        assert outages(connection) == (later,)
    # a clock that was set far ahead is no outage, nor is a backup from last month
    assert away(room, hour, hour + 30 * 24 * HOUR_MS) is None
    with room.database.write() as connection:
        note_answered(connection, hour)
        forget_answered(connection)
        assert note_return(connection, hour + 20_000) is None


def test_an_appeal_is_taken_after_an_outage(room: Classroom) -> None:
    room.submit("ada")
    order = room.grade(room.grader())
    until_ms = room.now_ms + 7 * 24 * HOUR_MS
    away(room, until_ms - 1000, until_ms + MINUTE_MS)
    given = (room.people["ada"], order.job, "look at it")
    with room.database.write() as connection:
        with pytest.raises(Forbidden):
            appeal(connection, until_ms + 5 * MINUTE_MS, *given)
        assert appeal(connection, until_ms + 2 * MINUTE_MS - 1, *given)
