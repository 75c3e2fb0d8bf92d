"""What leaves the hub, and what is erased or brought back."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import DUE_MS, START_MS, Classroom, classroom, facts
from warpbook_hub import audit
from warpbook_hub.course.courses import Course, add_staff, create_course, members
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database import settings
from warpbook_hub.errors import BadRequest, Conflict, DatabaseUnfit, Forbidden, NotFound
from warpbook_hub.exports.grades import COLUMNS, grades, iso_time, nbgrader_csv
from warpbook_hub.exports.records import json_lines, write_sources
from warpbook_hub.ids import token_digest
from warpbook_hub.keeping import backup
from warpbook_hub.keeping.backup import back_up, restore
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.queue import graders
from warpbook_hub.queue.control import pause
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.work.decisions import override
from warpbook_hub.work.submissions import is_genuine, submissions_of
from warpbook_monitors.spreadsheet import cell

DATABASES = ("sqlite", "postgres")
HOSTILE = """username,first_name,last_name,email,section
eve,"=HYPERLINK(""http://evil"",""x"")",@SUM(A1),+1,-2
"""


def exported(room: Classroom) -> list[dict[str, str]]:
    with room.database.read() as connection:
        return list(
            csv.DictReader(
                io.StringIO(nbgrader_csv(grades(connection, room.now_ms, "gpu101")))
            )
        )


def test_grades_are_in_the_columns_of_nbgrader(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", late_percent_per_day=25)
    room.now_ms = DUE_MS + HOUR_MS
    room.submit("ada")
    room.grade(room.grader())
    with room.database.write() as connection:
        bob = room.people["bob"]
        override(connection, room.now_ms, room.instructor, room.lab, bob, 3, "tried")
    ada, bob_row, cyd = sorted(exported(room), key=lambda row: row["student_id"])
    assert tuple(ada) == COLUMNS
    assert (ada["assignment"], ada["last_name"]) == ("vector-add", "Lovelace")
    assert (ada["raw_score"], ada["late_submission_penalty"]) == ("10", "2.5")
    assert (ada["score"], ada["max_score"]) == ("7.5", "10")
    assert ada["timestamp"] > ada["duedate"].replace("T", "T")
    assert (bob_row["score"], bob_row["late_submission_penalty"]) == ("3", "0")
    assert (cyd["score"], cyd["timestamp"], cyd["status"]) == ("", "", "not handed in")
    room.database.close()


def test_cells_are_written_as_people_read_them() -> None:
    written = [cell(value) for value in (33.333333333, 0.1 + 0.2, 999_999.5, 1e6, 1e-7)]
    assert written == ["33.333333", "0.3", "999999.5", "1000000", "0"]
    assert [cell(value) for value in (-2.5, 1e15, float("nan"), None)] == [
        "-2.5",
        "1000000000000000",
        "",
        "",
    ]
    # with microseconds or without, a program reads one format
    assert len(iso_time(1_790_000_000_000)) == len(iso_time(1_790_000_000_123))


def test_no_cell_is_a_formula(room: Classroom) -> None:
    with room.database.write() as connection:
        rows = read_roster(HOSTILE.encode())
        import_roster(connection, START_MS, room.instructor, "gpu101", rows)
    [row] = exported(room)
    assert row["first_name"] == '\'=HYPERLINK("http://evil","x")'
    for value in row.values():
        assert not value.startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("text", ["＝1+1", "＠SUM(A1)", "\u00a0=1+1", "\t=1"])
def test_wide_characters_and_wide_spaces_begin_no_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


@given(some.text(max_size=20))
def test_no_text_begins_as_a_formula(text: str) -> None:
    written = cell(text)
    assert not written.strip().startswith(("=", "+", "-", "@", "|", "%"))
    assert written.endswith(text)


def test_records_are_json_lines_without_what_is_secret(room: Classroom) -> None:
    room.submit("ada", "// secret source")
    room.grade(room.grader())
    with room.database.write() as connection:
        create_course(connection, room.now_ms, "hub", Course("other", "Other"))
        pause(connection, room.now_ms, room.instructor, "not of this course")
        lines = list(json_lines(connection, "gpu101"))
        with pytest.raises(NotFound):
            list(json_lines(connection, "nothing"))
    records = [json.loads(line) for line in lines]
    kinds = {row["kind"] for row in records}
    assert {row["course"] for row in records if row["kind"] == "audit"} == {"gpu101"}
    assert kinds >= {"course", "person", "submission", "result", "audit"}
    [result] = [row for row in records if row["kind"] == "result"]
    assert result["facts"]["verdict"] == "right"
    whole = b"".join(lines)
    for secret in (b"secret source", b'"seed"', b"token", b"receipt_key"):
        assert secret not in whole


def test_all_sources_are_in_a_zip(room: Classroom) -> None:
    room.submit("ada", "// one")
    room.submit("ada", "// two", replace=True)
    room.submit("bob", "// three")
    file = io.BytesIO()
    with room.database.read() as connection:
        assert write_sources(connection, "gpu101", file) == 3
    with zipfile.ZipFile(file) as archive:
        names = sorted(archive.namelist())
        assert archive.testzip() is None
        assert archive.read(names[1]) == b"// two"
    assert names[0].startswith("vector-add/ada/001-") and names[0].endswith(".cu")


@pytest.mark.sqlite
def test_a_person_is_erased_and_their_team_keeps_its_work(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", is_team_work=True)
    grader = room.grader()
    room.submit("ada", "// of Ada alone")
    room.submit("bob", "// of the team")
    for _ in range(2):
        room.grade(grader)
    with room.database.write() as connection:
        for name in ("ada", "bob"):
            args = (connection, room.now_ms, room.instructor, room.people[name])
            with pytest.raises(BadRequest):
                erase(*args, "")
            erased = erase(*args, "asked for it")
            with pytest.raises(NotFound):
                erase(*args, "again")
        assert (erased.submissions, erased.shared_submissions) == (0, 1)
    with room.database.read() as connection:
        assert {m.username for m in members(connection, "gpu101")} == {"cyd", "grace"}
        [kept] = submissions_of(connection, room.lab, room.people["cyd"])
        assert kept.members == (room.people["cyd"],)
    room.database.scrub()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("hub.db*"))
    for word in (b"Lovelace", b"of Ada alone", b"Noyce"):
        assert word not in content
    assert b"of the team" in content
    room.database.close()


def test_erasing_leaves_a_course_its_instructor(room: Classroom) -> None:
    with room.database.write() as connection:
        args = (connection, room.now_ms, room.instructor)
        with pytest.raises(Conflict):
            erase(*args, room.instructor, "left")
        add_staff(*args, "gpu101", "alan", "instructor")
        erase(*args, room.instructor, "left")
    with room.database.read() as connection:
        staff = {
            m.username for m in members(connection, "gpu101") if m.role != "learner"
        }
    assert staff == {"alan"}


def test_log_of_a_course_has_nothing_of_another_or_of_the_hub(room: Classroom) -> None:
    with room.database.write() as connection:
        create_course(connection, START_MS, "hub", Course("other", "Another"))
        pause(connection, room.now_ms, room.instructor, "the GPU is repaired")
        pause(connection, room.now_ms, room.instructor, "a wrong lab", "gpu101")
        ada = room.people["ada"]
        erase(connection, room.now_ms, room.instructor, ada, "she asked")
        seen = audit.entries(connection, course="gpu101")
        others = audit.entries(connection, course="other")
        of_hub = audit.entries(connection, course="")
    assert [one.action for one in seen[-2:]] == ["queue paused", "person erased"]
    # whom a course has erased is nobody else's
    assert [one.action for one in others] == ["course created"]
    assert [one.action for one in of_hub] == ["queue paused"]


def test_a_backup_is_made_while_others_write(room: Classroom, tmp_path: Path) -> None:
    room.submit("ada", "// before")
    is_over = threading.Event()

    def hand_in() -> None:
        while not is_over.is_set():
            room.submit("bob", f"// {room.now_ms} {'x' * 20_000}", replace=True)
            room.now_ms += HOUR_MS // 60

    writing = threading.Thread(target=hand_in)
    writing.start()
    try:
        for number in range(5):
            back_up(room.database, tmp_path / f"{number}.db")
    finally:
        is_over.set()
        writing.join()
    for number in range(5):
        file = tmp_path / f"{number}.db"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        copy = sqlite3.connect(file)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copy.execute("SELECT count(*) FROM jobs").fetchone() == (
            copy.execute("SELECT count(*) FROM submissions").fetchone()
        )
        copy.close()
    with pytest.raises(Conflict):
        back_up(room.database, tmp_path / "0.db")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.sqlite
def test_a_write_between_its_parts_begins_no_backup_anew(
    room: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.submit("ada", "x" * 190_000)
    target = tmp_path / "copy.db"
    parts: list[int] = []

    class Watched(sqlite3.Connection):
        def backup(self, target: sqlite3.Connection, **given: object) -> None:
            def write(_status: int, left: int, _total: int) -> None:
                parts.append(left)
                assert len(parts) < 1_000
                room.submit("bob", f"// {len(parts)}", replace=True)
                room.now_ms += HOUR_MS

            super().backup(target, progress=write, **given)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def opened(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        with contextlib.closing(
            sqlite3.connect(path, isolation_level=None, factory=Watched)
        ) as connection:
            yield connection

    monkeypatch.setattr(backup, "_PAGES", 20)
    monkeypatch.setattr(backup, "_opened", opened)
    back_up(room.database, target)
    assert len(parts) > 3 and parts == sorted(parts, reverse=True)
    with contextlib.closing(sqlite3.connect(target)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # one moment: the one at which it began
        assert copy.execute("SELECT count(*) FROM submissions").fetchone() == (1,)


def test_a_restored_hub_refuses_results_of_leases_from_before(
    room: Classroom, tmp_path: Path
) -> None:
    grader = room.grader()
    kept = room.submit("ada")
    (before,) = room.lease(grader)
    back_up(room.database, tmp_path / "backup.db")
    room.finish(grader, before, facts("wrong", 1))
    lost = room.submit("bob")
    restore(room.database, tmp_path / "backup.db", room.now_ms, room.instructor)
    assert not room.finish(grader, before).is_accepted
    (again,) = room.lease(grader)
    assert again.job == before.job and room.finish(grader, again).is_accepted
    with room.database.read() as connection:
        assert len(submissions_of(connection, room.lab, room.people["ada"])) == 1
        assert submissions_of(connection, room.lab, room.people["bob"]) == []
        # who shows the receipt of what the backup lacks is believed
        assert is_genuine(connection, lost, "bob")
        assert is_genuine(connection, kept, "ada")
        # and nobody with the receipt of another
        assert not is_genuine(connection, lost, "ada")
        assert audit.entries(connection)[-1].action == "database restored"
    room.submit("bob")


def test_a_backup_has_no_secret_and_brings_no_trust(
    room: Classroom, tmp_path: Path
) -> None:
    with room.database.write() as connection:
        token = graders.register(connection, room.now_ms, "hub", "far")
        retired = graders.register(connection, room.now_ms, "hub", "old")
    target = tmp_path / "backup.db"
    back_up(room.database, target)
    with room.database.write() as connection:
        key = settings.get(connection, settings.RECEIPT_KEY)
        old = graders.authenticate(connection, retired)
        graders.retire(connection, room.now_ms, "hub", old)
    content = target.read_bytes()
    assert key is not None and key.encode() not in content
    assert token_digest(token).encode() not in content
    planted = "1" * 64
    with contextlib.closing(sqlite3.connect(target)) as attack, attack:
        attack.execute(
            "INSERT INTO graders VALUES"
            " ('g', 'mallory', ?, 'active', 1, '[]', NULL, 1, 1)",
            (token_digest(planted),),
        )
        attack.execute("INSERT INTO settings VALUES ('receipt_key', ?)", (planted,))
        # a name of ours, and another body
        attack.execute("DROP TRIGGER audit_kept_delete")
        attack.execute(
            "CREATE TRIGGER audit_kept_delete BEFORE DELETE ON audit"
            " BEGIN DELETE FROM results; END"
        )
    restore(room.database, target, room.now_ms, room.instructor)
    with room.database.read() as connection:
        assert settings.get(connection, settings.RECEIPT_KEY) == key
        assert graders.authenticate(connection, token)
        for refused in (planted, retired):
            with pytest.raises(Forbidden):
                graders.authenticate(connection, refused)
    if room.database.file is not None:
        with contextlib.closing(sqlite3.connect(room.database.file)) as file:
            query = "SELECT group_concat(sql) FROM sqlite_master"
            (schema,) = file.execute(query).fetchone()
        assert "DELETE FROM results" not in schema


@pytest.mark.sqlite
def test_what_is_no_backup_is_refused_and_all_stays(
    room: Classroom, tmp_path: Path
) -> None:
    room.submit("ada")
    wrong = tmp_path / "wrong.db"
    back_up(room.database, wrong)
    attack = sqlite3.connect(wrong)
    attack.execute(
        "CREATE TRIGGER attack AFTER INSERT ON jobs BEGIN DELETE FROM results; END"
    )
    attack.commit()
    attack.close()
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE theirs (x)").connection.close()
    (tmp_path / "damaged.db").write_bytes(wrong.read_bytes()[:9000])
    for name in ("wrong.db", "other.db", "damaged.db", "nothing.db"):
        with pytest.raises(DatabaseUnfit):
            restore(room.database, tmp_path / name, room.now_ms, room.instructor)
    with room.database.read() as connection:
        assert len(submissions_of(connection, room.lab, room.people["ada"])) == 1
    assert {path.name for path in room.database.path.parent.iterdir()} <= {
        "hub.db",
        "hub.db-wal",
        "hub.db-shm",
    }
