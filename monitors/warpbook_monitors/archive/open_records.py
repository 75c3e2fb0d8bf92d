"""Ends what a server that is gone can't end any more: cells that ran, alerts that held.

Each server holds a lock of the operating system's as long as it lives. What it wrote of
a cell that still runs bears its name; whoever starts later looks whose lock is free.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from warpbook_monitors.archive.lease import Lease
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.record import KeptRecord, RecordKind
from warpbook_monitors.archive.records import message_of, put

_LOOK_S = 0.005

#: of a record that has no end: the record and its message as they stay
Ending = Callable[[RecordKind, bytes, float], "tuple[KeptRecord, bytes] | None"]


class Servers:
    """The servers that write into one folder, this one among them."""

    def __init__(self, folder: Path) -> None:
        """Choose a name; nothing is locked before `enter`."""
        self.name = secrets.token_hex(8)
        self._folder = folder
        self._lease = Lease(self._path(self.name))

    def enter(self) -> None:
        """Be known as alive, until `leave` or the end of the process."""
        # who looks whether it is free holds it for a moment
        while not self._lease.take():
            time.sleep(_LOOK_S)

    def leave(self) -> None:
        """Be known as gone."""
        if self._lease.is_held:
            self._path(self.name).unlink(missing_ok=True)
        self._lease.release()

    def is_gone(self, name: str) -> bool:
        """Whether a server has ended, however it did."""
        if name == self.name:
            return False
        path = self._path(name)
        if not name.isalnum() or not path.exists():
            return True
        lease = Lease(path)
        if not lease.take():
            return False
        path.unlink(missing_ok=True)
        lease.release()
        return True

    def forget_gone(self) -> None:
        """Remove the locks of servers that were killed, and left nothing open."""
        for path in self._folder.glob("server-*.lock"):
            self.is_gone(path.stem.removeprefix("server-"))

    def _path(self, name: str) -> Path:
        return self._folder / f"server-{name}.lock"


def end_open_records(
    connection: sqlite3.Connection, servers: Servers, ending: Ending, limits: Limits
) -> int:
    """End what servers that are gone left open; give how many there were.

    Args:
        connection: one that writes, in a transaction.
        servers: who lives.
        ending: gives a record as it stays, of its kind, its message and the time when
            this machine was last read (Unix ms).
        limits: of the archive.
    """
    left = connection.execute(
        "SELECT kind, id, server, started_ms FROM record WHERE server IS NOT NULL"
    ).fetchall()
    gone = {name for name in {row[2] for row in left} if servers.is_gone(name)}
    last_ms = _last_read_ms(connection)
    count = 0
    for kind, record_id, name, started_ms in left:
        if name not in gone:
            continue
        count += 1
        message = message_of(connection, kind, record_id)
        ended = (
            None if message is None else ending(kind, message, max(started_ms, last_ms))
        )
        if ended is not None:
            put(connection, *ended, servers.name, limits)
        else:
            # its message can't be read any more, and it is listed all the same
            connection.execute(
                "UPDATE record SET server = NULL, status = 'interrupted',"
                " ended_ms = max(started_ms, ?) WHERE kind = ? AND id = ?",
                (last_ms, kind, record_id),
            )
    return count


def _last_read_ms(connection: sqlite3.Connection) -> float:
    """When something was last written of a frame; 0 where there is none."""
    times_ms = [0.0]
    for table in ("segment", "recent"):
        with contextlib.suppress(sqlite3.Error):
            row = connection.execute(f"SELECT max(to_ms) FROM {table}").fetchone()
            times_ms.append(row[0] or 0.0)
    return max(times_ms)
