"""The archive's format: a step follows the one before, what is newer is left alone."""

import sqlite3
from pathlib import Path

import pytest

from warpbook_monitors.archive import database
from warpbook_monitors.archive.errors import ArchiveError, ArchiveTooNew


def columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables.fetchall()
    }


def test_each_format_follows_the_one_before_or_all_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A format to come is a script that changes the one before it, in one step."""
    connection = database.connect(tmp_path / "archive.db")
    before = columns(connection)
    scripts = {
        "schema_2.sql": ["ALTER TABLE record ADD COLUMN extra TEXT"],
        "schema_3.sql": ["ALTER TABLE record ADD COLUMN more TEXT", "NONSENSE"],
    }
    monkeypatch.setattr(database, "statements", lambda _, name: scripts[name])
    with pytest.raises(sqlite3.OperationalError, match="NONSENSE"):
        with database.transaction(connection):
            database.migrate(connection, 3)
    assert columns(connection) == before
    with database.transaction(connection):
        database.migrate(connection, 2)
    assert columns(connection)["record"] == before["record"] | {"extra"}
    connection.close()
    with pytest.raises(ArchiveTooNew, match="format 2"):
        database.connect(tmp_path / "archive.db")


def test_a_newer_one_and_another_programs_are_left_as_they_are(tmp_path: Path) -> None:
    newer, other = tmp_path / "newer.db", tmp_path / "other.db"
    connection = database.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    for path, error, words in (
        (newer, ArchiveTooNew, "Update warpbook"),
        (other, ArchiveError, "not an archive of warpbook"),
    ):
        content = path.read_bytes()
        for opened in (database.connect, database.connect_to_read):
            with pytest.raises(error, match=words):
                opened(path)
        assert path.read_bytes() == content
