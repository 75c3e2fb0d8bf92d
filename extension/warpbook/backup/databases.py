"""The databases of a backup: copied while others write, and looked through."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from warpbook.backup.manifest import LABS, BackupError
from warpbook_labs.course import store_format
from warpbook_monitors.archive import database as archive_file
from warpbook_monitors.archive.errors import ArchiveError

#: others write for milliseconds; whoever holds a file for so long hangs
_PATIENCE_S = 60.0
#: of a schema of ours, in which no text holds what looks like one
_COMMENTS = re.compile(r"--[^\n]*")
_WORDS = re.compile(r"\w+|[^\w\s]")


def copy_database(source: Path, target: Path) -> int:
    """Copy one moment of a database that others may be writing; give its format.

    Raises:
        BackupError: it is damaged, or held by somebody all the time.
    """
    with _opened(source, "rw") as read, _opened(target, "rwc") as written:
        _copy(read, written, source)
        (version,) = written.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_database(name: str, path: Path) -> None:
    """Look through a database of somebody else's, and bring it to today's format.

    Raises:
        BackupError: it is damaged, newer than this warpbook, or not what it should be.
    """
    bring_up_to_date = _migrate_labs if name == LABS else _migrate_archive
    try:
        with _opened(path, "rw") as connection:
            # nothing that the file says is run: it may be made to do harm
            connection.execute("PRAGMA trusted_schema = 0")
            connection.execute("PRAGMA cell_size_check = 1")
            _refuse_programs(name, connection)
            if name != LABS:
                # refused before a damaged or newer one would be mended
                archive_file.connect_to_read(path).close()
            _refuse_other_schemas(name, connection)
            # it would run what a schema of somebody else's computes
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise BackupError(f"{name} in it is damaged: {state}")
        bring_up_to_date(path)
    except (ArchiveError, store_format.NewerFormat) as error:
        raise BackupError(f"{name} in it can't be used: {error}") from None


def put_database(source: Path, target: Path) -> None:
    """Put a database in the place of another, which others may have open.

    It is one transaction: a kill leaves the whole of the one or the other.

    Raises:
        BackupError: somebody holds the file all the time, or its pages differ in size.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600)
    target.chmod(0o600)
    with _opened(source, "rw") as read, _opened(target, "rw") as written:
        written.execute("PRAGMA journal_mode = WAL")
        (before,) = written.execute("PRAGMA page_size").fetchone()
        (after,) = read.execute("PRAGMA page_size").fetchone()
        if before != after:
            raise BackupError(f"{target}: its pages have {before} bytes, not {after}.")
        _copy(read, written, target)


def is_damaged(path: Path) -> bool:
    """Whether SQLite can't read a file that is there."""
    try:
        with _opened(path, "rw") as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BackupError:
        return True
    return False


def _copy(read: sqlite3.Connection, written: sqlite3.Connection, path: Path) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    before = [-1, -1]

    def look(_status: int, remaining: int, total: int) -> None:
        # it is called after each try, also after one that found the file held
        if [remaining, total] == before and time.monotonic() > end_s:
            raise BackupError(f"{path}: another program holds it: end that.")
        before[:] = remaining, total

    read.backup(written, pages=-1, progress=look, sleep=0.1)


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(
            sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=_PATIENCE_S,
                isolation_level=None,
            )
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        raise BackupError(f"{path}: {error}.") from None


def _refuse_programs(name: str, connection: sqlite3.Connection) -> None:
    """Refuse what SQLite would run as soon as it is asked for: views, triggers."""
    for kind, item in connection.execute("SELECT type, name FROM sqlite_master"):
        if kind not in ("table", "index"):
            raise BackupError(f"{name} in it has what no database of ours has: {item}.")


def _refuse_other_schemas(name: str, connection: sqlite3.Connection) -> None:
    """Refuse all but what we make of that format, word by word.

    So no column computes, no check fails, and no default fills memory.
    """
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        if name == LABS:
            # it refuses a newer one
            store_format.check(connection)
            store_format.bring_up_to_date(ours, form)
        else:
            archive_file.migrate(ours, form)
        if _schema(connection) != _schema(ours):
            raise BackupError(f"{name} in it is not what it should be.")


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Give what a database consists of, without comments and spaces."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {
        (kind, item, table, *_WORDS.findall(_COMMENTS.sub(" ", sql or "")))
        for kind, item, table, sql in rows
    }


def _migrate_archive(path: Path) -> None:
    archive_file.connect(path).close()


def _migrate_labs(path: Path) -> None:
    with _opened(path, "rwc") as connection:
        store_format.bring_up_to_date(connection)
        if connection.in_transaction:
            connection.execute("COMMIT")
