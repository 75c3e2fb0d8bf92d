"""The hub's time: it never runs backwards and jumps with no clock of the system."""

from __future__ import annotations

import time
from collections.abc import Callable

#: the system's clock may be set by so much before anybody is told
TOLERATED_JUMP_MS = 5_000


class HubClock:
    """Wall time as it was when the service began, carried on by the monotonic clock.

    A jump of the system's clock so changes no receipt, no lease and no deadline. After
    it was set on purpose the service is restarted.
    """

    def __init__(
        self,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._offset_s = wall_s() - monotonic_s()

    def now_ms(self) -> int:
        """Give the time in milliseconds since 1970."""
        return int((self._monotonic_s() + self._offset_s) * 1000)

    def jump_ms(self) -> int:
        """Tell by how much the system's clock has been set since; 0 if tolerable."""
        jump_ms = int(self._wall_s() * 1000) - self.now_ms()
        return jump_ms if abs(jump_ms) > TOLERATED_JUMP_MS else 0
