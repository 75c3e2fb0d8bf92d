"""What a kind of database must be able to do, and which kind a hub's folder names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database.address import read_address
from warpbook_hub.database.sqlite import SqliteDialect
from warpbook_hub.errors import DatabaseUnfit, HubError
from warpbook_monitors.database.format_steps import Steps


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
