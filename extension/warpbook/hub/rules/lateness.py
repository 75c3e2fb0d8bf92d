"""When a submission counts as late, and what that costs."""

from __future__ import annotations

from msgspec import Struct

HOUR_MS = 3_600_000
DAY_H = 24


class Window(Struct, frozen=True):
    """When a lab takes submissions of a person, their extension included."""

    opens_ms: int
    due_ms: int
    closes_ms: int

    def is_open(self, now_ms: int) -> bool:
        """Whether it takes a submission now; the last millisecond counts."""
        return self.opens_ms <= now_ms <= self.closes_ms


class LatePolicy(Struct, frozen=True):
    """What a submission loses after its due date."""

    #: of its points, for each day that has begun; 100 takes all
    percent_per_day: float = 100.0


def late_hours(received_ms: int, window: Window) -> int:
    """Count the hours after the due date that have begun; 0 in time."""
    late_ms = max(0, received_ms - window.due_ms)
    return -(-late_ms // HOUR_MS)


def kept_share(hours: int, policy: LatePolicy) -> float:
    """Give the share of the points that is left after so many late hours."""
    days = -(-max(0, hours) // DAY_H)
    return max(0.0, 1.0 - days * policy.percent_per_day / 100.0)
