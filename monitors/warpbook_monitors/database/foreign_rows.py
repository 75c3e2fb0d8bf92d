"""Rows of a database that somebody else made, copied into one that was made here.

Nothing but values comes over: no schema, index, trigger or setting of the other file.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpbook_monitors.plain_text import bounded

#: of SQLite in this process, for good: a value takes two or three times its size
_MOST_HEAP_BYTES = 256 * 2**20
_LEAST_S = 60.0
_BYTES_PER_S = 2_000_000
_STEPS = 100_000
#: as many bytes as a row takes at least
_ROW_BYTES = 2
#: the next number still has room to be drawn
_MOST_NUMBER = 2**53
_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "BIGINT": (int,),
    "REAL": (float,),
    "DOUBLE PRECISION": (float,),
    "TEXT": (str,),
    "BLOB": (bytes,),
}


class ForeignDatabase(Exception):
    """It is not what a database of ours is; the message says why."""


def copy_rows(source: Path, fresh: sqlite3.Connection) -> None:
    """Copy all rows, in one transaction.

    Tables and columns have to be those of `fresh`, by what SQLite itself says of them.
    A file holds each byte of its values once: what gives more than it has is refused.

    Args:
        source: of the same format; it is only read.
        fresh: without rows, and with `foreign_keys` on where they have to hold.

    Raises:
        ForeignDatabase: it is damaged, has other tables, or values of other types.
        Error: of SQLite, where the disk is full.
    """
    budget = _Budget()
    try:
        with contextlib.closing(
            sqlite3.connect(
                f"{source.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
            )
        ) as read:
            # nothing that the file says is run: it may be made to do harm
            read.execute("PRAGMA trusted_schema = 0")
            read.execute("PRAGMA cell_size_check = 1")
            read.execute(f"PRAGMA hard_heap_limit = {_MOST_HEAP_BYTES}")
            budget.begin(read)
            read.set_progress_handler(budget.is_spent, _STEPS)
            _refuse_others(read, fresh)
            fresh.execute("BEGIN IMMEDIATE")
            fresh.execute("PRAGMA defer_foreign_keys = 1")
            read.execute("BEGIN")
            for table in _tables(fresh):
                _copy(read, fresh, table, budget)
            fresh.execute("COMMIT")
    except MemoryError:
        raise ForeignDatabase("a value is too large") from None
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if "full" in str(error):
            # of the disk that it is copied to
            raise
        words = "it takes too long" if budget.is_spent() else bounded(str(error))
        raise ForeignDatabase(words) from None


class _Budget:
    """What reading a file may take."""

    def __init__(self) -> None:
        self._left_bytes = 0
        self._end_s = time.process_time() + _LEAST_S

    def begin(self, read: sqlite3.Connection) -> None:
        (pages,) = read.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = read.execute("PRAGMA page_size").fetchone()
        self._left_bytes = pages * page_bytes
        self._end_s += self._left_bytes / _BYTES_PER_S

    def is_spent(self) -> bool:
        return time.process_time() > self._end_s

    def take(self, size_bytes: int) -> None:
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise ForeignDatabase("its values take more room than the file")


def _tables(fresh: sqlite3.Connection) -> list[str]:
    rows = fresh.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB "
        "'sqlite_*' ORDER BY rowid"
    )
    return [name for (name,) in rows]


def _refuse_others(read: sqlite3.Connection, fresh: sqlite3.Connection) -> None:
    """Refuse what SQLite would run, and tables other than ours."""
    query = (
        "SELECT type, name, tbl_name, type = 'table' AND NOT coalesce(rootpage, 0)"
        " FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
    )
    ours = set(fresh.execute(query))
    for row in read.execute(query):
        if row not in ours:
            name = bounded(str(row[1]))
            raise ForeignDatabase(f"it is not a database of warpbook: it has {name}")
    for table in _tables(fresh):
        columns = f'PRAGMA table_xinfo("{table}")'
        if read.execute(columns).fetchall() != fresh.execute(columns).fetchall():
            raise ForeignDatabase(
                f"it is not a database of warpbook: its {table} has other columns"
            )


def _copy(
    read: sqlite3.Connection, fresh: sqlite3.Connection, table: str, budget: _Budget
) -> None:
    columns = fresh.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    names = ", ".join(f'"{name}"' for _, name, *_ in columns)
    # no index of the other file is asked
    rows = read.execute(f'SELECT {names} FROM "{table}" NOT INDEXED')
    kinds = [(name, _TYPES[kind], key > 0) for _, name, kind, _, _, key, _ in columns]
    places = ", ".join("?" * len(columns))
    fresh.executemany(
        f'INSERT INTO "{table}" ({names}) VALUES ({places})',
        _checked(table, rows, kinds, budget),
    )


def _checked(
    table: str,
    rows: sqlite3.Cursor,
    kinds: list[tuple[str, tuple[type, ...], bool]],
    budget: _Budget,
) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        taken_bytes = _ROW_BYTES
        for value, (name, types, is_key) in zip(row, kinds, strict=True):
            if value is None:
                # the fresh table says where it may be
                continue
            fits = isinstance(value, types)
            if isinstance(value, str | bytes):
                taken_bytes += len(value)
            elif is_key:
                fits = fits and abs(value) < _MOST_NUMBER
            elif isinstance(value, float):
                fits = fits and math.isfinite(value)
            if not fits:
                raise ForeignDatabase(
                    f"a value of {table}.{name} is not one that warpbook writes"
                )
        budget.take(taken_bytes)
        yield row
