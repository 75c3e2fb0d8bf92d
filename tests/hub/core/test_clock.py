"""The hub's time goes on evenly, whatever is done to the system's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import DUE_MS, Classroom
from warpbook_hub.clock import HubClock
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.work.submissions import receipt


class System:
    """A system's clocks, of which a test sets one."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_790_000_000.0, 500.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@given(some.lists(some.tuples(some.floats(0, 1e5), some.floats(-1e8, 1e8)), max_size=9))
def test_a_jump_of_the_systems_clock_moves_nothing(
    steps: list[tuple[float, float]],
) -> None:
    system = System()
    clock = HubClock(lambda: system.wall, lambda: system.steady)
    begin_ms, passed_s = clock.now_ms(), 0.0
    for seconds, jump in steps:
        before_ms = clock.now_ms()
        system.passes(seconds)
        system.wall += jump
        passed_s += seconds
        assert clock.now_ms() >= before_ms
    assert abs(clock.now_ms() - begin_ms - passed_s * 1000) <= 2
    drift_s = system.wall - 1_790_000_000.0 - passed_s
    if abs(drift_s) > 5.1:
        assert abs(clock.jump_ms() - drift_s * 1000) <= 2
    elif abs(drift_s) < 4.9:
        assert clock.jump_ms() == 0


def test_a_receipt_keeps_its_time_and_lateness(room: Classroom) -> None:
    room.now_ms = DUE_MS - 2
    given_back = room.submit("ada")
    room.now_ms = DUE_MS + 50 * HOUR_MS
    with room.database.read() as connection:
        again = receipt(connection, given_back.submission)
    assert again == given_back and again.late_hours == 0
