"""A job whose grader is lost keeps its party's place in the queue."""

from __future__ import annotations

from tests.hub.core.course import Classroom, facts
from tests.hub.core.test_queue import order_of
from warpbook_hub.queue import dispatch


def lose(room: Classroom, lost_grader: str) -> None:
    """Lease the next job to a grader that is never heard of again."""
    room.lease(lost_grader)
    room.now_ms += int(dispatch.LEASE_S * 1000) + 1
    with room.database.write() as connection:
        assert dispatch.reclaim(connection, room.now_ms) == 1


def test_who_lost_a_grader_is_still_first(room: Classroom) -> None:
    lost, grader = room.grader("lost"), room.grader()
    for name in ("ada", "bob", "cyd"):
        room.submit(name)
        room.now_ms += 1000
    lose(room, lost)
    assert order_of(room, grader, 3) == ["ada", "bob", "cyd"]


def test_who_was_served_before_is_as_far_back_as_then(room: Classroom) -> None:
    lost, grader = room.grader("lost"), room.grader()
    for name in ("ada", "bob"):
        room.submit(name)
        room.now_ms += 1000
    assert order_of(room, grader, 2) == ["ada", "bob"]
    for name in ("ada", "bob", "cyd"):
        room.submit(name, "// again")
        room.now_ms += 1000
    # a first comes before seconds, and of these ada's, whose grader is lost
    assert order_of(room, grader, 1) == ["cyd"]
    lose(room, lost)
    room.grade(grader, facts("wrong", 1))
    assert order_of(room, grader, 1) == ["bob"]
