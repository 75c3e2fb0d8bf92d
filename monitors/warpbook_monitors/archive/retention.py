"""Removes the oldest of what the archive holds, by age and by size."""

from __future__ import annotations

import sqlite3

from warpbook_monitors.archive.database import size_bytes
from warpbook_monitors.archive.limits import DAY_MS, Limits
from warpbook_monitors.archive.steps import FRAMES

#: removed at a time, so that no transaction holds others up
_AT_A_TIME = 50
#: free pages of the file beyond it are given back to the disk
_MOST_FREE_PAGES = 4096


def drop_oldest(
    connection: sqlite3.Connection, limits: Limits, now_ms: float | None
) -> bool:
    """Remove what is older than it may be, and the oldest beyond the size.

    Call it in a transaction, again while it returns True: it removes a few at a time.
    Without a `now_ms` that can be believed, nothing is removed for its age.
    """
    removed = 0
    for rows, column, kept_ms in (
        (f"segment WHERE step_ms = {FRAMES} AND", "to_ms", limits.frames_ms),
        ("segment WHERE", "to_ms", limits.summaries_ms),
        ("remark WHERE", "time_ms", limits.summaries_ms),
    ):
        if now_ms is not None:
            last = last_too_old(connection, rows, column, now_ms - kept_ms, now_ms)
            removed += _delete(connection, f"{rows} number <= {last}")
    if size_bytes(connection) > limits.size_bytes:
        removed += _delete(connection, "segment WHERE true", 4)
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


def last_too_old(
    connection: sqlite3.Connection,
    rows: str,
    column: str,
    oldest_ms: float,
    now_ms: float,
) -> int:
    """Give the number of the last row that is too old; 0 where none is.

    A clock that was wrong for a while stamps rows with times of its own. So a row is
    too old once all that were written before it are, too, and one of the future
    once a row that was written after it is.

    Args:
        connection: one that reads.
        rows: a table and what restricts it, up to the condition that follows.
        column: when a row was, in Unix ms.
        oldest_ms: what was before it is too old.
        now_ms: what is after it was stamped by a wrong clock.
    """
    young = connection.execute(
        f"SELECT rowid FROM {rows} +{column} >= ? AND +{column} <= ?"
        " ORDER BY rowid LIMIT 1",
        (oldest_ms, now_ms + DAY_MS),
    ).fetchone()
    last = connection.execute(
        f"SELECT rowid FROM {rows} +{column} < ? AND rowid < ?"
        " ORDER BY rowid DESC LIMIT 1",
        (oldest_ms, young[0] if young else 2**63 - 1),
    ).fetchone()
    return int(last[0]) if last else 0


def _delete(connection: sqlite3.Connection, rows: str, most: int = _AT_A_TIME) -> int:
    """Remove some rows, those that were written first."""
    table = rows.partition(" ")[0]
    return connection.execute(
        f"DELETE FROM {table} WHERE number IN"
        f" (SELECT number FROM {rows} ORDER BY number LIMIT ?)",
        (most,),
    ).rowcount
