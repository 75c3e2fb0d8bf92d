"""The format of the file of submissions: begun, migrated, or refused where it is newer.

It needs no SQLAlchemy, so that a backup can be restored without it.
"""

from __future__ import annotations

import sqlite3

from warpbook_monitors.database import format_steps
from warpbook_monitors.database.format_steps import NewerFormat, SqliteTarget, Steps

__all__ = ["FORMAT", "NewerFormat", "bring_up_to_date", "check"]

#: of the newest step `store_schema_N`
FORMAT = 1


def bring_up_to_date(connection: sqlite3.Connection, newest: int = FORMAT) -> None:
    """Bring the file to the newest format; the caller commits.

    Raises:
        NewerFormat: it is newer than that.
    """
    format_steps.bring_up_to_date(SqliteTarget(connection), _steps(newest))


def check(connection: sqlite3.Connection, newest: int = FORMAT) -> int:
    """Give the format of the file; 0 where it has just begun.

    Raises:
        NewerFormat: it is newer than that.
    """
    return format_steps.check(SqliteTarget(connection), _steps(newest))


def _steps(newest: int) -> Steps:
    return Steps("warpbook_labs.course", "store_schema", newest)
