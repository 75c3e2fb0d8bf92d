"""The hub's database: opened, brought to today's format, read and written."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database import settings
from warpbook_hub.database.dialects import dialect_of
from warpbook_hub.database.tables import FORMAT, steps


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
