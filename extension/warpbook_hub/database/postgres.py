"""All that is PostgreSQL's own: transactions, migration, lost connections, its errors.

One transaction writes at a time, as with SQLite: it holds an advisory lock of the
database, and so sees all that was committed before it (READ COMMITTED). The order of
the queue depends on what others were just given, so leases are not taken side by side;
ADR 35 has figures. Readers see one moment (REPEATABLE READ) and wait for nobody.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database.address import without_password
from warpbook_hub.database.tables import TABLES
from warpbook_hub.errors import DatabaseBusy, DatabaseUnfit, HubError, NoRoom
from warpbook_monitors.database.format_steps import NewerFormat, Steps, bring_up_to_date

#: of the lock that writers hold, and of the one for whoever changes the format
_WRITER_LOCK, _FORMAT_LOCK = 0x77626862, 0x77626863
#: how long a writer waits for a server that restarts
_AWAY_S = 15.0
_AGAIN_S = 0.2
_CONNECT_S = 5
#: of every session: a program that hangs or a host that vanished holds nobody up
_OPTIONS = (
    "-c lock_timeout=20s -c idle_in_transaction_session_timeout=60s "
    "-c timezone=UTC -c client_encoding=UTF8 -c synchronous_commit=on"
)
_KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "connect_timeout": _CONNECT_S,
}
#: classes of SQLSTATE: no connection, no resources, the operator's doing, the system
_OF_DATABASE = ("08", "53", "55", "57", "58", "XX", "40")
_FULL = ("53100", "53200")
_MARK = "warpbook_hub"
#: texts are compared as SQLite does, byte by byte
_TEXT = re.compile(r"\bTEXT\b")
_KEEP_AUDIT = (
    """
    CREATE OR REPLACE FUNCTION audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the audit log is only added to'; END $$
    """,
    """
    CREATE OR REPLACE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_kept()
    """,
    # they go where a person is erased
    """
    CREATE OR REPLACE TRIGGER audit_details_kept BEFORE UPDATE ON audit_details
    FOR EACH ROW EXECUTE FUNCTION audit_kept()
    """,
)
_AUDIT_IS_KEPT = (
    "SELECT 1 FROM pg_trigger WHERE tgname = 'audit_details_kept' "
    "AND tgrelid = 'audit_details'::regclass"
)


class PostgresTarget:
    """A database whose format is a row of a table of its own."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def number(self) -> int:
        """Give the number of its format; 0 where it has just begun."""
        rows = self.run("SELECT to_regclass(%s) IS NOT NULL", (_MARK,))
        if not rows[0][0]:
            return 0
        return int(self.run(f"SELECT format FROM {_MARK}")[0][0])

    def lock(self) -> None:
        """Keep out whoever else would apply steps, until the transaction ends."""
        self.run("SELECT pg_advisory_xact_lock(%s)", (_FORMAT_LOCK,))

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        if statement.lstrip(" \n").upper().startswith(("CREATE", "ALTER", "--")):
            statement = _TEXT.sub('TEXT COLLATE "C"', statement)
        cursor = self._connection.execute(
            statement.encode(), tuple(parameters) if parameters else None
        )
        return cursor.fetchall() if cursor.description else []

    def set_number(self, number: int) -> None:
        """Note the number of its format, within the transaction."""
        self.run(
            f"CREATE TABLE IF NOT EXISTS {_MARK} "
            "(one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), format INTEGER)"
        )
        self.run(
            f"INSERT INTO {_MARK} (format) VALUES (%s) "
            "ON CONFLICT (one) DO UPDATE SET format = excluded.format",
            (number,),
        )


