"""A cut tail of the audit log is seen by a head that was kept outside of it."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import Classroom, classroom
from warpbook.hub import audit
from warpbook.hub.audit import AuditHead
from warpbook.hub.database.sqlite import TRIGGERS
from warpbook.hub.exports.records import json_lines
from warpbook.hub.keeping.backup import back_up, restore
from warpbook.hub.keeping.kept_head import FILE, keep_head, kept_head
from warpbook.hub.queue.control import pause, resume


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Classroom]:
    made = classroom(tmp_path / "course" / "hub.db")
    yield made
    made.database.close()


def head_of(room: Classroom) -> AuditHead:
    with room.database.read() as connection:
        return audit.head(connection)


def problem_of(room: Classroom, kept: AuditHead | None) -> str:
    with room.database.read() as connection:
        return audit.problem(connection, kept)


def write_entry(room: Classroom, reason: str = "lunch") -> None:
    with room.database.write() as connection:
        pause(connection, room.now_ms, room.instructor, reason)


def cut_tail(path: Path, count: int = 1) -> None:
    """Remove the last entries, as whoever has the file can."""
    forger = sqlite3.connect(path)
    for name in TRIGGERS:
        forger.execute(f"DROP TRIGGER IF EXISTS {name}")
    query = "SELECT number FROM audit ORDER BY number DESC LIMIT ?"
    numbers = forger.execute(query, (count,)).fetchall()
    for table in ("audit_details", "audit"):
        forger.executemany(f"DELETE FROM {table} WHERE number = ?", numbers)
    forger.commit()
    forger.close()


@pytest.mark.sqlite
def test_a_cut_tail_is_seen_by_a_head_that_was_kept(room: Classroom) -> None:
    write_entry(room)
    kept = head_of(room)
    assert problem_of(room, kept) == ""
    cut_tail(room.database.path)
    # the rest still follows from itself: by itself the log can't tell
    assert problem_of(room, None) == ""
    assert "the last ones were removed" in problem_of(room, kept)


@pytest.mark.sqlite
def test_a_tail_that_was_written_anew_is_seen(room: Classroom) -> None:
    write_entry(room, "the true one")
    kept = head_of(room)
    cut_tail(room.database.path)
    write_entry(room, "another one")
    write_entry(room, "and one more")
    assert problem_of(room, None) == ""
    assert "others written in their place" in problem_of(room, kept)


def test_a_log_that_grows_or_forgets_a_person_fits_every_head(room: Classroom) -> None:
    heads = [AuditHead(), head_of(room)]
    write_entry(room)
    heads.append(head_of(room))
    with room.database.write() as connection:
        resume(connection, room.now_ms, room.instructor)
        audit.forget(connection, ["queue"])
    heads.append(head_of(room))
    assert [problem_of(room, head) for head in heads] == [""] * 4


@pytest.mark.sqlite
def test_records_end_with_the_head_of_their_moment(room: Classroom) -> None:
    with room.database.read() as connection:
        last = json.loads(list(json_lines(connection, "gpu101"))[-1])
    assert last.pop("kind") == "audit head"
    assert AuditHead(**last) == head_of(room)
    cut_tail(room.database.path)
    assert problem_of(room, AuditHead(**last))


def test_a_restored_log_says_how_far_the_replaced_one_was(
    room: Classroom, tmp_path: Path
) -> None:
    back_up(room.database, tmp_path / "backup.db")
    write_entry(room)
    replaced = head_of(room)
    restore(room.database, tmp_path / "backup.db", room.now_ms, "hub")
    with room.database.read() as connection:
        detail = json.loads(audit.entries(connection)[-1].detail)
    assert AuditHead(**detail["log_before"]) == replaced


def test_a_kept_head_is_there_again_for_its_owner_alone(tmp_path: Path) -> None:
    assert kept_head(tmp_path) is None
    for head in (AuditHead(3, "ab"), AuditHead(4, "cd")):
        keep_head(tmp_path, head)
        assert kept_head(tmp_path) == head
    file = tmp_path / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    file.write_text("{")
    with pytest.raises(ValueError):
        kept_head(tmp_path)
