"""What the doctor looks at on disk: the archives, and the submissions to labs.

Nothing is created for it, and no file changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from warpbook.cli.doctor.check import Check, shown
from warpbook_labs.course import store_format
from warpbook_monitors.archive.database import FILE_NAME, SCHEMA_VERSION, size_bytes
from warpbook_monitors.archive.historian import CLOCK_FILE
from warpbook_monitors.archive.lease import Lease
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.place import archives_folder, default_folder
from warpbook_monitors.data_folder import data_folder
from warpbook_monitors.wall_clock import agreement

#: looking through a larger file would take long
_MOST_CHECKED_BYTES = 512 * 2**20


def archive_checks() -> Iterator[Check]:
    """Look at the archive of each machine, and at the submissions."""
    own = default_folder()
    folders = {own, *archives_folder().glob("*/")} if archives_folder().is_dir() else {}
    files = sorted(folder / FILE_NAME for folder in folders)
    there = [path for path in files if path.exists()]
    if own / FILE_NAME not in there:
        yield Check(
            "Archive",
            "absent",
            f"No server has kept anything in {shown(str(own))} yet.",
        )
    for path in there:
        is_own = path.parent == own
        yield _archive("Archive" if is_own else f"Archive of {path.parent.name}", path)
    yield _labs(data_folder() / "labs.db")


def _archive(what: str, path: Path) -> Check:
    move = f"Move {shown(str(path))} away; a new one is begun then."
    try:
        with _opened(path) as connection:
            (form,) = connection.execute("PRAGMA user_version").fetchone()
            if form > SCHEMA_VERSION:
                return Check(
                    what,
                    "broken",
                    f"{shown(str(path))} has format {form}, and this warpbook knows "
                    f"{SCHEMA_VERSION}: a newer one wrote it.",
                    "Update warpbook, or name another folder in "
                    "WarpbookApp.archive_folder.",
                )
            _look_through(connection, path)
            used_bytes = size_bytes(connection)
            oldest_ms = _oldest_ms(connection)
            (records,) = connection.execute("SELECT count(*) FROM record").fetchone()
    except sqlite3.Error as error:
        return Check(
            what,
            "broken",
            f"{shown(str(path))} can't be read: {error}",
            f"Start a server, which mends what it can, or: {move}",
        )
    free_bytes = shutil.disk_usage(path.parent).free
    facts = [
        f"{shown(str(path))}, {used_bytes / 1e6:.1f} MB, format {form}",
        f"{records} records",
        "empty" if oldest_ms is None else f"since {_time(oldest_ms)}",
        _holder(path.parent),
        *_clock(path.parent / CLOCK_FILE),
        f"{free_bytes / 1e9:.1f} GB are free",
    ]
    if not all(os.access(place, os.W_OK) for place in (path, path.parent)):
        return Check(
            what,
            "broken",
            f"{shown(str(path))} can't be written, so nothing is kept.",
            f"Run: chmod u+rwX {shown(str(path.parent))} {shown(str(path))}",
        )
    if free_bytes < Limits().least_free_bytes:
        return Check(
            what,
            "broken",
            f"The disk of {shown(str(path))} is full, so nothing is kept.",
            "Make room, or set WarpbookApp.archive_megabytes or archive_folder.",
        )
    return Check(what, "ok", "; ".join(facts))


def _labs(path: Path) -> Check:
    what = "Submissions to labs"
    if not path.exists():
        return Check(what, "absent", f"There are none: no {shown(str(path))}.")
    try:
        with _opened(path) as connection:
            (form,) = connection.execute("PRAGMA user_version").fetchone()
            _look_through(connection, path)
    except sqlite3.Error as error:
        return Check(
            what,
            "broken",
            f"{shown(str(path))} can't be read: {error}",
            "Restore a backup with `warpbook restore`, or move it away, with those of "
            "its name that end in -wal and -shm.",
        )
    if form > store_format.FORMAT:
        return Check(
            what,
            "broken",
            f"{shown(str(path))} has format {form}, and this warpbook knows "
            f"{store_format.FORMAT}: a newer one wrote it.",
            "Update warpbook.",
        )
    size_mb = path.stat().st_size / 1e6
    return Check(what, "ok", f"{shown(str(path))}, {size_mb:.1f} MB, format {form}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open it so that SQLite makes no file beside it."""
    beside = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
    in_use = all(other.exists() for other in beside)
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    ) as connection:
        yield connection


def _look_through(connection: sqlite3.Connection, path: Path) -> None:
    """Find damage.

    Raises:
        DatabaseError: there is some.
    """
    if path.stat().st_size > _MOST_CHECKED_BYTES:
        return
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(f"it is damaged ({' '.join(state.split())})")


def _oldest_ms(connection: sqlite3.Connection) -> float | None:
    """When the oldest thing in it was."""
    times_ms = [
        connection.execute(f"SELECT min({column}) FROM {table}").fetchone()[0]
        for table, column in (
            ("segment", "from_ms"),
            ("recent", "from_ms"),
            ("record", "started_ms"),
        )
    ]
    return min((time_ms for time_ms in times_ms if time_ms is not None), default=None)


def _holder(folder: Path) -> str:
    """Say which process keeps the history: the one that holds the lock."""
    lock = folder / "archive.lock"
    nobody = "no server keeps the history now"
    try:
        with lock.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"process {Lease(lock).holder()} keeps the history"
    except OSError:
        return nobody
    return nobody


def _clock(kept: Path) -> Iterator[str]:
    """Say why nothing is deleted for its age, where that is so."""
    with contextlib.suppress(OSError):
        if why := agreement(kept.read_bytes(), time.time() * 1000).why_not:
            yield why.removesuffix(".")


def _time(time_ms: float) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "a time that can't be"
