"""A file of each format that there ever was is brought to today's.

`tests/data/formats/archive-N.sql` is what `tools/dump_format.py` printed when format N
was the newest. It stays as it is once that was released.
"""

import json
import sqlite3
from pathlib import Path

import pytest

from warpbook_monitors.archive import database
from warpbook_monitors.archive.errors import ArchiveError, ArchiveTooNew
from warpbook_monitors.archive.records import Search, find, message_of

FORMATS = Path(__file__).parents[2] / "data" / "formats"


def columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables.fetchall()
    }


@pytest.mark.parametrize("version", range(1, database.SCHEMA_VERSION + 1))
def test_an_older_archive_is_migrated_with_all_that_it_holds(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "archive.db"
    old = sqlite3.connect(path)
    old.executescript((FORMATS / f"archive-{version}.sql").read_text())
    old.close()
    connection, fresh = database.connect(path), database.connect(tmp_path / "new.db")
    assert columns(connection) == columns(fresh)
    (user_version,) = connection.execute("PRAGMA user_version").fetchone()
    assert user_version == database.SCHEMA_VERSION
    for table in columns(connection):
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert rows == 1, table
    (record,), _ = find(connection, Search(text="hot"))
    message = json.loads(message_of(connection, record.kind, record.id))
    assert message["title"] == record.title == "GPU 0 is hot"
    connection.close()
    fresh.close()


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
        (other, ArchiveError, "no archive of warpbook"),
    ):
        content = path.read_bytes()
        for opened in (database.connect, database.connect_to_read):
            with pytest.raises(error, match=words):
                opened(path)
        assert path.read_bytes() == content
