"""All that is SQLite's own: settings of a connection, transactions, and its errors.

Transactions that write begin with the lock for writing, so that none fails in its
middle because another was faster; each sees one moment, and is on the disk whole or
not at all.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, delete, event
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database.tables import SETTINGS
from warpbook_hub.errors import DatabaseBusy, DatabaseUnfit, HubError, NoRoom
from warpbook_monitors.database.format_steps import (
    NewerFormat,
    SqliteTarget,
    Steps,
    bring_up_to_date,
)

#: marks the file as a hub's: "wbhb"
APPLICATION_ID = 0x77626862
_WAIT_S = 20.0
_AGAIN_S = 0.01
#: with less a disk counts as full
_ROOM_BYTES = 1 << 20
_SETTINGS = (
    # a commit is on the disk before it is acknowledged
    "synchronous = FULL",
    "foreign_keys = ON",
    # what is erased is overwritten
    "secure_delete = ON",
    "journal_size_limit = 16777216",
)
#: the log is only added to, whoever has the connection
TRIGGERS = {
    "audit_kept_update": "UPDATE ON audit",
    "audit_kept_delete": "DELETE ON audit",
    # they go where a person is erased
    "audit_details_kept": "UPDATE ON audit_details",
}
_KEEP_AUDIT = """
    CREATE TRIGGER IF NOT EXISTS {name} BEFORE {what}
    BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END
"""


class SqliteDialect:
    """A database that is a file."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is opened yet."""
        self._path = path

    @property
    def file(self) -> Path:
        return self._path

    def migrate(self, steps: Steps) -> None:
        """Begin a file, or bring it to today's format.

        Raises:
            DatabaseUnfit: it is damaged, newer than this warpbook, or another
                program's.
            NoRoom: the disk is full.
            DatabaseBusy: another program holds it.
        """
        path = self._path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            # names, sources and marks are nobody else's
            path.chmod(0o600)
            with contextlib.closing(
                sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
            ) as connection:
                refuse_foreign(connection, path)
                _to_wal(connection)
                bring_up_to_date(SqliteTarget(connection), steps)
                for name, what in TRIGGERS.items():
                    connection.execute(_KEEP_AUDIT.format(name=name, what=what))
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except NewerFormat as newer:
            raise DatabaseUnfit(f"{path}: {newer}") from None
        except sqlite3.Error as problem:
            raise problem_of(path, problem) from None
        except OSError as problem:
            raise DatabaseUnfit(f"{path}: {problem.strerror}.") from None

    def engine(self, to_write: bool) -> Engine:
        """Give an engine; its transactions begin with the lock where it is to write."""
        # SQLite waits for others by itself; threads share no connection at one time
        engine = create_engine(
            f"sqlite:///{self._path}",
            connect_args={"timeout": _WAIT_S, "check_same_thread": False},
        )
        begin = "BEGIN IMMEDIATE" if to_write else "BEGIN"

        def set_up(connection: Any, _record: object) -> None:
            connection.isolation_level = None
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            if not to_write:
                connection.execute("PRAGMA query_only = ON")

        def begin_transaction(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        event.listen(engine, "connect", set_up)
        event.listen(engine, "begin", begin_transaction)
        return engine

    def begin_write(self, engine: Engine) -> tuple[Connection, str]:
        """Begin a transaction; the name of it is needed by nobody here."""
        connection = engine.connect()
        connection.begin()
        return connection, ""

    def was_committed(self, engine: Engine, transaction: str) -> bool:
        """Whether a commit that failed was done all the same: never."""
        return False

    def clear(self, connection: Connection) -> None:
        """Take out what a file has from its beginning: no more is ever cleared."""
        connection.execute(delete(SETTINGS))

    def scrub(self) -> None:
        """Bring all of the write-ahead log into the file, and empty it.

        Raises:
            DatabaseBusy: somebody reads all the time.
        """
        path = self._path
        try:
            with contextlib.closing(
                sqlite3.connect(path, timeout=_WAIT_S)
            ) as connection:
                connection.execute("PRAGMA secure_delete = ON")
                (is_busy, *_) = connection.execute(
                    "PRAGMA wal_checkpoint(TRUNCATE)"
                ).fetchone()
        except sqlite3.Error as problem:
            raise problem_of(path, problem) from None
        if is_busy:
            raise DatabaseBusy(f"{path}: somebody reads it all the time. Try again.")

    def problem_of(self, problem: Exception) -> HubError:
        return problem_of(self._path, problem)

    def is_of_database(self, problem: DBAPIError) -> bool:
        return isinstance(problem.orig, sqlite3.OperationalError) or (
            type(problem.orig) is sqlite3.DatabaseError
        )


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that no hub began.

    Raises:
        DatabaseUnfit: it is another program's.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or application):
        raise DatabaseUnfit(
            f"{path}: this is no database of a warpbook hub. Name another file."
        )


def problem_of(path: Path, problem: Exception) -> HubError:
    cause = problem.orig if isinstance(problem, DBAPIError) else problem
    words = str(cause)
    if "full" in words or ("disk I/O" in words and _is_full(path)):
        return NoRoom(
            f"{path}: the disk is full, and nothing was written. Make room on it; "
            "what was acknowledged before is kept."
        )
    if "locked" in words or "busy" in words:
        return DatabaseBusy(f"{path}: another program holds it. Try again.")
    if "malformed" in words or "not a database" in words:
        return DatabaseUnfit(f"{path}: it is damaged ({words}). Restore a backup.")
    return DatabaseUnfit(f"{path}: {words}.")


def _is_full(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return shutil.disk_usage(path.parent).free < _ROOM_BYTES
    return False


def _to_wal(connection: sqlite3.Connection) -> None:
    # SQLite waits for others in all it does, but not where two begin a file at once
    end_s = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > end_s:
                raise
            time.sleep(_AGAIN_S)
