"""When Python collected garbage, as the interpreter tells it."""

from __future__ import annotations

import gc
import time
from typing import Any

#: the oldest: all objects are looked at, which takes long where there are many
_FULL = 2
#: a recording with more tells of these
_MOST = 10_000


class GarbageClock:
    """Notes full collections from `start` to `stop`."""

    def __init__(self) -> None:
        """Note nothing yet."""
        self._spans_ns: list[tuple[int, int]] = []
        self._began_ns = 0

    def start(self) -> None:
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def since(self, start_ns: int) -> tuple[tuple[int, int], ...]:
        """Return when collections began after a time (Unix), and how long they took."""
        return tuple(
            (began_ns - start_ns, ended_ns - began_ns)
            for began_ns, ended_ns in self._spans_ns[:_MOST]
            if began_ns >= start_ns
        )

    def _note(self, phase: str, about: dict[str, Any]) -> None:
        if about["generation"] < _FULL:
            return
        if phase == "start":
            self._began_ns = time.time_ns()
        elif self._began_ns:
            self._spans_ns.append((self._began_ns, time.time_ns()))
