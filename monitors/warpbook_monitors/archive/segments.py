"""Segments in the archive's file: written, brought together, and read by span."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.archive.steps import FRAMES, HOUR, MINUTE, SECOND
from warpbook_monitors.archive.summaries import longer, seconds_of
from warpbook_monitors.archive.table import (
    FROM_MS,
    Table,
    joined,
    pack,
    that_fit,
    unpack_or_leave_out,
)
from warpbook_monitors.frames import Device

_log = logging.getLogger(__name__)

#: a segment of frames spans so much; summaries are written beside it
SEGMENT_MS = 300_000
_DAY_MS = 86_400_000
#: when a period is over, what was written of it becomes one segment
_PERIODS_MS = {SECOND: (HOUR,), MINUTE: (HOUR, _DAY_MS), HOUR: (HOUR, _DAY_MS)}

_encode_devices = msgspec.json.Encoder().encode
_decode_devices = msgspec.json.Decoder(tuple[Device, ...]).decode


@dataclass(frozen=True)
class PackedSegment:
    """A segment that is yet to be unpacked."""

    number: int
    devices: tuple[Device, ...]
    from_ms: float
    to_ms: float
    packed: bytes


def store_frames(
    connection: sqlite3.Connection, frames: Table, devices: Sequence[Device]
) -> None:
    description = _describe(connection, devices)
    seconds = seconds_of(frames, devices)
    for step_ms, table in (
        (FRAMES, frames),
        (SECOND, seconds),
        (MINUTE, longer(seconds, MINUTE)),
        (HOUR, longer(seconds, HOUR)),
    ):
        _insert(connection, step_ms, description, table)


def next_merge(connection: sqlite3.Connection, now_ms: float) -> bool:
    """Bring segments of one period that is over together; False if none is left.

    Only segments of the same devices are: a period in which devices changed has some.
    """
    for step_ms, periods_ms in _PERIODS_MS.items():
        for period_ms in periods_ms:
            row = connection.execute(
                "SELECT CAST((to_ms - 1) / ? AS INTEGER) AS period, description"
                " FROM segment WHERE step_ms = ? AND to_ms <= ? AND to_ms > ?"
                " GROUP BY period, description HAVING count(*) > 1 LIMIT 1",
                (
                    period_ms,
                    step_ms,
                    now_ms // period_ms * period_ms,
                    # older ones were brought together long ago, or can't be
                    now_ms - 2 * _DAY_MS,
                ),
            ).fetchone()
            if row is not None:
                _merge(connection, step_ms, row[0] * period_ms, period_ms, row[1])
                return True
    return False


def _merge(
    connection: sqlite3.Connection,
    step_ms: int,
    period_from_ms: float,
    period_ms: float,
    description: int,
) -> None:
    where = "step_ms = ? AND description = ? AND to_ms - 1 >= ? AND to_ms - 1 < ?"
    span = (step_ms, description, period_from_ms, period_from_ms + period_ms)
    rows = connection.execute(
        f"SELECT columns FROM segment WHERE {where} ORDER BY number", span
    ).fetchall()
    tables = [
        table
        for (packed,) in rows
        if (table := unpack_or_leave_out(packed, step_ms)) is not None
    ]
    connection.execute(f"DELETE FROM segment WHERE {where}", span)
    # what can't be brought together is damage, and would be met again and again
    table = joined(that_fit(tables))
    if table.rows:
        _insert(connection, step_ms, description, longer(table, step_ms))


def stored(
    connection: sqlite3.Connection, step_ms: int, from_ms: float, to_ms: float
) -> Iterator[PackedSegment]:
    """Give the segments that meet a span, in the order in which they were written."""
    rows = connection.execute(
        "SELECT number, devices, from_ms, to_ms, columns FROM segment"
        " JOIN description ON description.id = segment.description"
        " WHERE step_ms = ? AND to_ms >= ? AND from_ms <= ? ORDER BY number",
        (step_ms, from_ms, to_ms),
    )
    known: dict[str, tuple[Device, ...]] = {}
    for number, text, begin_ms, end_ms, packed in rows:
        if text not in known:
            known[text] = _read_devices(text)
        yield PackedSegment(number, known[text], begin_ms, end_ms, packed)


def _read_devices(text: str) -> tuple[Device, ...]:
    """Read a description; none of its devices where it is damaged."""
    try:
        return _decode_devices(text)
    except UNREADABLE as error:
        _log.warning("A description in the archive can't be read: %s", error)
        return ()


def _insert(
    connection: sqlite3.Connection, step_ms: int, description: int, table: Table
) -> None:
    ends_ms = table.to_ms
    # of a summary, since when anything was read, and not when its hour began
    from_ms = float((table.columns[FROM_MS] if step_ms else ends_ms).min())
    connection.execute(
        "INSERT INTO segment (step_ms, description, from_ms, to_ms, columns)"
        " VALUES (?, ?, ?, ?, ?)",
        (step_ms, description, from_ms, float(ends_ms.max()), pack(table)),
    )


def _describe(connection: sqlite3.Connection, devices: Sequence[Device]) -> int:
    """Give the number of these devices' description."""
    text = _encode_devices(tuple(devices)).decode()
    connection.execute(
        "INSERT OR IGNORE INTO description (devices) VALUES (?)", (text,)
    )
    row = connection.execute("SELECT id FROM description WHERE devices = ?", (text,))
    return int(row.fetchone()[0])
