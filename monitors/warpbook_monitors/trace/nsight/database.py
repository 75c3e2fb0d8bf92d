"""An SQLite file of a stranger, read without running anything that it holds.

It is opened read-only and immutable. Only tables are read, by names and columns that
are written here: no view, no virtual table, no computed column, no function, no
trigger, no extension. Rows, text and time are bounded.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from warpbook_monitors.plain_file import check_plain
from warpbook_monitors.trace.columns import NONE, Int64s
from warpbook_monitors.trace.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)

MAGIC = b"SQLite format 3\0"
MAX_BYTES = 8_000_000_000
#: of all tables together
MAX_ROWS = 10_000_000
MAX_SECONDS = 120.0
#: of one value; names are cut further when they become columns
MAX_VALUE_BYTES = 1_000_000
MAX_TEXT = 500_000_000
_AT_ONCE = 50_000
_MOST_COLUMNS = 2_000
#: instructions of SQLite's machine between two looks at the clock
_INSTRUCTIONS = 100_000
_VERSION = re.compile(r"_?V?\d{1,4}$")
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
#: SQLITE_LIMIT_LENGTH, which Python 3.10 does not name
_LIMIT_LENGTH = 0
#: 2^53: beyond it no time and no size is one
_LARGEST = 9_007_199_254_740_992


class Database:
    """The tables of one file; use it as a context."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            TraceFileError: it is no SQLite file, is too large or can't be read.
        """
        self.path = path
        #: tables that are not read, though they have names that are
        self.unknown: set[str] = set()
        self._rows = 0
        self._text = 0
        self._until_s = time.monotonic() + MAX_SECONDS
        try:
            check_plain(Path(path))
            size_bytes = Path(path).stat().st_size
            with Path(path).open("rb") as file:
                magic = file.read(len(MAGIC))
        except OSError as problem:
            why = problem.strerror or problem
            raise TraceFileError(path, f"can't be read: {why}") from problem
        if magic != MAGIC:
            raise NotATrace(path, "no SQLite file.")
        if size_bytes > MAX_BYTES:
            raise TraceTooLarge(path, f"larger than {MAX_BYTES:,} bytes.")
        uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            self._restrict()
            self._tables = self._find_tables()
            self._connection.set_authorizer(_authorize)
        except sqlite3.Error as problem:
            self._connection.close()
            raise TraceDamaged(path, f"can't be read: {problem}.") from problem
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Database:
        """Keep it open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._connection.close()

    def numbers(
        self, name: str, wanted: Sequence[str], needed: Sequence[str] = ()
    ) -> dict[str, Int64s]:
        """Read columns of whole numbers; what is not there, or is none, is NONE.

        Args:
            name: of the table, which may end in a version.
            wanted: its columns.
            needed: without these it is another table, noted in `unknown`.

        Raises:
            TraceFileError: there are too many rows, it takes too long, or is damaged.
        """
        table = self._table(name, needed)
        present = [column for column in wanted if column in self._columns(table)]
        pieces = list(self._pieces(table, present)) if present else []
        count = sum(map(len, pieces))
        columns = {name: np.full(count, NONE, np.int64) for name in wanted}
        begin = 0
        for piece in pieces:
            values = _as_numbers(piece)
            for at, name in enumerate(present):
                columns[name][begin : begin + len(piece)] = values[:, at]
            begin += len(piece)
        return columns

    def rows(
        self, name: str, wanted: Sequence[str], needed: Sequence[str] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Read rows as they are; a column that is not there is None in each.

        Args:
            name: of the table, which may end in a version.
            wanted: its columns.
            needed: without these it is another table, noted in `unknown`.

        Raises:
            TraceFileError: there are too many rows, it takes too long, or is damaged.
        """
        table = self._table(name, needed)
        present = [column for column in wanted if column in self._columns(table)]
        place = {name: at for at, name in enumerate(present)}
        for piece in self._pieces(table, present) if present else ():
            for row in piece:
                self._count_text(row)
                yield tuple(
                    row[place[name]] if name in place else None for name in wanted
                )

    def _table(self, name: str, needed: Sequence[str]) -> str:
        """Give the table with rows that has a name or a later version of it, or ""."""
        versions = [
            table
            for table in sorted(self._tables, key=lambda table: (len(table), table))
            if _VERSION.sub("", table.upper()) == name.upper()
            and any(True for _ in self._pieces(table, (), limit=1))
        ]
        known = [table for table in versions if self._tables[table].issuperset(needed)]
        self.unknown |= {table for table in versions if table not in known[-1:]}
        return known[-1] if known else ""

    def _columns(self, table: str) -> frozenset[str]:
        return self._tables.get(table, frozenset())

    def _count_text(self, row: tuple[Any, ...]) -> None:
        self._text += sum(len(value) for value in row if isinstance(value, str))
        if self._text > MAX_TEXT:
            raise TraceTooLarge(self.path, f"more than {MAX_TEXT:,} letters of names.")

    def _pieces(
        self, table: str, present: Sequence[str], limit: int = MAX_ROWS + 1
    ) -> Iterator[list[tuple[Any, ...]]]:
        # both are names of ours that were found in the file's schema
        quoted = ", ".join(f'"{name}"' for name in present) or "1"
        try:
            cursor = self._connection.execute(
                f'SELECT {quoted} FROM "{table}" LIMIT {limit}'
            )
            while piece := cursor.fetchmany(_AT_ONCE):
                self._rows += len(piece)
                if self._rows > MAX_ROWS:
                    raise TraceTooLarge(self.path, f"more than {MAX_ROWS:,} rows.")
                yield piece
        except sqlite3.OperationalError as problem:
            if time.monotonic() > self._until_s:
                raise TraceTooLarge(
                    self.path, f"it takes more than {MAX_SECONDS:.0f} s to read."
                ) from None
            raise TraceDamaged(self.path, f"can't be read: {problem}.") from None
        except (sqlite3.Error, OverflowError) as problem:
            raise TraceDamaged(self.path, f"can't be read: {problem}.") from None

    def _restrict(self) -> None:
        connection = self._connection
        # names need not be UTF-8
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        for setting in (
            "trusted_schema=OFF",
            "query_only=ON",
            "mmap_size=0",
            "cell_size_check=ON",
        ):
            connection.execute(f"PRAGMA {setting}")
        if hasattr(connection, "setlimit"):  # Python 3.11
            connection.setlimit(_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_progress_handler(self._is_late, _INSTRUCTIONS)

    def _is_late(self) -> int:
        return int(time.monotonic() > self._until_s)

    def _find_tables(self) -> dict[str, frozenset[str]]:
        """Give the plain tables; a view of the same name could compute for ever."""
        tables = {}
        schema = "SELECT type, name, sql FROM sqlite_master"
        for kind, name, sql in self._connection.execute(schema).fetchmany(10_000):
            if kind != "table" or not isinstance(name, str) or '"' in name:
                continue
            if not isinstance(sql, str) or not sql.upper().startswith("CREATE TABLE"):
                continue
            about = self._connection.execute(f'PRAGMA table_xinfo("{name}")')
            columns = about.fetchmany(_MOST_COLUMNS)
            # the last of each tells whether it is hidden, or computed when it is read
            if not any(column[-1] for column in columns):
                tables[name] = frozenset(str(column[1]) for column in columns)
        return tables


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _as_numbers(rows: list[tuple[Any, ...]]) -> npt.NDArray[np.int64]:
    """Make numbers of rows; what is no whole number of sensible size is NONE."""
    try:
        values: npt.NDArray[np.int64] = np.array(rows, np.int64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([[_number(value) for value in row] for row in rows], np.int64)
    return values


def _number(value: object) -> int:
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return NONE


def sensible(values: Int64s) -> npt.NDArray[np.bool_]:
    """Choose what can be a time or a size."""
    fits: npt.NDArray[np.bool_] = (values >= 0) & (values < _LARGEST)
    return fits
