"""Removes the oldest of what the archive holds, by age and by size."""

from __future__ import annotations

import sqlite3

from warpbook_monitors.archive.database import size_bytes
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.steps import FRAMES

#: removed at a time, so that no transaction holds others up
_AT_A_TIME = 50
#: free pages of the file beyond it are given back to the disk
_MOST_FREE_PAGES = 4096


def drop_oldest(connection: sqlite3.Connection, limits: Limits, now_ms: float) -> bool:
    """Remove what is older than it may be, and the oldest beyond the size.

    Call it in a transaction, again while it returns True: it removes a few at a time.
    """
    oldest_frame_ms = now_ms - limits.frames_ms
    oldest_ms = now_ms - limits.summaries_ms
    removed = _delete(
        connection, "segment", "step_ms = ? AND to_ms < ?", (FRAMES, oldest_frame_ms)
    )
    removed += _delete(connection, "segment", "to_ms < ?", (oldest_ms,))
    removed += _delete(connection, "remark", "time_ms < ?", (oldest_ms,))
    if size_bytes(connection) > limits.size_bytes:
        removed += _delete(connection, "segment", "true", (), 4)
    if removed:
        connection.execute(
            "DELETE FROM description WHERE id NOT IN (SELECT description FROM segment)"
        )
    return removed > 0


def give_back(connection: sqlite3.Connection) -> None:
    """Make the file smaller where much of it is free; outside a transaction."""
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free_pages > _MOST_FREE_PAGES:
        connection.execute("PRAGMA incremental_vacuum(1000)").fetchall()


def _delete(
    connection: sqlite3.Connection,
    table: str,
    where: str,
    values: tuple[float, ...],
    most: int = _AT_A_TIME,
) -> int:
    """Remove some rows, those that were written first."""
    return connection.execute(
        f"DELETE FROM {table} WHERE number IN"
        f" (SELECT number FROM {table} WHERE {where} ORDER BY number LIMIT ?)",
        (*values, most),
    ).rowcount
