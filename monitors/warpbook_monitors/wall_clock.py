"""Whether the wall clock may decide that something kept is old enough to be deleted.

A clock can be years ahead for a moment (a flat battery, a wrong time server), and what
is deleted meanwhile does not come back when the clock does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from warpbook_monitors.units import duration_about

#: so long a clock has agreed with itself before anything is deleted by it
WAIT_MS = 24 * 3600 * 1000.0
#: what a time server corrects is smaller
TOLERATED_MS = 60_000.0


class Agreement(Struct, frozen=True):
    """How the wall clock has gone, over restarts; whoever deletes by it keeps this."""

    #: since when no look contradicted the one before (Unix ms)
    since_ms: float
    #: the newest look (Unix ms)
    seen_ms: float
    #: what began `since_ms`, in words; empty where it was the first look
    reason: str

    @property
    def may_delete(self) -> bool:
        """Whether an age by this clock may delete something."""
        return self.seen_ms - self.since_ms >= WAIT_MS

    @property
    def why_not(self) -> str:
        """Why nothing is deleted for its age; empty where it may be, or on day one."""
        left = _about(WAIT_MS - (self.seen_ms - self.since_ms))
        words = (
            f"{self.reason} Nothing is deleted because of its age in the next {left}."
        )
        return "" if self.may_delete or not self.reason else words

    def then(self, now_ms: float, set_ms: float = 0.0) -> Agreement:
        """Look again.

        Args:
            now_ms: Unix ms.
            set_ms: by how much the clock is known to have been set since.
        """
        later_ms = now_ms - self.seen_ms
        if set_ms or later_ms < -TOLERATED_MS:
            shift_ms = set_ms or later_ms
            way = "ahead" if shift_ms > 0 else "back"
            reason = f"This machine's clock was set {way} by {_about(abs(shift_ms))}."
        elif later_ms > WAIT_MS:
            reason = f"This machine's clock was last checked {_about(later_ms)} ago."
        else:
            return replace(self, seen_ms=max(self.seen_ms, now_ms))
        return Agreement(now_ms, now_ms, reason)


class WallClock:
    """The machine's time, beside a clock that nobody sets."""

    def __init__(self, wall_s: Callable[[], float] = time.time) -> None:
        self._wall_s = wall_s
        self._ahead_ms = self._look()

    def _look(self) -> float:
        self.now_ms = self._wall_s() * 1000
        return self.now_ms - _steady_s() * 1000

    def set_ms(self) -> float:
        """Read the time into `now_ms`; by how much it was set since the last look."""
        ahead_ms = self._look()
        set_ms = ahead_ms - self._ahead_ms
        if abs(set_ms) <= TOLERATED_MS:
            return 0.0
        self._ahead_ms = ahead_ms
        return set_ms


def agreement(kept: bytes | str, now_ms: float, set_ms: float = 0.0) -> Agreement:
    """Look at the clock; `kept` is the agreement of before as JSON, or anything."""
    try:
        before = msgspec.json.decode(kept, type=Agreement)
        if before.since_ms > before.seen_ms:
            raise ValueError("it starts after its last reading")
    except (msgspec.DecodeError, ValueError, RecursionError):
        reason = "The record of this machine's clock is lost." if kept else ""
        return Agreement(now_ms, now_ms, reason)
    return before.then(now_ms, set_ms)


def _steady_s() -> float:
    # it goes on while the machine sleeps, as the wall clock does
    boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(boot)


def _about(milliseconds: float) -> str:
    return duration_about(milliseconds / 1000)
