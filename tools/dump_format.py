"""Prints a dump of an archive of today's format, with a row in every table.

Once a format is released, its dump is kept for a test that opens it for ever after:
`python tools/dump_format.py > tests/data/formats/archive-N.sql`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

from warpbook_monitors.archive import database  # noqa: E402
from warpbook_monitors.archive.limits import Limits  # noqa: E402
from warpbook_monitors.archive.record import KeptRecord  # noqa: E402
from warpbook_monitors.archive.records import put  # noqa: E402

_VALUES: dict[str, object] = {"INTEGER": 1, "REAL": 2.0, "TEXT": "[]", "BLOB": b"\0"}
_ALERT = {
    "id": "temperature/gpu:GPU-1/1",
    "rule": "temperature",
    "severity": "warning",
    "device": "gpu:GPU-1",
    "title": "GPU 0 is hot",
    "text": "99 degrees",
    "since_ms": 1_700_000_000_000.0,
    "until_ms": 1_700_000_060_000.0,
    "kernel_id": None,
    "is_replay": False,
}


def main() -> None:
    """Make an archive in a folder of its own, and print it."""
    with tempfile.TemporaryDirectory() as folder:
        connection = database.connect(Path(folder, "archive.db"))
        with database.transaction(connection):
            _fill(connection)
        for pragma in ("application_id", "user_version"):
            (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
            print(f"PRAGMA {pragma} = {value};")
        print("\n".join(connection.iterdump()))
        connection.close()


def _fill(connection: sqlite3.Connection) -> None:
    record = KeptRecord(
        kind="alert",
        id=str(_ALERT["id"]),
        started_ms=1_700_000_000_000.0,
        ended_ms=1_700_000_060_000.0,
        notebook=None,
        kernel_id=None,
        cell_id=None,
        title="GPU 0 is hot",
        verdict="warning",
        status="ok",
        sentence="99 degrees",
    )
    put(connection, record, json.dumps(_ALERT).encode(), "server", Limits())
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    for (table,) in tables.fetchall():
        if table == "record" or table.startswith("sqlite_"):
            continue
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        values = [_VALUES[kind] for _, _, kind, *_ in columns]
        places = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table} VALUES ({places})", values)


if __name__ == "__main__":
    main()
