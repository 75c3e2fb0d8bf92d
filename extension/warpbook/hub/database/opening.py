"""The hub's database: opened, brought to today's format, read and written."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from warpbook.hub.database import dialect, settings
from warpbook_monitors.database.format_steps import Steps

#: of the newest step `schema_N`
FORMAT = 2


class HubDatabase:
    """One database, of which this process is the only writer.

    Every function of the core that reads or writes takes a `Connection` of a
    transaction, so that a caller may do several things in one.
    """

    def __init__(self, path: Path, newest: int = FORMAT) -> None:
        """Open the file, begin it, or bring it to today's format.

        Args:
            path: of the file; its folder is made for nobody else to enter.
            newest: the format it is brought to.

        Raises:
            DatabaseUnfit: it is damaged, newer than this warpbook, or another
                program's.
            DatabaseBusy: another program holds it.
            NoRoom: the disk is full.
        """
        self.path = path
        dialect.migrate(path, Steps("warpbook.hub.database", "schema", newest))
        self._to_write = dialect.open_engine(path, to_write=True)
        self._to_read = dialect.open_engine(path, to_write=False)
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
        with self._transaction(self._to_write) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a transaction that sees one moment, and holds up no writer."""
        with self._transaction(self._to_read) as connection:
            yield connection

    def scrub(self) -> None:
        """Fold the log into the file, so that it holds nothing that was erased."""
        dialect.fold_log(self.path)

    def close(self) -> None:
        """Close all connections."""
        self._to_write.dispose()
        self._to_read.dispose()

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except DBAPIError as problem:
            if not dialect.is_of_database(problem):
                raise
            raise dialect.problem_of(self.path, problem) from problem
