"""When a submission counts as late, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warpbook.hub_protocol import LabWindow

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_H = 24
#: less than this of the way to the service is not noticed, so it counts for people
UNSEEN_MS = 2_000
#: after an outage people have so long at least: their clients try again now and then
AGAIN_MS = MINUTE_MS


class Outage(Struct, frozen=True):
    """A time in which the hub took nothing; its end is no part of it."""

    from_ms: int
    to_ms: int


def last_ms(date_ms: int) -> int:
    """Give the last moment of a date: one without seconds is its whole minute."""
    return date_ms if date_ms % MINUTE_MS else date_ms + MINUTE_MS - 1


def extended_ms(date_ms: int, outages: Sequence[Outage], grace_ms: int = 0) -> int:
    """Give a date as outages of the hub have moved it.

    One that lies in an outage, or less than `AGAIN_MS` after its end, moves by the
    length of the outage: what was left is left. It is `AGAIN_MS` after the end at
    least, and has its whole minute.

    Args:
        date_ms: when something is due, or closes.
        outages: the earliest first.
        grace_ms: after the date, in whole minutes: until then people may do it.
    """
    date_ms += grace_ms
    for outage in outages:
        end_ms = last_ms(date_ms)
        if outage.from_ms <= end_ms < outage.to_ms + AGAIN_MS:
            length_ms = outage.to_ms - outage.from_ms
            moved_ms = max(end_ms + length_ms, outage.to_ms + AGAIN_MS)
            date_ms = moved_ms - moved_ms % MINUTE_MS
    return date_ms - grace_ms


class Window(LabWindow, frozen=True):
    """When a lab takes submissions of a person, asked about a moment."""

    @property
    def due_end_ms(self) -> int:
        """The last moment that is in time."""
        return last_ms(self.due_ms) + self.grace_ms

    @property
    def closes_end_ms(self) -> int:
        """The last moment at which it takes a submission."""
        return last_ms(self.closes_ms) + self.grace_ms

    def is_open(self, now_ms: int) -> bool:
        """Whether it takes a submission now; the last millisecond counts."""
        return self.opens_ms <= now_ms <= self.closes_end_ms

    def counted_ms(self, arrived_ms: int) -> int:
        """Give when a submission counts as received.

        What may have been sent before a date was over counts as of its last moment.
        """
        for end_ms in (self.due_end_ms, self.closes_end_ms):
            if end_ms < arrived_ms <= end_ms + UNSEEN_MS:
                return end_ms
        return arrived_ms

    def is_late(self, now_ms: int) -> bool:
        return now_ms > self.due_end_ms


class LatePolicy(Struct, frozen=True):
    """What a submission loses after its due date."""

    #: of its points, for each day that has begun; 100 takes all
    percent_per_day: float = 100.0


def late_hours(received_ms: int, window: Window) -> int:
    """Count the hours after the due date that have begun; 0 in time.

    Who is later than the grace period is late from the due date on.
    """
    if not window.is_late(received_ms):
        return 0
    late_ms = received_ms - last_ms(window.due_ms)
    return -(-late_ms // HOUR_MS)


def kept_share(hours: int, policy: LatePolicy) -> float:
    """Give the share of the points that is left after so many late hours."""
    days = -(-max(0, hours) // DAY_H)
    return max(0.0, 1.0 - days * policy.percent_per_day / 100.0)
