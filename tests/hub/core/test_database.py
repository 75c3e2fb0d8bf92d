"""The database: its formats, its refusals, and that commits of many are of each."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection

from tests.hub.core.course import START_MS, Classroom
from warpbook_hub import audit
from warpbook_hub.database import settings
from warpbook_hub.database.group_commit import Writer
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.tables import FORMAT
from warpbook_hub.errors import Conflict, DatabaseUnfit, NoRoom
from warpbook_hub.work.submissions import receipt, receive
from warpbook_monitors.database import format_steps

DATABASES = ("sqlite", "postgres")


def columns(path: Path) -> dict[str, list[str]]:
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    by_table = {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for (name,) in tables.fetchall()
    }
    connection.close()
    return by_table


def test_each_format_follows_the_one_before_or_all_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hub.db"
    HubDatabase(path).close()
    before = columns(path)
    scripts = {
        f"schema_{FORMAT + 1}.sql": ["ALTER TABLE courses ADD COLUMN extra TEXT"],
        f"schema_{FORMAT + 2}.sql": [
            "ALTER TABLE teams ADD COLUMN extra TEXT",
            "NONSENSE",
        ],
    }
    monkeypatch.setattr(format_steps, "statements", lambda _, name: scripts[name])
    with pytest.raises(DatabaseUnfit, match="NONSENSE"):
        HubDatabase(path, newest=FORMAT + 2)
    assert columns(path) == before
    HubDatabase(path, newest=FORMAT + 1).close()
    assert columns(path)["courses"] == [*before["courses"], "extra"]
    with pytest.raises(DatabaseUnfit, match=f"format {FORMAT + 1}.*Update warpbook"):
        HubDatabase(path)


def test_another_programs_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseUnfit, match="no database of a warpbook hub"):
        HubDatabase(path)
    assert path.read_bytes() == before
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(DatabaseUnfit, match="damaged"):
        HubDatabase(path)


@pytest.mark.sqlite
def test_nobody_else_reads_the_file(room: Classroom) -> None:
    path = room.database.path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.sqlite
def test_a_full_disk_gives_no_receipt_and_writes_nothing(room: Classroom) -> None:
    with room.database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(NoRoom, match="nothing was written"):
        for number in range(50):
            room.submit("ada", f"// {number} {'x' * 50_000}", replace=True)
    with room.database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1073741823")
        rows = connection.exec_driver_sql(
            "SELECT (SELECT count(*) FROM submissions), (SELECT count(*) FROM jobs),"
            " (SELECT count(*) FROM submission_members)"
        ).one()
    # each has its job and its member, or none of them is there
    assert len(set(rows)) == 1
    assert room.submit("ada", "// there is room again", replace=True).submission


def test_a_write_that_is_refused_leaves_those_beside_it(room: Classroom) -> None:
    writer = Writer(room.database)

    def hand_in(name: str, request: str) -> object:
        def write(connection: Connection) -> object:
            settings.put(connection, f"trace-{name}-{request}", "was here")
            person = room.people[name]
            source = f"// {request}"
            return receive(connection, START_MS, room.lab, person, source, request)

        return writer.submit(write)

    futures = [hand_in("ada", "r1"), hand_in("ada", "r2"), hand_in("bob", "r1")]
    given = [future.exception(60) or future.result() for future in futures]  # type: ignore[attr-defined]
    writer.close()
    assert isinstance(given[1], Conflict)
    with room.database.read() as connection:
        for receipt_given in (given[0], given[2]):
            assert receipt(connection, receipt_given.submission) == receipt_given
        assert settings.get(connection, "trace-ada-r1") == "was here"
        assert settings.get(connection, "trace-ada-r2") is None


def test_where_a_commit_fails_each_write_is_tried_by_itself(room: Classroom) -> None:
    writer = Writer(room.database)

    def twice(connection: Connection) -> None:
        for _ in range(2):
            connection.exec_driver_sql("INSERT INTO settings VALUES ('same', 'x')")

    def fits(connection: Connection) -> str:
        settings.put(connection, "good", "kept")
        return "kept"

    futures = [writer.submit(fits), writer.submit(twice), writer.submit(fits)]
    assert [futures[0].result(60), futures[2].result(60)] == ["kept", "kept"]
    writer.close()
    assert "unique" in str(futures[1].exception()).lower()
    with pytest.raises(RuntimeError):
        writer.submit(fits)
    with room.database.read() as connection:
        assert settings.get(connection, "same") is None


def test_what_people_ask_for_is_written_before_what_machines_do(
    room: Classroom,
) -> None:
    writer, begun, go_on = Writer(room.database), Event(), Event()
    written: list[str] = []

    def first(_: Connection) -> None:
        begun.set()
        assert go_on.wait(60)

    futures = [writer.submit(first)]
    assert begun.wait(60)
    for number in range(100):
        futures.append(
            writer.submit(lambda _: written.append("machine"), is_machine=True)
        )
        if number % 10 == 0:
            futures.append(writer.submit(lambda _: written.append("person")))
    go_on.set()
    for future in futures:
        future.result(60)
    writer.close()
    assert written == ["person"] * 10 + ["machine"] * 100


def test_the_audit_log_is_only_added_to(room: Classroom) -> None:
    with room.database.read() as connection:
        entries = audit.entries(connection)
    assert {entry.action for entry in entries} >= {"course created", "roster imported"}
    for change in (
        "UPDATE audit SET action = 'nothing'",
        "DELETE FROM audit",
        "UPDATE audit_details SET detail = '{}'",
    ):
        with pytest.raises(Exception, match="only added to"):
            with room.database.write() as connection:
                connection.exec_driver_sql(change)
