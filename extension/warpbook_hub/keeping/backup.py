"""A copy of the database while it is used, and back."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, insert, select, update

from warpbook_hub import audit
from warpbook_hub.database import settings
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.sqlite import problem_of, refuse_foreign
from warpbook_hub.database.tables import FORMAT, GRADERS, JOBS, LTI_SCORES, TABLES
from warpbook_hub.errors import Conflict, DatabaseUnfit, NoRoom
from warpbook_hub.ids import new_token, token_digest
from warpbook_hub.leases.grants import KEEPER_DIGEST
from warpbook_hub.notices import outbox
from warpbook_hub.outages import forget_answered
from warpbook_monitors.database.foreign_rows import ForeignDatabase
from warpbook_monitors.database.foreign_rows import copy_rows as copy_foreign_rows
from warpbook_monitors.database.format_steps import SqliteTarget

#: more leases than a job has had between a backup and its restore
FENCE_STEP = 1_000_000
#: copied at a time; who writes waits for no more than these
_PAGES = 2_000
#: what receipts are signed with, and what the keeper of GPUs is known by
_SECRETS = (settings.RECEIPT_KEY, KEEPER_DIGEST)


def back_up(database: HubDatabase, target: Path) -> None:
    """Copy one moment of the database to a new file, for nobody else to read.

    Its keys, and what tokens are known by, are not in it.

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
            _forget_secrets(written)
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

    Its rows are copied into a database that is made here; keys, and whose tokens are
    taken, stay those of what was there. The audit log is that of the backup then; an
    entry says how far the other one was.
    Every lease ends, and a result of one from before is refused. A platform is sent all
    scores once more: it may have been told later ones.

    Raises:
        DatabaseUnfit: it is damaged, newer, or no database of a hub.
        NoRoom: the disk is full; all is as it was.
    """
    with database.read() as connection:
        replaced = audit.last_number(connection)
    with tempfile.TemporaryDirectory(dir=database.path.parent) as folder:
        copy = Path(folder, "hub.db")
        try:
            _copy_rows_of(source, copy)
            restored = HubDatabase(copy)
            try:
                with restored.write() as connection:
                    _end_leases(connection, now_ms)
                    forget_answered(connection)
                    outbox.forget(connection)
                    with database.read() as present:
                        _keep_secrets(present, connection)
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


def _copy_rows_of(source: Path, copy: Path) -> None:
    """Begin a database of the format of somebody's file, and copy its rows."""
    if not source.is_file():
        raise DatabaseUnfit(f"{source}: there is no such file.")
    with _opened(source, "ro") as read:
        refuse_foreign(read, source)
        form = SqliteTarget(read).number()
    if not 1 <= form <= FORMAT:
        words = f"it has format {form}, and this warpbook knows {FORMAT}"
        raise DatabaseUnfit(f"{source}: {words}. Update warpbook.")
    fresh = HubDatabase(copy, form)
    with fresh.write() as connection:
        fresh.clear(connection)
    fresh.close()
    with _opened(copy) as written:
        written.execute("PRAGMA foreign_keys = ON")
        try:
            copy_foreign_rows(source, written)
        except ForeignDatabase as problem:
            raise DatabaseUnfit(f"{source}: {problem}.") from None


def _forget_secrets(written: sqlite3.Connection) -> None:
    written.execute("PRAGMA secure_delete = ON")
    for name in _SECRETS:
        written.execute("DELETE FROM settings WHERE name = ?", (name,))
    written.execute("UPDATE graders SET token_digest = lower(hex(randomblob(32)))")


def _keep_secrets(present: Connection, restored: Connection) -> None:
    """Trust what was trusted before; who is unknown has to be registered anew."""
    for name in _SECRETS:
        settings.put(restored, name, settings.get(present, name))
    trusted = {row.id: row for row in present.execute(select(GRADERS))}
    names = restored.execute(select(GRADERS.c.id)).scalars().all()
    for name in names:
        void = {"token_digest": token_digest(new_token()), "state": "retired"}
        restored.execute(update(GRADERS).where(GRADERS.c.id == name).values(void))
    for name in trusted.keys() & set(names):
        row = trusted[name]
        kept = {"token_digest": row.token_digest, "state": row.state}
        restored.execute(update(GRADERS).where(GRADERS.c.id == name).values(kept))


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


#: at a time
_ROWS = 500


def copy_rows(source: Connection, target: Connection) -> int:
    """Write every row of one database into another, whose tables are empty.

    Both are in a transaction: readers of the target see all of it or nothing.

    Returns:
        how many rows there are.
    """
    copied = 0
    for table in TABLES:
        for rows in _pieces(source, table):
            target.execute(insert(table), rows)
            copied += len(rows)
    return copied


def digests(connection: Connection) -> dict[str, str]:
    """Give the SHA-256 of each table's rows, in the order of their own text."""
    return {table.name: _digest(connection, table) for table in TABLES}


def _digest(connection: Connection, table: Table) -> str:
    rows = sorted(
        msgspec.json.encode(list(row)) for row in connection.execute(select(table))
    )
    whole = sha256()
    for row in rows:
        whole.update(sha256(row).digest())
    return whole.hexdigest()


def _pieces(source: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    result = source.execution_options(yield_per=_ROWS).execute(select(table))
    for rows in result.mappings().partitions(_ROWS):
        yield [dict(row) for row in rows]
