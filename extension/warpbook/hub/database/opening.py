"""The hub's database: opened, brought to today's format, read and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

#: of the newest file `schema_N.sql`
FORMAT = 1


class HubDatabase:
    """One database, of which this process is the only writer.

    Every function of the core that reads or writes takes a `Connection` of a
    transaction, so that a caller may do several things in one.
    """

    path: Path

    def __init__(self, path: Path) -> None:
        """Open the file, begin it, or bring it to today's format.

        Raises:
            DatabaseUnfit: it is damaged, newer than this warpbook, or another
                program's.
            NoRoom: the disk is full.
        """
        raise NotImplementedError

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a transaction that is on the disk once the block is left.

        Raises:
            NoRoom: the disk is full; nothing of it was written.
            DatabaseBusy: another program holds the file.
        """
        raise NotImplementedError

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a transaction that sees one moment, and holds up no writer."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError
