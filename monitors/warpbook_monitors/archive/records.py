"""Puts records into the archive, and finds them by id, text, verdict, time."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.record import KeptRecord, RecordKind
from warpbook_monitors.archive.retention import last_too_old

#: a list holds no more at a time
MOST_FOUND = 200
#: of those that began in the same millisecond as the last one of a list
_MOST_AT_ONE_TIME = 1000
MAX_TEXT = 200
_MOST_WORDS = 8
#: no message is larger; a damaged or hostile file may say otherwise
_MAX_MESSAGE_BYTES = 16_000_000
#: removed at a time: a transaction stays short
_MOST_DROPPED = 2000

_COLUMNS = KeptRecord.__struct_fields__
_LISTED = ", ".join(_COLUMNS)
_PUT = f"""
INSERT INTO record ({_LISTED}, server, body, body_bytes)
VALUES ({", ".join(f":{name}" for name in _COLUMNS)}, :server, :body, :body_bytes)
ON CONFLICT (kind, id) DO UPDATE SET
{", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)},
server = excluded.server, body = excluded.body, body_bytes = excluded.body_bytes
-- what a page or a kernel told before the end and comes after it is told no more
WHERE excluded.ended_ms IS NOT NULL OR record.ended_ms IS NULL
"""


@dataclass(frozen=True)
class Search:
    """What is looked for; None is anything."""

    #: words that title, notebook or sentence hold, each somewhere
    text: str = ""
    notebook: str | None = None
    kinds: tuple[RecordKind, ...] = ()
    verdict: str | None = None
    #: it ran, or held, at some time of this span (Unix ms)
    from_ms: float | None = None
    to_ms: float | None = None
    #: it began before this time
    before_ms: float | None = None
    limit: int = MOST_FOUND


def put(
    connection: sqlite3.Connection,
    record: KeptRecord,
    message: bytes,
    server: str,
    limits: Limits,
) -> bool:
    """Keep a record and its message, in the place of one with the same id.

    Args:
        connection: one that writes, in a transaction.
        record: what it is found by.
        message: as views are sent it, JSON.
        server: who will tell the end of what has not ended yet.
        limits: the oldest records make room.

    Returns:
        False where the end of this one is kept already and this is told from before.
    """
    body = zlib.compress(message, 6)
    row = {name: getattr(record, name) for name in _COLUMNS}
    row |= {
        "server": server if record.ended_ms is None else None,
        "body": body,
        "body_bytes": len(body),
    }
    is_put = connection.execute(_PUT, row).rowcount > 0
    _make_room(connection, limits)
    return is_put


def message_of(
    connection: sqlite3.Connection, kind: RecordKind, record_id: str
) -> bytes | None:
    """Give the message of a record, as JSON; None where it is not kept."""
    row = connection.execute(
        "SELECT body FROM record WHERE kind = ? AND id = ?", (kind, record_id)
    ).fetchone()
    return None if row is None else unpack_message(row[0])


def newest_messages(
    connection: sqlite3.Connection, kind: RecordKind, most: int
) -> list[bytes]:
    """Give the messages of the newest records of a kind that ended, oldest first."""
    rows = connection.execute(
        "SELECT body FROM record WHERE kind = ? AND ended_ms IS NOT NULL"
        " ORDER BY started_ms DESC LIMIT ?",
        (kind, most),
    ).fetchall()
    messages = (unpack_message(body) for (body,) in reversed(rows))
    return [message for message in messages if message is not None]


def messages_of_cell(
    connection: sqlite3.Connection,
    kind: RecordKind,
    cell_id: str,
    before_ms: float,
    most: int,
) -> list[bytes]:
    """Give the messages of one cell that began before a time, the newest first."""
    rows = connection.execute(
        "SELECT body FROM record WHERE cell_id = ? AND started_ms < ? AND kind = ?"
        " ORDER BY started_ms DESC LIMIT ?",
        (cell_id, before_ms, kind, most),
    ).fetchall()
    messages = (unpack_message(body) for (body,) in rows)
    return [message for message in messages if message is not None]


def find(
    connection: sqlite3.Connection, search: Search
) -> tuple[list[KeptRecord], bool]:
    """Give what matches, the newest first, and whether older ones match, too.

    A list ends where a millisecond ends, so that `before_ms` of its last one leaves
    none out: it is a little longer than asked for where several began at one time.
    """
    limit = max(1, min(search.limit, MOST_FOUND))
    conditions, values = _conditions(search)
    rows = _select(connection, conditions, values, limit + 1)
    if len(rows) <= limit:
        return rows, False
    last_ms = rows[limit - 1].started_ms
    if rows[limit].started_ms == last_ms:
        earlier = [record for record in rows if record.started_ms > last_ms]
        at_last = _select(
            connection,
            [*conditions, "started_ms = ?"],
            [*values, last_ms],
            _MOST_AT_ONE_TIME,
        )
        rows = earlier + at_last
    else:
        rows = rows[:limit]
    older = _select(connection, [*conditions, "started_ms < ?"], [*values, last_ms], 1)
    return rows, bool(older)


def drop_old_records(
    connection: sqlite3.Connection, limits: Limits, now_ms: float | None
) -> bool:
    """Remove records older than `limits.summaries_ms`, and beyond size and number.

    It removes a bounded number at a time: call it again, each minute or so. Without a
    `now_ms` that can be believed, nothing is removed for its age.

    Returns:
        Whether anything was removed.
    """
    dropped = _make_room(connection, limits)
    if now_ms is not None:
        oldest_ms = now_ms - limits.summaries_ms
        last = last_too_old(connection, "record WHERE", "started_ms", oldest_ms, now_ms)
        dropped += connection.execute(
            "DELETE FROM record WHERE rowid IN"
            " (SELECT rowid FROM record WHERE rowid <= ? ORDER BY rowid LIMIT ?)",
            (last, _MOST_DROPPED),
        ).rowcount
    if dropped:
        connection.execute(
            "DELETE FROM timeline WHERE report_id NOT IN"
            " (SELECT id FROM record WHERE kind = 'report')"
        )
    return dropped > 0


def unpack_message(body: bytes) -> bytes | None:
    """Give the message of a body; None where it is damaged or far too large."""
    unpacker = zlib.decompressobj()
    try:
        message = unpacker.decompress(body, _MAX_MESSAGE_BYTES)
    except UNREADABLE:
        return None
    return message if unpacker.eof else None


def _make_room(connection: sqlite3.Connection, limits: Limits) -> int:
    """Remove the oldest beyond number and size; give how many."""
    count, size_bytes = connection.execute(
        "SELECT count(*), coalesce(sum(body_bytes), 0) FROM record"
    ).fetchone()
    over = count - limits.records
    over_bytes = size_bytes - limits.records_bytes
    if over <= 0 and over_bytes <= 0:
        return 0
    oldest = connection.execute(
        # as they were written: a wrong clock may have stamped them
        "SELECT rowid, body_bytes FROM record ORDER BY rowid LIMIT ?",
        (_MOST_DROPPED,),
    )
    rows = []
    for rowid, body_bytes in oldest:
        if over <= 0 and over_bytes <= 0:
            break
        rows.append((rowid,))
        over -= 1
        over_bytes -= body_bytes
    connection.executemany("DELETE FROM record WHERE rowid = ?", rows)
    return len(rows)


def _conditions(search: Search) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    for word in search.text[:MAX_TEXT].split()[:_MOST_WORDS]:
        columns = ("title", "coalesce(notebook, '')", "sentence")
        likes = " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in columns)
        conditions.append(f"({likes})")
        values += [f"%{_escaped(word)}%"] * len(columns)
    if search.notebook is not None:
        conditions.append("notebook = ?")
        values.append(search.notebook)
    if search.kinds:
        conditions.append(f"kind IN ({', '.join('?' * len(search.kinds))})")
        values += search.kinds
    if search.verdict is not None:
        conditions.append("verdict = ?")
        values.append(search.verdict)
    if search.from_ms is not None:
        # what has not ended runs still
        conditions.append("(ended_ms IS NULL OR ended_ms >= ?)")
        values.append(search.from_ms)
    for time_ms, comparison in ((search.to_ms, "<="), (search.before_ms, "<")):
        if time_ms is not None:
            conditions.append(f"started_ms {comparison} ?")
            values.append(time_ms)
    return conditions, values


def _select(
    connection: sqlite3.Connection,
    conditions: Sequence[str],
    values: Sequence[object],
    limit: int,
) -> list[KeptRecord]:
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = connection.execute(
        f"SELECT {_LISTED} FROM record {where}"
        " ORDER BY started_ms DESC, rowid DESC LIMIT ?",
        (*values, limit),
    )
    return list(_records(rows))


def _records(rows: Iterable[Sequence[object]]) -> Iterator[KeptRecord]:
    for row in rows:
        columns = dict(zip(_COLUMNS, row, strict=True))
        columns["is_replay"] = bool(columns["is_replay"])
        # SQLite keeps anything in a column, and the file may be somebody else's
        with contextlib.suppress(msgspec.ValidationError):
            yield msgspec.convert(columns, KeptRecord)


def _escaped(text: str) -> str:
    for sign in ("\\", "%", "_"):
        text = text.replace(sign, f"\\{sign}")
    return text
