"""The databases of a backup: copied while others write, and made anew of their rows."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from warpbook.backup.manifest import BackupError
from warpbook_labs.course import store_format
from warpbook_monitors.archive import database as archive_file
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.database.foreign_rows import ForeignDatabase, copy_rows

#: others write for milliseconds; whoever holds a file for so long hangs
_PATIENCE_S = 60.0


def copy_database(source: Path, target: Path) -> int:
    """Copy one moment of a database that others may be writing; give its format.

    Raises:
        BackupError: it is damaged, or held by somebody all the time.
    """
    with _opened(source, "rw") as read, _opened(target, "rwc") as written:
        _copy(read, written, source)
        (version,) = written.execute("PRAGMA user_version").fetchone()
    return int(version)


def renew_archive(path: Path) -> None:
    """Put in the place of somebody's archive one that was made here, with its rows.

    Raises:
        BackupError: it is damaged, newer than this warpbook, or of another program.
    """
    with _opened(path, "ro") as read:
        (application,) = read.execute("PRAGMA application_id").fetchone()
        (form,) = read.execute("PRAGMA user_version").fetchone()
    if application != archive_file.APPLICATION_ID:
        raise BackupError("it is not an archive of warpbook")
    if form > archive_file.SCHEMA_VERSION:
        raise BackupError("a newer warpbook wrote it: update warpbook")

    def begin(fresh: sqlite3.Connection) -> None:
        # before the first table: a file that was begun without it never shrinks
        fresh.execute("PRAGMA auto_vacuum = INCREMENTAL")
        archive_file.migrate(fresh, form)

    _renew(path, form, begin)
    with _opened(path, "rw") as written:
        # what else the file says would stop or delete all that comes
        written.execute("UPDATE record SET body_bytes = length(body)")
    try:
        archive_file.connect(path).close()
    except ArchiveError as error:
        raise BackupError(str(error)) from None


def renew_labs(path: Path) -> None:
    """Put in the place of somebody's submissions a file that was made here.

    Raises:
        BackupError: it is damaged, newer than this warpbook, or of another program.
    """
    try:
        with _opened(path, "ro") as read:
            form = store_format.check(read)
    except store_format.NewerFormat as error:
        raise BackupError(str(error)) from None

    def begin(fresh: sqlite3.Connection) -> None:
        store_format.bring_up_to_date(fresh, form)
        _commit(fresh)
        fresh.execute("PRAGMA foreign_keys = ON")

    _renew(path, form, begin)
    with _opened(path, "rw") as connection:
        store_format.bring_up_to_date(connection)
        _commit(connection)


def _renew(path: Path, form: int, begin: Callable[[sqlite3.Connection], None]) -> None:
    fresh = path.with_name(f"{path.name}.fresh")
    try:
        with _opened(fresh, "rwc") as written:
            # until it is whole, nobody else needs it
            written.execute("PRAGMA synchronous = OFF")
            begin(written)
            copy_rows(path, written)
    except ForeignDatabase as error:
        raise BackupError(str(error)) from None
    if not form:
        raise BackupError("it is not a database of warpbook: it is empty")
    os.replace(fresh, path)


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


def _commit(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("COMMIT")
