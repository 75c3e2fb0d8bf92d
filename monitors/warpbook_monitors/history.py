"""The last minutes of the stream, already encoded, in bounded memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import msgspec

from warpbook_monitors.frames import Devices, Event, Frame, Gap

Message = Frame | Gap | Devices | Event
decode = msgspec.json.Decoder(Message).decode


class History:
    """A ring of encoded messages by time; for one thread."""

    def __init__(self, seconds: float, rate_hz: float) -> None:
        """Keep `seconds` of a stream of `rate_hz` frames per second."""
        self.seconds = seconds
        self._ring: deque[tuple[float, bytes]] = deque(maxlen=round(seconds * rate_hz))
        self._begin_ms = time.time() * 1000
        self._dropped_ms: float | None = None

    def append(self, time_ms: float, encoded: bytes) -> None:
        """Keep one message; the oldest goes when the ring is full."""
        if len(self._ring) == self._ring.maxlen:
            self._dropped_ms = self._ring[0][0]
        self._ring.append((time_ms, encoded))

    def since(self, time_ms: float) -> list[tuple[float, bytes]]:
        """Give every message after `time_ms` with its time, oldest first."""
        newer: list[tuple[float, bytes]] = []
        for entry in reversed(self._ring):
            if entry[0] <= time_ms:
                break
            newer.append(entry)
        return newer[::-1]

    def lost_since(self, time_ms: float) -> Gap | None:
        """Tell what came after `time_ms` and is not here any more, if anything."""
        if self._dropped_ms is not None and time_ms < self._dropped_ms:
            reason = "Older than the history that is kept."
            return Gap(time_ms, self._dropped_ms, "expired", reason)
        if time_ms < self._begin_ms:
            reason = "The server was started again since then."
            return Gap(time_ms, self._begin_ms, "restarted", reason)
        return None

    def entries(self, from_ms: float, to_ms: float) -> Iterator[bytes]:
        """Give the messages of a span, oldest first."""
        for at_ms, encoded in self._ring:
            if from_ms <= at_ms <= to_ms:
                yield encoded
