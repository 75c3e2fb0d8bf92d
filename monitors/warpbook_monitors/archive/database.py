"""The archive's file: a SQLite database that is opened, migrated, mended or refused.

SQLite's write-ahead log holds what was committed through a kill at any moment; what a
kill left half written is dropped when the file is opened next.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from warpbook_monitors.archive.errors import ArchiveError, ArchiveStopped, ArchiveTooNew
from warpbook_monitors.sql_script import statements

_log = logging.getLogger(__name__)

FILE_NAME = "archive.db"
#: of the newest file `schema_N.sql`
SCHEMA_VERSION = 1
#: marks the file as ours: "wbar"
_APPLICATION_ID = 0x77626172
#: another server of the same person may be writing
_BUSY_S = 10.0
#: beyond it the write-ahead log is folded into the file: 1,000 pages of 4 KiB
_CHECKPOINT_PAGES = 1000
#: what SQLite says of a file that is broken, or has lost tables of its format
_DAMAGE = ("malformed", "not a database", "no such table", "no such column")


def connect(path: Path, is_damaged: bool = False) -> sqlite3.Connection:
    """Open the file for writing; begin, migrate or mend it where that is needed.

    Args:
        path: of the file.
        is_damaged: SQLite said so when it was used.

    Raises:
        ArchiveTooNew: a newer warpbook wrote it.
        ArchiveError: it is another program's file.
        ArchiveStopped: the folder can't be written.
    """
    if is_damaged:
        _mend(path)
    try:
        _make_private(path)
        return _open(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise ArchiveStopped(f"{path}: {error}.") from error
    except OSError as error:
        raise ArchiveStopped(f"{error.filename}: {error.strerror}.") from error
    return connect(path, is_damaged=True)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open the file for reading, in any thread.

    Raises:
        ArchiveError: there is none, or it can't be read.
    """
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA query_only = 1")
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{path}: {error}.") from error
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit all that is done within, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself where the disk was full
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def size_bytes(connection: sqlite3.Connection) -> int:
    """What the file takes of the disk, without pages that are free to be used again."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free_pages) * page_bytes)


def check(connection: sqlite3.Connection) -> None:
    """Look through the whole file, which takes a second for each gigabyte or so.

    Raises:
        DatabaseError: it is damaged.
    """
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"database disk image is malformed: {found}")


def is_damage(error: Exception) -> bool:
    """Whether the file itself is broken: SQLITE_CORRUPT, SQLITE_NOTADB, or its schema.

    What SQLite says of a damaged name may not even be text.
    """
    if isinstance(error, UnicodeDecodeError):
        return True
    words = str(error)
    return isinstance(error, sqlite3.DatabaseError) and any(
        part in words for part in _DAMAGE
    )


def _make_private(path: Path) -> None:
    """Make the folder and the file for nobody but their owner."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    path.touch(mode=0o600)
    path.chmod(0o600)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        # what is not ours is not even given another journal
        _check(connection, path)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if not pages:
            # before the first table: a file that was begun without it never shrinks
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {8 * 2**20}")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """Give the format of the file; 0 where it has just begun."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION_ID and (tables or version):
        raise ArchiveError(
            f"{path}: it is no archive of warpbook. Move it away, or name another "
            "folder in WarpbookApp.archive_folder."
        )
    if version > SCHEMA_VERSION:
        raise ArchiveTooNew(
            f"{path}: it was written by a newer warpbook (format {version}; this one "
            f"knows {SCHEMA_VERSION}). Update warpbook, or name another folder in "
            "WarpbookApp.archive_folder; the file is left as it is."
        )
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest format, or leave it as it is."""
    if _check(connection, path) == SCHEMA_VERSION:
        return
    with transaction(connection):
        # another server may have done it meanwhile
        for version in range(_check(connection, path) + 1, SCHEMA_VERSION + 1):
            for statement in statements(__package__, f"schema_{version}.sql"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")


def _mend(path: Path) -> None:
    """Put a damaged file aside, and begin a new one with what can be read of it."""
    aside = path.with_name(f"{path.stem}.damaged-{time.time_ns()}.db")
    # a write-ahead log of a damaged file must not be played into the new one
    for ending in ("", "-wal", "-shm"):
        source = path.with_name(path.name + ending)
        if source.exists():
            os.replace(source, aside.with_name(aside.name + ending))
    new = connect(path)
    try:
        rows = sum(_salvage(aside, new, table) for table in _tables(new))
    finally:
        new.close()
    _log.error(
        "The archive %s was damaged. What could be read of it, %d rows, was kept; the "
        "damaged file is %s.",
        path,
        rows,
        aside.name,
    )


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master"
        " WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    return [name for (name,) in rows]


def _salvage(damaged: Path, new: sqlite3.Connection, table: str) -> int:
    """Copy the rows of a table up to the damage, from both ends; give how many."""
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
    places = ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({places})"
    count = 0
    with transaction(new), contextlib.closing(sqlite3.connect(damaged)) as old:
        # a file that was cut off is read up to there, and not refused as a whole
        old.execute("PRAGMA writable_schema = 1")
        for order in ("ASC", "DESC"):
            with contextlib.suppress(sqlite3.DatabaseError):
                # by name: an older format may have them in another order
                rows = old.execute(
                    f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid {order}"
                )
                for row in rows:
                    inserted = new.execute(insert, row).rowcount
                    if inserted < 1 and order == "DESC":
                        break
                    count += inserted
    return count
