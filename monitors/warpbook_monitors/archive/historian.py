"""Keeps the history in the archive's file: writes, brings together, removes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from warpbook_monitors.archive.database import transaction
from warpbook_monitors.archive.errors import ArchiveMoved
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.records import drop_old_records
from warpbook_monitors.archive.retention import drop_oldest, give_back
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.tail import Tail
from warpbook_monitors.frames import Device
from warpbook_monitors.history.history import Message

#: how often it is looked what is too old
_TIDY_S = 30.0


class Historian:
    """What the thread of the archive does for the history, second by second."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tail = Tail()
        self._tidied_s = 0.0

    def recover(self, connection: sqlite3.Connection) -> None:
        """Go on where the file ends."""
        self._tail.recover(connection)

    def write(
        self,
        connection: sqlite3.Connection,
        waiting: Sequence[tuple[Message, tuple[Device, ...]]],
    ) -> bool:
        """Write messages, and tidy up a little; True if the file's size is news."""
        if waiting:
            self._tail.write(connection, waiting)
        if time.monotonic() < self._tidied_s + _TIDY_S:
            return False
        now_ms = time.time() * 1000
        try:
            with transaction(connection):
                # a little at a time: what comes meanwhile waits
                is_more = next_merge(connection, now_ms)
                for drop in (drop_oldest, drop_old_records):
                    is_more = drop(connection, self._limits, now_ms) or is_more
        except ArchiveMoved:
            # what was handed in is written, and is not to be written again
            return False
        if not is_more:
            self._tidied_s = time.monotonic()
            give_back(connection)
        return True
