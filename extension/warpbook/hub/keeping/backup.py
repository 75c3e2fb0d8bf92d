"""A copy of the database while it is used, and back."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, update

from warpbook.hub import audit
from warpbook.hub.database.lti_tables import LTI_SCORES
from warpbook.hub.database.opening import HubDatabase
from warpbook.hub.database.sqlite import TRIGGERS, problem_of, refuse_foreign
from warpbook.hub.database.tables import JOBS
from warpbook.hub.errors import Conflict, DatabaseUnfit, NoRoom
from warpbook.hub.keeping.copying import copy_rows
from warpbook.hub.outages import forget_answered
from warpbook_monitors.plain_text import bounded

#: more leases than a job has had between a backup and its restore
FENCE_STEP = 1_000_000
#: copied at a time; who writes waits for no more than these
_PAGES = 2_000


def back_up(database: HubDatabase, target: Path) -> None:
    """Copy one moment of the database to a new file, for nobody else to read.

    The file is one of SQLite, wherever the database is, and can be restored into any.

    Raises:
        Conflict: there is a file already.
        NoRoom: the disk is full; no half of a copy is left.
    """
    target = target.absolute()
    # nobody else is to read it, not even while it is written
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if target.exists():
            raise Conflict(f"{target}: there is a file already. Name another.")
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(_as_file(database, target.parent))
            read = stack.enter_context(_opened(file))
            written = stack.enter_context(_opened(unfinished))
            # held, or the copy would begin anew whenever somebody writes
            read.execute("BEGIN")
            read.execute("SELECT count(*) FROM sqlite_master").fetchone()
            read.backup(written, pages=_PAGES, sleep=0.005)
            # a file by itself, without a log beside it
            written.execute("PRAGMA journal_mode = DELETE")
        _flush(unfinished)
        # it is there whole, or not at all, and takes nobody's place
        os.link(unfinished, target)
        _flush(target.parent)
    except FileExistsError:
        raise Conflict(f"{target}: there is a file already. Name another.") from None
    except sqlite3.Error as problem:
        raise problem_of(target, problem) from None
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(f"{target}: the disk is full. No backup was made.") from None
        raise DatabaseUnfit(f"{target}: {problem.strerror}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def restore(database: HubDatabase, source: Path, now_ms: int, actor: str) -> None:
    """Put a copy in the place of what is there, in one transaction.

    The audit log is that of the backup then; an entry says how far the other one was.
    Every lease ends, and a result of one from before is refused. A platform is sent all
    scores once more: it may have been told later ones.

    Raises:
        DatabaseUnfit: it is damaged, newer, or no database of a hub.
        NoRoom: the disk is full; all is as it was.
    """
    with database.read() as connection:
        replaced = audit.last_number(connection)
    with tempfile.TemporaryDirectory(dir=database.path.parent) as folder:
        # a copy is looked through, and brought to today's format; the backup stays
        copy = Path(folder, "hub.db")
        try:
            _check(source)
            with _opened(source, "ro") as read, _opened(copy, "rwc") as written:
                read.backup(written)
            restored = HubDatabase(copy)
            try:
                with restored.write() as connection:
                    _end_leases(connection, now_ms)
                    forget_answered(connection)
                    connection.execute(update(LTI_SCORES).values(state="replaced"))
                    name = source.name[:100]
                    detail = {"file": name, "log_before": replaced}
                    audit.note(
                        connection, now_ms, actor, "database restored", "hub", detail
                    )
                _put_in_place(database, restored)
            finally:
                restored.close()
        except sqlite3.Error as problem:
            raise problem_of(source, problem) from None


def _put_in_place(database: HubDatabase, restored: HubDatabase) -> None:
    """Replace all rows in one transaction: readers see the old ones or the new ones."""
    if database.file is not None:
        with _opened(restored.path, "ro") as read, _opened(database.file) as written:
            read.backup(written)
        return
    with restored.read() as source, database.write() as target:
        database.clear(target)
        copy_rows(source, target)


@contextlib.contextmanager
def _as_file(database: HubDatabase, folder: Path) -> Iterator[Path]:
    """Give the database's file; of a server's database, a copy of one moment of it."""
    if database.file is not None:
        yield database.file
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as name:
        copy = HubDatabase(Path(name, "hub.db"))
        try:
            with database.read() as source, copy.write() as target:
                copy.clear(target)
                copy_rows(source, target)
        finally:
            copy.close()
        yield copy.path


def _end_leases(connection: Connection, now_ms: int) -> None:
    """Queue again what ran; no fence from before the restore will be given again."""
    connection.execute(update(JOBS).values(fence=JOBS.c.fence + FENCE_STEP))
    connection.execute(
        update(JOBS)
        .where(JOBS.c.state == "leased")
        .values(state="queued", grader=None, device="", not_before_ms=now_ms)
    )


def _check(source: Path) -> None:
    """Look through a file of somebody's; nothing that it says is run."""
    if not source.is_file():
        raise DatabaseUnfit(f"{source}: there is no such file.")
    with _opened(source, "ro") as connection:
        connection.execute("PRAGMA trusted_schema = 0")
        connection.execute("PRAGMA cell_size_check = 1")
        refuse_foreign(connection, source)
        for kind, name in connection.execute("SELECT type, name FROM sqlite_master"):
            # what SQLite would run as soon as it is asked
            if kind not in ("table", "index") and name not in TRIGGERS:
                raise DatabaseUnfit(
                    f"{source}: it has what no database of ours has: {bounded(name)}."
                )
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise DatabaseUnfit(f"{source}: it is damaged: {verdict}")


@contextlib.contextmanager
def _opened(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    with contextlib.closing(
        sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=60,
            isolation_level=None,
        )
    ) as connection:
        yield connection


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
