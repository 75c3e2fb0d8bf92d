"""What a person handed in, and how it went: one SQLite file in their data folder.

A submission is on the disk before its number is given out, and is never changed. Each
grading adds a result of its own.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from warpbook_labs.course.progress import (
    Progress,
    read_progress,
    store_error,
    submissions_file,
)
from warpbook_labs.course.store_format import NewerFormat, bring_up_to_date
from warpbook_labs.errors import StoreError
from warpbook_labs.lab.sources import refuse_unfit
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.children import remove_leftovers

_WAIT_S = 10.0
_AGAIN_S = 0.01

_TABLES = MetaData()
_SUBMISSIONS = Table(
    "submissions",
    _TABLES,
    Column("id", Integer, primary_key=True),
    Column("lab", Text, nullable=False, index=True),
    Column("source", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("submitted_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
_RESULTS = Table(
    "results",
    _TABLES,
    Column("id", Integer, primary_key=True),
    Column("submission", ForeignKey("submissions.id"), nullable=False, index=True),
    Column("graded_ms", BigInteger, nullable=False),
    Column("passed", Integer, nullable=False),
    Column("right", Integer, nullable=False),
    Column("of", Integer, nullable=False),
    # a CheckResult as JSON
    Column("result", Text, nullable=False),
    sqlite_autoincrement=True,
)
_HINTS = Table(
    "hints",
    _TABLES,
    Column("lab", Text, primary_key=True),
    Column("opened", Integer, nullable=False),
)


_decode = msgspec.json.Decoder(CheckResult).decode


class Submission(Struct, frozen=True):
    """What was handed in."""

    id: int
    lab: str
    source: str
    #: hidden cases are drawn with it; for graders only, never shown
    seed: int
    submitted_ms: int


class Grading(Struct, frozen=True):
    """One result of a submission."""

    id: int
    submission: int
    graded_ms: int
    result: CheckResult


class Store:
    """All submissions of a person."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, or begin it.

        Raises:
            StoreError: it can't be used.
        """
        self.path = path or submissions_file()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # sources and marks are nobody else's; so is a file from before
            self.path.touch(mode=0o600)
            self.path.chmod(0o600)
        except OSError as problem:
            raise StoreError(f"{self.path}: {problem.strerror}.") from None
        remove_leftovers()
        # a connection for each use: none is left open in a child or a thread
        self._engine = create_engine(
            f"sqlite:///{self.path}",
            poolclass=NullPool,
            connect_args={"timeout": _WAIT_S},
        )
        event.listen(self._engine, "connect", _set_up)
        with self._transaction() as connection:
            driver: Any = connection.connection.driver_connection
            try:
                bring_up_to_date(driver)
            except NewerFormat as newer:
                raise StoreError(f"{self.path}: {newer}") from None

    def add_submission(self, lab: str, source: str, seed: int) -> int:
        """Keep a submission; once its number is returned, nothing loses it.

        Raises:
            BadSource: it is no source that could be checked.
        """
        refuse_unfit(source)
        row = {"lab": lab, "source": source, "seed": seed, "submitted_ms": _now_ms()}
        return self._insert(_SUBMISSIONS, row)

    def add_result(self, submission: int, result: CheckResult) -> int:
        """Keep how a grading went, beside those before it."""
        return self._insert(
            _RESULTS,
            {
                "submission": submission,
                "graded_ms": _now_ms(),
                "passed": int(result.status == "passed"),
                "right": result.right,
                "of": result.of,
                "result": msgspec.json.encode(result).decode(),
            },
        )

    def submission(self, number: int) -> Submission | None:
        query = select(_SUBMISSIONS).where(_SUBMISSIONS.c.id == number)
        with self._transaction() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else Submission(**row)

    def submissions(self, lab: str) -> list[int]:
        """Give the numbers of all that was handed in for a lab, the first first."""
        query = (
            select(_SUBMISSIONS.c.id)
            .where(_SUBMISSIONS.c.lab == lab)
            .order_by(_SUBMISSIONS.c.id)
        )
        with self._transaction() as connection:
            return list(connection.execute(query).scalars())

    def number_of(self, submission: int) -> int | None:
        """Count the submissions of the same lab up to this one; None if it is none."""
        lab = (
            select(_SUBMISSIONS.c.lab)
            .where(_SUBMISSIONS.c.id == submission)
            .scalar_subquery()
        )
        query = (
            select(func.count())
            .select_from(_SUBMISSIONS)
            .where(_SUBMISSIONS.c.lab == lab, _SUBMISSIONS.c.id <= submission)
        )
        with self._transaction() as connection:
            return int(connection.execute(query).scalar_one()) or None

    def gradings(self, submission: int) -> list[Grading]:
        """Give all results of a submission, the first first."""
        query = (
            select(_RESULTS)
            .where(_RESULTS.c.submission == submission)
            .order_by(_RESULTS.c.id)
        )
        with self._transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return _readable(rows)

    def newest(self, lab: str, most: int) -> list[Grading]:
        """Give the last results of a lab, the newest first."""
        query = (
            select(_RESULTS)
            .join(_SUBMISSIONS)
            .where(_SUBMISSIONS.c.lab == lab)
            .order_by(_RESULTS.c.id.desc())
            .limit(most)
        )
        with self._transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return _readable(rows)

    def open_hint(self, lab: str, of: int) -> int:
        """Open one more hint of a lab, if there is one; tell how many are open."""
        now = insert(_HINTS).values(lab=lab, opened=min(1, of))
        more = now.on_conflict_do_update(
            index_elements=["lab"],
            set_={"opened": func.min(_HINTS.c.opened + 1, of)},
        )
        with self._transaction() as connection:
            connection.execute(more)
            query = select(_HINTS.c.opened).where(_HINTS.c.lab == lab)
            return int(connection.execute(query).scalar_one())

    def progress(self) -> dict[str, Progress]:
        """Tell how far the person is, by the labs that they began."""
        return read_progress(self.path)

    def _insert(self, table: Table, row: dict[str, Any]) -> int:
        with self._transaction() as connection:
            number = connection.execute(insert(table).values(row).returning(table.c.id))
            return int(number.scalar_one())

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, sqlite3.Error) as problem:
            raise store_error(self.path, problem) from None


def _readable(rows: Sequence[RowMapping]) -> list[Grading]:
    """Give results, without those that are damaged or of another version."""
    gradings = []
    for row in rows:
        with contextlib.suppress(
            msgspec.MsgspecError, UnicodeError, TypeError, RecursionError
        ):
            result = _decode(row["result"])
            times = (row["id"], row["submission"], row["graded_ms"])
            gradings.append(Grading(*times, result))
    return gradings


def _set_up(connection: Any, _record: object) -> None:
    # a commit is on the disk before it is acknowledged, and readers hold up nobody
    _to_wal(connection)
    for setting in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _to_wal(connection: Any) -> None:
    # SQLite waits for others in all it does, but not where two begin a file at once
    end_s = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > end_s:
                raise
            time.sleep(_AGAIN_S)


def _now_ms() -> int:
    return int(time.time() * 1000)
