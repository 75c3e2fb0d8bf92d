"""Keeps the history in the archive's file: writes, brings together, removes."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from warpbook_monitors.archive.database import transaction
from warpbook_monitors.archive.errors import ArchiveMoved
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.records import drop_old_records
from warpbook_monitors.archive.retention import drop_oldest, give_back
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.tail import Tail
from warpbook_monitors.frames import Device
from warpbook_monitors.history.history import Message
from warpbook_monitors.wall_clock import WallClock, agreement

_log = logging.getLogger(__name__)

#: how often it is looked what is too old
_TIDY_S = 30.0
#: how the clock has gone, beside the archive
CLOCK_FILE = "clock.json"


class Historian:
    """What the thread of the archive does for the history, second by second."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        """Begin with an empty tail; the archive's folder keeps how the clock went."""
        self._limits = limits
        self._clock = WallClock()
        self._clock_file = folder / CLOCK_FILE
        kept = b""
        with contextlib.suppress(OSError):
            kept = self._clock_file.read_bytes()
        self._agreement = agreement(kept, self._clock.now_ms)
        if kept and self.why_not:
            _log.warning("%s", self.why_not)
        self._tail = Tail()
        self._tidied_s = 0.0

    @property
    def why_not(self) -> str:
        """Why nothing is deleted for its age; empty where it may be."""
        return self._agreement.why_not

    def recover(self, connection: sqlite3.Connection) -> None:
        """Go on where the file ends."""
        self._tail.recover(connection)
        self._keep_agreement()

    def write(
        self,
        connection: sqlite3.Connection,
        waiting: Sequence[tuple[Message, tuple[Device, ...]]],
    ) -> bool:
        """Write messages, and tidy up a little; True if the file's size is news."""
        if waiting:
            self._tail.write(connection, waiting)
        is_news = self._look_at_clock()
        if time.monotonic() < self._tidied_s + _TIDY_S:
            return is_news
        self._keep_agreement()
        now_ms = self._clock.now_ms
        believed_ms = now_ms if self._agreement.may_delete else None
        try:
            with transaction(connection):
                # a little at a time: what comes meanwhile waits
                is_more = next_merge(connection, now_ms)
                for drop in (drop_oldest, drop_old_records):
                    is_more = drop(connection, self._limits, believed_ms) or is_more
        except ArchiveMoved:
            # what was handed in is written, and is not to be written again
            return False
        if not is_more:
            self._tidied_s = time.monotonic()
            give_back(connection)
        return True

    def _look_at_clock(self) -> bool:
        """Whether it went otherwise than it should have."""
        before = self._agreement
        set_ms = self._clock.set_ms()
        self._agreement = before.then(self._clock.now_ms, set_ms)
        if self._agreement.since_ms == before.since_ms:
            return False
        _log.warning("%s", self._agreement.why_not)
        self._keep_agreement()
        return True

    def _keep_agreement(self) -> None:
        # after a full disk, or a kill in its midst, the next start waits a day
        with contextlib.suppress(OSError):
            self._clock_file.write_bytes(msgspec.json.encode(self._agreement))
