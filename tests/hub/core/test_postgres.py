"""What a server's database has: crashes, several writers, a move there and back."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, inspect

from tests.hub.core.course import START_MS, Classroom, classroom
from tests.hub.core.kills import Tally, run_class
from tests.hub.postgres import PostgresServer
from warpbook.cli.output import CommandError
from warpbook.hub_protocol import WorkRequest
from warpbook_hub.cli import checks as hub_checks
from warpbook_hub.cli import database as hub_database
from warpbook_hub.course.courses import courses
from warpbook_hub.database.address import (
    checked_address,
    has_password,
    read_address,
    without_password,
    write_address,
)
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.tables import JOBS, TABLES
from warpbook_hub.errors import Conflict, DatabaseBusy, DatabaseUnfit
from warpbook_hub.keeping.backup import digests
from warpbook_hub.keeping.move import move
from warpbook_hub.queue import dispatch, graders
from warpbook_hub.running.plan import HubPlan
from warpbook_hub.service.handler import problem_of
from warpbook_hub.work.submissions import receipt, receive

DATABASES = ("postgres",)


def test_crashes_of_the_server_lose_and_double_nothing(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    def crash() -> None:
        postgres.stop("immediate")
        postgres.start()

    def is_enough(tally: Tally) -> bool:
        acknowledged = len(tally.acknowledged)
        return acknowledged >= 5 and tally.crashes >= 2 and tally.kills >= 6

    tally = run_class(
        tmp_path, seconds=6, seed=5, is_enough=is_enough, crash_database=crash
    )
    assert is_enough(tally)
    assert (tally.lost, tally.wrong) == ([], [])


def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    room: Classroom, postgres: PostgresServer
) -> None:
    """The connection ends after the commit reached the server and before its answer."""
    with room.database.write() as connection:
        raw = connection.connection.driver_connection
        given = hand_in(room, connection)
        commit = raw.commit

        def cut_off() -> None:
            commit()
            raw.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        raw.commit = cut_off
    with room.database.read() as connection:
        assert receipt(connection, given) is not None
        jobs = connection.execute(JOBS.select()).all()
    assert len(jobs) == 1


def hand_in(room: Classroom, connection: Connection) -> str:
    person = room.people["ada"]
    given = receive(connection, START_MS, room.lab, person, "// here", "r1")
    return given.submission


def test_several_writers_lease_each_job_once(room: Classroom) -> None:
    for name in ("ada", "bob", "cyd"):
        room.submit(name)
    names = []
    with room.database.write() as connection:
        for number in range(4):
            graders.register(connection, START_MS, "hub", f"g{number}")
        ids = [row.id for row in connection.execute(graders.GRADERS.select())]

    def lease(grader: str) -> None:
        database = HubDatabase(room.database.path)
        for _ in range(5):
            with database.write() as connection:
                work = dispatch.lease(
                    connection, room.now_ms, grader, WorkRequest(1, ())
                )
            names.extend((order.job, order.fence) for order in work.jobs)
        database.close()

    threads = [threading.Thread(target=lease, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == len(set(names)) == 3


def test_the_schema_is_that_of_the_file(room: Classroom, tmp_path: Path) -> None:
    file = HubDatabase(tmp_path / "file" / "hub.db")

    def shape(database: HubDatabase) -> dict[str, object]:
        with database.read() as connection:
            look = inspect(connection)
            return {
                name: (
                    [(c["name"], c["nullable"]) for c in look.get_columns(name)],
                    sorted(look.get_pk_constraint(name)["constrained_columns"]),
                    sorted(
                        (sorted(key["constrained_columns"]), key["referred_table"])
                        for key in look.get_foreign_keys(name)
                    ),
                    sorted(
                        sorted(map(str, index["column_names"]))
                        for index in look.get_indexes(name)
                        if not index.get("duplicates_constraint")
                        and not str(index["name"]).startswith("sqlite_")
                    ),
                )
                for name in (table.name for table in TABLES)
            }

    assert shape(room.database) == shape(file)
    file.close()


def test_a_course_moves_to_a_server_and_back(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    folder = tmp_path / "course"
    room = classroom(folder / "hub.db")
    for name in ("ada", "bob"):
        room.submit(name, f"// {name} é ☃ \U0001f600")
    with room.database.read() as connection:
        before = digests(connection)
    room.database.close()
    address = postgres.new_database()
    moved = move(folder, address)
    assert moved.tables == len(TABLES) and moved.rows > 10
    assert moved.left == str(folder / "hub.db")
    on_server = HubDatabase(folder / "hub.db")
    assert on_server.file is None
    with on_server.read() as connection:
        assert digests(connection) == before
    on_server.close()
    # begun again after it was cut off before the switch
    write_address(folder, None)
    assert move(folder, address).rows == moved.rows
    with pytest.raises(Conflict, match="there already"):
        move(folder, address)
    assert move(folder, None).left == ""
    back = HubDatabase(folder / "hub.db")
    assert back.file == folder / "hub.db"
    with back.read() as connection:
        assert digests(connection) == before
    back.close()


def test_what_cant_take_a_course_is_refused_and_all_stays(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    folder = tmp_path / "course"
    classroom(folder / "hub.db").database.close()
    theirs, other = postgres.new_database(), postgres.new_database()
    with psycopg.connect(theirs) as connection:
        connection.execute("CREATE TABLE theirs (x INTEGER)")
    write_address(tmp_path, other)
    classroom(tmp_path / "hub.db").database.close()
    with pytest.raises(DatabaseUnfit, match="no hub has made"):
        move(folder, theirs)
    with pytest.raises(Conflict, match="another course"):
        move(folder, other)
    with pytest.raises(DatabaseBusy, match="can't be reached") as away:
        move(folder, "postgresql://wb:secret@127.0.0.1:1/hub")
    # whoever starts the hub sees where the database is, and learners do not
    assert "127.0.0.1" in str(away.value)
    status, shown = problem_of(away.value, 500)
    assert status == 503
    assert "Try again" in shown["error"] and "127.0.0.1" not in shown["error"]
    with pytest.raises(DatabaseUnfit, match="such as postgresql://"):
        move(folder, "mysql://somewhere/hub")
    assert read_address(folder) is None and not (folder / ".moving").exists()
    database = HubDatabase(folder / "hub.db")
    with database.read() as connection:
        assert [course.id for course in courses(connection)] == ["gpu101"]
    database.close()


def test_the_command_moves_a_course_and_takes_no_password(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    plan = HubPlan(
        str(tmp_path), "shared", "127.0.0.1", 8000, "/", "gpu101", "GPU", (), ("", "")
    )
    classroom(plan.course_folder / "hub.db").database.close()
    with pytest.raises(CommandError, match="--move-database env"):
        hub_database.move(plan, "postgresql://wb:secret@db/hub")
    monkeypatch.setenv("WARPBOOK_HUB_DATABASE", postgres.new_database())
    said = hub_database.move(plan, "env")
    words = rf"Moved to postgresql://wb@.*: \d+ rows of {len(TABLES)} tables"
    assert re.search(words, said)
    check = hub_checks.database_check(plan)
    assert check.state == "ok" and "PostgreSQL" in check.message
    assert "Moved to a file" in hub_database.move(plan, "sqlite")
    with pytest.raises(CommandError, match="there already"):
        hub_database.move(plan, "sqlite")


def test_a_password_is_never_shown() -> None:
    address = checked_address("postgresql://wb:secret@db.example.org:5433/hub")
    assert has_password(address)
    assert without_password(address) == "postgresql://wb@db.example.org:5433/hub"
    assert has_password("postgresql://wb@db/hub?password=secret")
    assert not has_password("postgresql://wb@db/hub?sslmode=require")