class PostgresDialect:
    """A database of a server."""

    def __init__(self, address: str) -> None:
        """Name the database; nothing is opened yet."""
        self._address = address
        self._shown = without_password(address)

    @property
    def file(self) -> None:
        """Give nothing: it is no file."""

    def migrate(self, steps: Steps) -> None:
        """Begin the database's tables, or bring them to today's format.

        Raises:
            DatabaseUnfit: it is newer than this warpbook, or another program's.
            NoRoom: the disk is full.
            DatabaseBusy: the server can't be reached.
        """
        plain = self._address.replace("+psycopg", "", 1)
        try:
            with psycopg.connect(plain, options=_OPTIONS, **_KEEPALIVE) as connection:
                target = PostgresTarget(connection)
                if not target.number():
                    self._refuse_foreign(target)
                bring_up_to_date(target, steps)
                if not target.run(_AUDIT_IS_KEPT):
                    target.lock()
                    for statement in _KEEP_AUDIT:
                        target.run(statement)
        except NewerFormat as newer:
            raise DatabaseUnfit(f"{self._shown}: {newer}") from None
        except psycopg.Error as problem:
            raise self.problem_of(problem) from None

    def engine(self, to_write: bool) -> Engine:
        """Give an engine; a connection that was lost is made anew."""
        engine = create_engine(
            self._address,
            isolation_level="READ COMMITTED" if to_write else "REPEATABLE READ",
            pool_pre_ping=True,
            connect_args={"options": _OPTIONS, **_KEEPALIVE},
        )
        if not to_write:

            def only_reads(connection: Any, _record: object) -> None:
                connection.read_only = True

            event.listen(engine, "connect", only_reads)
        return engine

    def begin_write(self, engine: Engine) -> tuple[Connection, str]:
        """Begin a transaction that nobody else writes beside.

        A server that restarts is waited for.
        """
        until_s = time.monotonic() + _AWAY_S
        while True:
            connection = None
            try:
                connection = engine.connect()
                connection.begin()
                connection.exec_driver_sql(
                    "SELECT pg_advisory_xact_lock(%s)", (_WRITER_LOCK,)
                )
                name = connection.exec_driver_sql(
                    "SELECT pg_current_xact_id()::text"
                ).scalar_one()
                return connection, str(name)
            except DBAPIError as problem:
                if connection is not None:
                    connection.close()
                if not self._is_away(problem) or time.monotonic() > until_s:
                    raise
                time.sleep(_AGAIN_S)

    def was_committed(self, engine: Engine, transaction: str) -> bool:
        """Ask the server for a transaction whose commit was cut off."""
        connection, _ = self.begin_write(engine)
        try:
            status = connection.exec_driver_sql(
                "SELECT pg_xact_status(%s::xid8)", (transaction,)
            ).scalar_one()
            return bool(status == "committed")
        finally:
            connection.close()

    def clear(self, connection: Connection) -> None:
        """Take all rows out, in a transaction."""
        names = ", ".join(table.name for table in TABLES)
        connection.exec_driver_sql(f"TRUNCATE {names}")

    def scrub(self) -> None:
        """Write the tables anew, without the rows that were erased.

        The server's own log and backups of it are its administrator's.

        Raises:
            DatabaseBusy: somebody holds a table all the time, or it can't be reached.
        """
        plain = self._address.replace("+psycopg", "", 1)
        try:
            with psycopg.connect(
                plain, options=_OPTIONS, autocommit=True, **_KEEPALIVE
            ) as connection:
                connection.execute("VACUUM (FULL)")
        except psycopg.Error as problem:
            raise self.problem_of(problem) from None

    def problem_of(self, problem: Exception) -> HubError:
        cause = problem.orig if isinstance(problem, DBAPIError) else problem
        state = getattr(cause, "sqlstate", None) or ""
        words = " ".join(str(cause).split())[:300]
        if state in _FULL:
            return NoRoom(
                f"{self._shown}: the server has no room, and nothing was written. Make "
                "room there; what was acknowledged before is kept."
            )
        if state.startswith(("28", "3D", "42501")):
            return DatabaseUnfit(f"{self._shown}: {words}")
        if self._is_away(cause) or state.startswith(("55", "40")):
            return DatabaseBusy(
                f"{self._shown}: the server can't be reached or is busy ({words}). "
                "Nothing was written. Try again."
            )
        return DatabaseUnfit(f"{self._shown}: {words}")

    def is_of_database(self, problem: DBAPIError) -> bool:
        state = getattr(problem.orig, "sqlstate", None) or ""
        return self._is_away(problem) or state.startswith(_OF_DATABASE)

    def _refuse_foreign(self, target: PostgresTarget) -> None:
        """Refuse a database in which another program has tables.

        Raises:
            DatabaseUnfit: it has.
        """
        rows = target.run(
            "SELECT count(*) FROM information_schema.tables "
            "WHERE table_schema = current_schema()"
        )
        if rows[0][0]:
            raise DatabaseUnfit(
                f"{self._shown}: there are tables that no hub has made. Name an empty "
                "database."
            )

    @staticmethod
    def _is_away(problem: BaseException | None) -> bool:
        cause = problem.orig if isinstance(problem, DBAPIError) else problem
        state = getattr(cause, "sqlstate", None)
        if isinstance(cause, psycopg.OperationalError) and state is None:
            # what the driver itself says of a connection
            return "authentication" not in str(cause) and "role" not in str(cause)
        return str(state or "").startswith(("08", "57P0"))
