"""A course's database, moved from its file to a server's or back, and proven whole.

`python -m warpbook_hub.keeping.move FOLDER` runs as the account that owns the database.
The address is in the environment, as it may hold a password.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, func, select

from warpbook_hub.database.address import (
    VARIABLE,
    checked_address,
    read_address,
    write_address,
)
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.tables import SETTINGS, TABLES
from warpbook_hub.errors import Conflict, DatabaseUnfit, HubError
from warpbook_hub.keeping.backup import copy_rows, digests

#: the name of the file, in the folder of the course
FILE = "hub.db"
#: instead of an address: the file in the course's folder
TO_FILE = "sqlite"
#: in that folder, while it is moved
_NEW = ".moving"


class MoveReport(Struct, frozen=True):
    """What a move came to."""

    rows: int
    tables: int
    #: the source's file, which stays as it was; empty where it was a server's
    left: str


def move(folder: Path, address: str | None) -> MoveReport:
    """Move the database of a course that nobody writes to; the source stays.

    All rows are written in one transaction, compared by digests of each table, and only
    then used. A move that was interrupted can be begun again.

    Args:
        folder: of the course.
        address: of a server's database; None: to a file.

    Raises:
        Conflict: it is there already, or the target holds something else.
        DatabaseUnfit: one of them can't be opened, or the copy is not the same.
        DatabaseBusy: a server can't be reached.
    """
    target_address = None if address is None else checked_address(address)
    if read_address(folder) == target_address:
        raise Conflict("The course's database is there already.")
    beside = folder / _NEW
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(mode=0o700)
    try:
        write_address(beside, target_address)
        source, target = HubDatabase(folder / FILE), HubDatabase(beside / FILE)
        try:
            rows = _copied(source, target)
            left = "" if source.file is None else str(source.file)
        finally:
            source.close()
            target.close()
        if target_address is None:
            _use_file(folder, beside / FILE)
        write_address(folder, target_address)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return MoveReport(rows, len(TABLES), left)


def _copied(source: HubDatabase, target: HubDatabase) -> int:
    with source.read() as read:
        wanted = digests(read)
        rows = _rows(read)
        with target.write() as write:
            if digests(write) == wanted:
                # an earlier move was interrupted after its copy
                return rows
            if _rows(write) > _settings(write):
                raise Conflict(
                    "The database that you name holds another course. Name an empty "
                    "one."
                )
            target.clear(write)
            copy_rows(read, write)
    with target.read() as copy:
        differ = [name for name, one in digests(copy).items() if one != wanted[name]]
    if differ:
        raise DatabaseUnfit(
            f"The copy is not the same ({', '.join(differ)}). The course stays where "
            "it was."
        )
    return rows


def _rows(connection: Connection) -> int:
    counts = (
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in TABLES
    )
    return sum(map(int, counts))


def _settings(connection: Connection) -> int:
    count = connection.execute(select(func.count()).select_from(SETTINGS)).scalar_one()
    return int(count)


def _use_file(folder: Path, moved: Path) -> None:
    """Put the file in its place; one that was left there before keeps another name."""
    file = folder / FILE
    if file.exists():
        file.rename(folder / f"{FILE}.before-{int(time.time())}")
    for log in (f"{FILE}-wal", f"{FILE}-shm"):
        (folder / log).unlink(missing_ok=True)
    moved.rename(file)


def main() -> int:
    """Move it; 1 with the reason where it stays."""
    address = os.environ[VARIABLE]
    try:
        moved = move(Path(sys.argv[1]), None if address == TO_FILE else address)
    except HubError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(moved).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
