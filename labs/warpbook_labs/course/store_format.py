"""The format of the file of submissions: begun, migrated, or refused where it is newer.

It needs no SQLAlchemy, so that a backup can be restored without it.
"""

from __future__ import annotations

import sqlite3

from warpbook_monitors.sql_script import statements

#: of the newest file `store_schema_N.sql`
FORMAT = 1


class NewerFormat(Exception):
    """A newer warpbook wrote the file; it is left as it is."""

    def __init__(self, found: int) -> None:
        """Name the format that was found."""
        super().__init__(
            f"it was written by another version of warpbook (format {found}; this one "
            f"knows {FORMAT}). Update warpbook; the file is left as it is."
        )


def bring_up_to_date(connection: sqlite3.Connection, newest: int = FORMAT) -> None:
    """Bring the file to the newest format; the caller commits.

    Raises:
        NewerFormat: it is newer than that.
    """
    if check(connection, newest) == newest:
        return
    # whoever else begins or migrates it at this moment waits
    connection.execute("BEGIN IMMEDIATE")
    for number in range(check(connection, newest) + 1, newest + 1):
        for statement in statements(
            "warpbook_labs.course", f"store_schema_{number}.sql"
        ):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")


def check(connection: sqlite3.Connection, newest: int = FORMAT) -> int:
    """Give the format of the file; 0 where it has just begun.

    Raises:
        NewerFormat: it is newer than that.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > newest:
        raise NewerFormat(found)
    return int(found)
