"""The archive's file: a SQLite database that is opened, migrated, mended or refused.

SQLite's write-ahead log holds what was committed through a kill at any moment; what a
kill left half written is dropped when the file is opened next.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from warpbook_monitors.archive.errors import (
    ArchiveError,
    ArchiveMoved,
    ArchiveStopped,
    ArchiveTooNew,
    is_damage,
)
from warpbook_monitors.archive.file_identity import Identity, identity_of, place_lock
from warpbook_monitors.archive.repair import finish_swap, is_swap_open, mend
from warpbook_monitors.database.format_steps import statements

FILE_NAME = "archive.db"
#: of the newest file `schema_N.sql`
SCHEMA_VERSION = 1
#: marks the file as ours: "wbar"
APPLICATION_ID = 0x77626172
#: another server of the same person may be writing
_BUSY_S = 10.0
#: beyond it the write-ahead log is folded into the file: 1,000 pages of 4 KiB
_CHECKPOINT_PAGES = 1000
#: so often it is mended when it is opened; what was mended is not damaged again
_TRIES = 3


class ArchiveFile(sqlite3.Connection):
    """A connection that writes, and knows which file it has open."""

    path: Path
    identity: Identity | None

    def is_current(self) -> bool:
        """Whether the file is still the one of its name."""
        same = identity_of(self.path) == self.identity
        return same and not is_swap_open(self.path)

    def check_still_ours(self) -> None:
        """Look again, in a transaction, whether one may write into it.

        Raises:
            ArchiveMoved: another file is in its place.
            ArchiveTooNew: a newer warpbook has migrated it.
        """
        if not self.is_current():
            raise ArchiveMoved(f"{self.path}: the file was replaced by another.")
        (version,) = self.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise _too_new(self.path, version)


def connect(path: Path, damaged: Identity | None = None) -> ArchiveFile:
    """Open the file for writing; begin, migrate or mend it where that is needed.

    Args:
        path: of the file.
        damaged: the file of which SQLite said so when it was used.

    Raises:
        ArchiveTooNew: a newer warpbook wrote it.
        ArchiveError: it is another program's file.
        ArchiveStopped: the folder can't be written, or there is no room to mend it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        finish_swap(path)
        for _ in range(_TRIES):
            if damaged is not None:
                mend(path, damaged, _begin)
            try:
                # nobody is to see one that is just being begun
                with place_lock(path, to_replace=not path.exists()):
                    damaged = _made_private(path)
                    return _open(path, damaged)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not is_damage(error):
                    raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise ArchiveStopped(f"{path}: {error}.") from error
    except OSError as error:
        where = error.filename or path
        raise ArchiveStopped(f"{where}: {error.strerror}.") from error
    raise ArchiveStopped(f"{path}: it is damaged, and can't be repaired.")


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open the file for reading, in any thread.

    Raises:
        ArchiveError: there is none, or it can't be read.
    """
    with contextlib.ExitStack() as stack:
        # where no lock can be made, nobody writes, and nobody replaces the file
        with contextlib.suppress(OSError):
            stack.enter_context(place_lock(path, to_replace=False))
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
    """Commit all that is done within, or nothing of it.

    Raises:
        ArchiveMoved: another file is in the place of this one.
        ArchiveTooNew: a newer warpbook has migrated it since it was opened.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # now nobody migrates it, and who replaces it waits
        if isinstance(connection, ArchiveFile):
            connection.check_still_ours()
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
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(f"database disk image is malformed: {state}")


def migrate(connection: sqlite3.Connection, newest: int = SCHEMA_VERSION) -> None:
    """Bring a file of ours from its format to a newer one; the caller commits."""
    (version_now,) = connection.execute("PRAGMA user_version").fetchone()
    for version in range(version_now + 1, newest + 1):
        for statement in statements(__package__, f"schema_{version}.sql"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def prove_writing(connection: sqlite3.Connection) -> None:
    """Write what is there already, to see that the disk takes it."""
    with transaction(connection):
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _made_private(path: Path) -> Identity | None:
    """Make the file for nobody but its owner; give which one it is."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return identity_of(path)


def _begin(path: Path) -> sqlite3.Connection:
    """Make a new file, and open it."""
    return _open(path, _made_private(path))


def _open(path: Path, identity: Identity | None) -> ArchiveFile:
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        factory=ArchiveFile,
    )
    connection.path, connection.identity = path, identity
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
    if application != APPLICATION_ID and (tables or version):
        raise ArchiveError(
            f"{path}: it is not an archive of warpbook. Move it away, or name another "
            "folder in WarpbookApp.archive_folder."
        )
    if version > SCHEMA_VERSION:
        raise _too_new(path, version)
    return int(version)


def _too_new(path: Path, version: int) -> ArchiveTooNew:
    return ArchiveTooNew(
        f"{path}: it was written by a newer warpbook (format {version}; this one "
        f"knows {SCHEMA_VERSION}). Update warpbook, or name another folder in "
        "WarpbookApp.archive_folder; the file is left as it is."
    )


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest format, or leave it as it is."""
    if _check(connection, path) == SCHEMA_VERSION:
        return
    with transaction(connection):
        # another server may have done it meanwhile
        _check(connection, path)
        migrate(connection)
