"""Mends a damaged archive: what can be read is written anew beside it, and swapped.

Until the new file is whole, nothing of the old one is touched. From then on the swap is
only ever finished, by whoever opens the archive next, however often it is killed:

- `archive.damaged-N.salvage` is being written; what a kill left of it is removed;
- `archive.damaged-N.mended` is whole, and is to become `archive.db`;
- `archive.damaged-N.db` is what was damaged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warpbook_monitors.archive.errors import ArchiveStopped, is_damage
from warpbook_monitors.archive.file_identity import Identity, identity_of, place_lock

_log = logging.getLogger(__name__)

#: another server may be writing
_BUSY_S = 10.0

Begin = Callable[[Path], sqlite3.Connection]


def is_swap_open(path: Path) -> bool:
    """Whether a new file is whole and not yet in its place."""
    return next(path.parent.glob(f"{path.stem}.damaged-*.mended"), None) is not None


def finish_swap(path: Path) -> None:
    """Do the rest of a swap that was killed."""
    if is_swap_open(path):
        with place_lock(path, to_replace=True):
            _finish(path)


def mend(path: Path, met: Identity | None, begin: Begin) -> None:
    """Put a damaged file aside, and in its place a new one with what can be read of it.

    Args:
        path: of the file.
        met: the file in which damage was met; another one is left as it is.
        begin: makes a new, empty file and opens it.

    Raises:
        ArchiveStopped: there is no room, or somebody holds the file; it is as it was.
    """
    with place_lock(path, to_replace=True):
        _finish(path)
        if identity_of(path) != met:
            return
        for left in path.parent.glob(f"{path.stem}.damaged-*.salvage*"):
            left.unlink(missing_ok=True)
        _check_room(path)
        part = path.with_name(f"{path.stem}.damaged-{time.time_ns()}.salvage")
        try:
            # who writes into it now would write for nobody: they wait, and look again
            with _held(path):
                rows = _salvage_all(path, part, begin)
                os.replace(part, part.with_suffix(".mended"))
                _finish(path)
        except BaseException:
            for ending in ("", "-wal", "-shm"):
                part.with_name(part.name + ending).unlink(missing_ok=True)
            raise
    _log.error(
        "The archive %s was damaged. What could be read of it, %d rows, was kept; the "
        "damaged file is %s.",
        path,
        rows,
        part.with_suffix(".db").name,
    )


def put_in_place(path: Path, new: Path) -> Path:
    """Have a file take the place of a damaged one; give where that is now.

    Args:
        path: of the damaged one.
        new: a whole database in the same folder, which nobody has open.

    Raises:
        ArchiveStopped: somebody mends it just now.
    """
    with place_lock(path, to_replace=True):
        _finish(path)
        mended = path.with_name(f"{path.stem}.damaged-{time.time_ns()}.mended")
        os.replace(new, mended)
        _finish(path)
    return mended.with_suffix(".db")


def _finish(path: Path) -> None:
    """Swap; each step may have been done already."""
    for mended in sorted(path.parent.glob(f"{path.stem}.damaged-*.mended")):
        aside = mended.with_suffix(".db")
        # a write-ahead log of a damaged file must not be played into the new one
        for ending in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                os.replace(path.with_name(path.name + ending), f"{aside}{ending}")
        os.replace(mended, path)


def _check_room(path: Path) -> None:
    needed_bytes = path.stat().st_size
    free_bytes = shutil.disk_usage(path.parent).free
    if free_bytes < needed_bytes:
        raise ArchiveStopped(
            f"{path} is damaged, and there is no room to repair it: {free_bytes >> 20} "
            f"MiB are left, and {(needed_bytes >> 20) + 1} MiB are needed."
        )


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Let nobody write into a file, as far as it can be opened at all."""
    with contextlib.closing(
        sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    ) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            connection.close()
        yield


def _salvage_all(damaged: Path, part: Path, begin: Begin) -> int:
    """Write all that can be read into a new file, down to the disk; give its rows."""
    with contextlib.closing(begin(part)) as new:
        rows = sum(_salvage(damaged, new, table) for table in _tables(new))
        # so that it is one file
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    return rows


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master"
        " WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    return [name for (name,) in rows]


def _salvage(damaged: Path, new: sqlite3.Connection, table: str) -> int:
    """Copy the rows of a table up to the damage, from both ends; give how many."""
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
    places = ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({places})"
    count, last = 0, -(2**63)
    new.execute("BEGIN IMMEDIATE")
    for order in ("ASC", "DESC"):
        for rowid, *row in _readable_rows(damaged, table, columns, order):
            if order == "DESC" and rowid <= last:
                break
            last = rowid if order == "ASC" else last
            # a value that the column can't take is damage, too
            with contextlib.suppress(sqlite3.IntegrityError):
                count += new.execute(insert, row).rowcount
    new.execute("COMMIT")
    return count


def _readable_rows(
    damaged: Path, table: str, columns: list[str], order: str
) -> Iterator[tuple[Any, ...]]:
    """Give rows up to the damage; errors of reading end it, and no others."""
    with contextlib.closing(sqlite3.connect(damaged, timeout=_BUSY_S)) as old:
        old.text_factory = lambda text: text.decode(errors="replace")
        try:
            # a file that was cut off is read up to there, and not refused as a whole
            old.execute("PRAGMA writable_schema = 1")
            # by name: an older format may have them in another order
            names = ", ".join(("rowid", *columns))
            rows = old.execute(f"SELECT {names} FROM {table} ORDER BY rowid {order}")
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return
        while True:
            try:
                row = rows.fetchone()
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                return
            if row is None:
                return
            yield row
