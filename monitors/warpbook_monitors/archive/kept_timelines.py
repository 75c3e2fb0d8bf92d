"""All events of reports' runs, compressed, up to a size; the oldest make room."""

from __future__ import annotations

import sqlite3
import zlib

from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.archive.limits import Limits


def pack_timeline(body: bytes) -> bytes:
    """Compress a run's events, as the kernel packed them; not for an event loop."""
    return zlib.compress(body, 1)


def put_timeline(
    connection: sqlite3.Connection,
    report_id: str,
    packed: bytes,
    now_ms: float,
    limits: Limits,
) -> None:
    """Keep the events of a report; what alone is too large is not kept.

    Args:
        connection: one that writes, in a transaction.
        report_id: of the report, which is kept already.
        packed: what `pack_timeline` gave.
        now_ms: Unix time.
        limits: the oldest make room.
    """
    if len(packed) > limits.timelines_bytes:
        return
    connection.execute(
        "INSERT OR REPLACE INTO timeline (report_id, kept_ms, body) VALUES (?, ?, ?)",
        (report_id, now_ms, packed),
    )
    drop_old_timelines(connection, limits)


def drop_old_timelines(connection: sqlite3.Connection, limits: Limits) -> bool:
    """Remove the oldest beyond the size; whether there were any."""
    sizes = connection.execute(
        "SELECT rowid, length(body) FROM timeline ORDER BY rowid DESC"
    )
    total_bytes = 0
    rows = []
    for rowid, size_bytes in sizes:
        total_bytes += size_bytes
        if total_bytes > limits.timelines_bytes:
            rows.append((rowid,))
    connection.executemany("DELETE FROM timeline WHERE rowid = ?", rows)
    return bool(rows)


def timeline_of(
    connection: sqlite3.Connection, report_id: str, most_bytes: int
) -> bytes | None:
    """The events of a report's run; None where they are not kept, or larger."""
    row = connection.execute(
        "SELECT body FROM timeline WHERE report_id = ?", (report_id,)
    ).fetchone()
    if row is None:
        return None
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(row[0], most_bytes + 1)
    except UNREADABLE:
        return None
    return body if unpacker.eof else None
