"""An SQLite file of a stranger, read without running anything that it holds.

It is opened read-only and immutable. Only tables are read, by names and columns that
are written here: no view, no virtual table, no computed column, no function but
`typeof`, no trigger, no extension. Rows, text and time are bounded. SQLite gives a
value only if it is of the kind that is asked for: rows can share one large value, so
that a small file has many times its size of them.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from warpbook_monitors.budget import NSYS, READ_S
from warpbook_monitors.plain_file import check_plain
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.model.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)

MAGIC = b"SQLite format 3\0"
_HEAD_BYTES = 100
#: how SQLite says that a page is not there
_MALFORMED = "disk image is malformed"
#: of all tables together
MAX_ROWS = NSYS.items
MAX_SECONDS = READ_S
#: of all names together, as they are in the file
MAX_TEXT_BYTES = NSYS.text_bytes
_AT_ONCE = 50_000
_MOST_COLUMNS = 2_000
#: of one name, which no report shows in full
_NAME_BYTES = 8_000
#: of the statement that made a table, as SQLite reads it
_STATEMENT_BYTES = 100_000
#: instructions of SQLite's machine between two looks at the clock
_INSTRUCTIONS = 1_000
_VERSION = re.compile(r"_?V?\d{1,4}$")
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
_FUNCTION = 31
#: SQLITE_LIMIT_LENGTH and SQLITE_LIMIT_SQL_LENGTH, which Python 3.10 does not name
_LIMIT_LENGTH, _LIMIT_STATEMENT = 0, 1
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
        self._text_bytes = 0
        self._until_s = time.monotonic() + MAX_SECONDS
        try:
            check_plain(Path(path))
            size_bytes = Path(path).stat().st_size
            with Path(path).open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError as problem:
            why = problem.strerror or problem
            raise TraceFileError(path, f"can't be read: {why}") from problem
        if not head.startswith(MAGIC):
            raise NotATrace(path, "no SQLite file.")
        if size_bytes > NSYS.most_bytes:
            raise TraceTooLarge(path, f"larger than {NSYS.most_bytes:,} bytes.")
        #: as its end is missing, tables may end early
        self.is_cut = size_bytes < _written_bytes(head)
        uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            with self._reading():
                self._restrict()
                self._tables = self._find_tables()
                self._connection.set_authorizer(_authorize)
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
        pieces = [
            np.array(rows, np.int64)
            for rows in (self._pieces(table, present) if present else ())
        ]
        count = sum(map(len, pieces))
        columns = {name: np.full(count, NONE, np.int64) for name in wanted}
        for at, column in enumerate(present if pieces else ()):
            np.concatenate([piece[:, at] for piece in pieces], out=columns[column])
        return columns

    def rows(
        self, name: str, wanted: Sequence[str], needed: Sequence[str] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Read whole numbers and texts; what is something else, or not there, is NONE.

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
        for piece in self._pieces(table, present, ("text",)) if present else ():
            for row in piece:
                yield tuple(
                    row[place[name]] if name in place else NONE for name in wanted
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

    def _pieces(
        self,
        table: str,
        present: Sequence[str],
        kinds: Sequence[str] = (),
        limit: int = MAX_ROWS + 1,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Read whole numbers, and values of further kinds; all else is NONE."""
        # the kind is in a row's head: what is NONE is never read. Names are ours, and
        # were found in the file's schema
        taken = ", ".join(f"'{kind}'" for kind in ("integer", *kinds))
        values = ", ".join(
            f"""CASE WHEN typeof("{name}") IN ({taken}) THEN "{name}" ELSE {NONE} END"""
            for name in present
        )
        with self._reading():
            rows = self._until_cut(
                f'SELECT {values or "1"} FROM "{table}" LIMIT {limit}'
            )
            while piece := list(islice(rows, _AT_ONCE)):
                self._rows += len(piece)
                if self._rows > MAX_ROWS:
                    raise TraceTooLarge(self.path, f"more than {MAX_ROWS:,} rows.")
                yield piece

    def _until_cut(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Read rows; of a file that is cut, those before what is missing."""
        try:
            yield from self._connection.execute(statement)
        except sqlite3.DatabaseError as problem:
            if not self.is_cut or _MALFORMED not in str(problem):
                raise

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Say in words what SQLite refuses."""
        try:
            yield
        except (sqlite3.Error, OverflowError, ValueError) as problem:
            if time.monotonic() > self._until_s:
                raise TraceTooLarge(
                    self.path, f"it takes more than {MAX_SECONDS:.0f} s to read."
                ) from None
            # SQLite quotes names of the file, which need not be UTF-8
            is_name = isinstance(problem, ValueError)
            why = "its schema is malformed" if is_name else problem
            why = "the file is cut off" if self.is_cut else why
            raise TraceDamaged(self.path, f"can't be read: {why}.") from None

    def _read_text(self, content: bytes) -> str:
        """Take one text of SQLite; all of them are counted, whatever is kept."""
        self._text_bytes += len(content)
        if self._text_bytes > MAX_TEXT_BYTES:
            raise TraceTooLarge(
                self.path, f"more than {MAX_TEXT_BYTES:,} bytes of names."
            )
        # names need not be UTF-8
        return content[:_NAME_BYTES].decode("utf-8", "replace")

    def _restrict(self) -> None:
        connection = self._connection
        connection.text_factory = self._read_text
        connection.set_progress_handler(self._is_late, _INSTRUCTIONS)
        if hasattr(connection, "setlimit"):  # Python 3.11
            connection.setlimit(_LIMIT_LENGTH, NSYS.value_bytes)
            connection.setlimit(_LIMIT_STATEMENT, _STATEMENT_BYTES)
        for setting in (
            "trusted_schema=OFF",
            "query_only=ON",
            "mmap_size=0",
            "cell_size_check=ON",
        ):
            connection.execute(f"PRAGMA {setting}")
        if self.is_cut:
            # else SQLite opens no file that is shorter than it says
            connection.execute("PRAGMA writable_schema=ON")

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


def _written_bytes(head: bytes) -> int:
    """Tell how large a file says that it is."""
    if head[24:28] != head[92:96]:
        # SQLite does not believe the number of pages then
        return 0
    page_bytes = int.from_bytes(head[16:18], "big")
    # 1 stands for what two bytes can't hold
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    return page_bytes * int.from_bytes(head[28:32], "big")


def _authorize(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    is_typeof = action == _FUNCTION and name == "typeof"
    allowed = is_typeof or action in _ALLOWED
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def sensible(values: Int64s) -> npt.NDArray[np.bool_]:
    """Choose what can be a time or a size."""
    fits: npt.NDArray[np.bool_] = (values >= 0) & (values < _LARGEST)
    return fits
