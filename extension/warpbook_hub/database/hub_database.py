"""The hub's database: opened, brought to today's format, read and written."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database import settings
from warpbook_hub.database.address import read_address
from warpbook_hub.database.sqlite import SqliteDialect
from warpbook_hub.database.tables import FORMAT, steps
from warpbook_hub.errors import DatabaseUnfit, HubError
from warpbook_monitors.database.format_steps import Steps

#: a course's file, in its folder
DATABASE = "hub.db"


class HubDatabase:
    """One database: a file, or that of a server which an address beside it names.

    Every function of the core that reads or writes takes a `Connection` of a
    transaction, so that a caller may do several things in one.
    """

    def __init__(self, path: Path, newest: int = FORMAT) -> None:
        """Open it, begin it, or bring it to today's format.

        Args:
            path: of the file, or where it would be; its folder is made for nobody
                else to enter.
            newest: the format it is brought to.

        Raises:
            DatabaseUnfit: it is damaged, newer than this warpbook, or another
                program's.
            DatabaseBusy: another program holds it.
            NoRoom: the disk is full.
        """
        self.path = path
        self._dialect = dialect_of(path)
        self._dialect.migrate(steps(newest))
        self._to_write = self._dialect.engine(to_write=True)
        self._to_read = self._dialect.engine(to_write=False)
        with self.write() as connection:
            if settings.get(connection, settings.RECEIPT_KEY) is None:
                key = secrets.token_hex(32)
                settings.put(connection, settings.RECEIPT_KEY, key)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction that is on the disk once the block is left.

        Raises:
            NoRoom: the disk is full; nothing of it was written.
            DatabaseBusy: another program holds the file.
        """
        with self._typed_errors():
            connection, transaction = self._dialect.begin_write(self._to_write)
            with connection:
                yield connection
                try:
                    connection.commit()
                except DBAPIError as problem:
                    if not self._dialect.is_of_database(problem):
                        raise
                    # a connection may be lost between the commit and its answer
                    if not self._dialect.was_committed(self._to_write, transaction):
                        raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a transaction that sees one moment, and holds up no writer."""
        with self._typed_errors(), self._to_read.begin() as connection:
            yield connection

    @property
    def file(self) -> Path | None:
        """Give the file that it is; None where it is a server's."""
        return self._dialect.file

    def clear(self, connection: Connection) -> None:
        """Take all rows out, in a transaction; of a file that was just begun."""
        self._dialect.clear(connection)

    def scrub(self) -> None:
        """Have the database's files hold nothing that was erased."""
        self._dialect.scrub()

    def close(self) -> None:
        self._to_write.dispose()
        self._to_read.dispose()

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as problem:
            if not self._dialect.is_of_database(problem):
                raise
            raise self._dialect.problem_of(problem) from problem


class Dialect(Protocol):
    """All that differs between SQLite and PostgreSQL."""

    @property
    def file(self) -> Path | None:
        """Give the file that it is; None where it is a server's."""
        ...

    def migrate(self, steps: Steps) -> None:
        """Begin the database, or bring it to today's format.

        Raises:
            DatabaseUnfit: it can't be used; the message says why and what to do.
            DatabaseBusy: it can't be reached or is held; trying again may help.
            NoRoom: the disk is full.
        """
        ...

    def engine(self, to_write: bool) -> Engine:
        """Give an engine whose transactions see one moment."""
        ...

    def begin_write(self, engine: Engine) -> tuple[Connection, str]:
        """Begin a transaction that nobody else writes beside; give its name, too."""
        ...

    def was_committed(self, engine: Engine, transaction: str) -> bool:
        """Tell whether a transaction whose commit was cut off was done."""
        ...

    def clear(self, connection: Connection) -> None:
        """Take all rows out, in a transaction; of a file only those it begins with."""
        ...

    def scrub(self) -> None:
        """Remove what was erased from the database's own files."""
        ...

    def problem_of(self, problem: Exception) -> HubError:
        """Say in a type what could not be done."""
        ...

    def is_of_database(self, problem: DBAPIError) -> bool:
        """Tell whether the database failed, and not what was asked of it."""
        ...


def dialect_of(path: Path) -> Dialect:
    """Give the kind of database that a path means.

    Args:
        path: of the file; where an address lies beside it, the server's database.

    Raises:
        DatabaseUnfit: the address can't be used, or its driver is missing.
    """
    address = read_address(path.parent)
    if address is None:
        return SqliteDialect(path)
    try:
        from warpbook_hub.database import postgres
    except ImportError:
        raise DatabaseUnfit(
            "PostgreSQL needs its driver, which this Python has not. "
            f"Run: {sys.executable} -m pip install 'warpbook-hub[postgres]'"
        ) from None
    dialect: Dialect = postgres.PostgresDialect(address)
    return dialect
