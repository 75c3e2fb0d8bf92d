"""Archives and backups that are damaged or hostile: changed byte by byte."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.fuzz.inputs import Hostile, rounds
from tests.fuzz.surface import Surface
from tests.monitors.archive.machine import BEGIN_MS, DEVICES, frames
from warpbook.backup.creation import Places, make_backup
from warpbook.backup.manifest import BackupError
from warpbook.backup.restoration import restore_backup
from warpbook_labs.course.store import Store
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.database import connect
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.historian import Historian
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.lookup import archived_messages, read_archive
from warpbook_monitors.archive.records import Search, find
from warpbook_monitors.archive.steps import FRAMES, HOUR, MINUTE, SECOND
from warpbook_monitors.frames import Gap

_END_MS = BEGIN_MS + 3_600_000
#: frames: more than one segment, and some seconds that are in none yet
_FRAMES = 3300
_OPENED_S = 30.0


def archives(seed: int, count: int, folder: Path) -> Surface:
    """Open, read and write archives of which bytes or packed columns are changed.

    A failure is an error of another kind than the archive's, or one that takes
    nothing any more.
    """
    good = folder / "good-archive"
    gap = Gap(_END_MS - 2000, _END_MS - 1000, "not_watched", "Nobody watched.")
    good.mkdir(parents=True)
    with closing(connect(good / "archive.db")) as connection:
        messages = [(message, DEVICES) for message in (*frames(_FRAMES), gap)]
        Historian(Limits(), good).write(connection, messages)
    surface = Surface("archives")
    for hostile in rounds(seed, count):
        surface.inputs += 1
        changed = folder / "changed-archive"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(good, changed)
        _change(hostile, changed / "archive.db")
        try:
            with closing(_Opened(changed)) as opened:
                surface.refused += not _reads(opened.archive)
                opened.wait()
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            surface.failures.append(f"archives: {error!r}"[:300])
    return surface


def backups(seed: int, count: int, folder: Path) -> Surface:
    """Restore backups of which bytes are changed, in the archive or within it."""
    mine = Places(folder / "mine", folder / "mine-rules.toml")
    with closing(_Opened(mine.data / "archive" / "host")) as opened:
        opened.wait()
    Store(mine.data / "labs.db").add_submission("some-lab", "// mine", 7)
    good = folder / "good.tar.gz"
    make_backup(mine, good)
    packed = good.read_bytes()
    surface = Surface("backups")
    for hostile in rounds(seed, count):
        surface.inputs += 1
        changed = folder / "changed.tar.gz"
        if hostile.dice.random() < 0.5:
            changed.write_bytes(hostile.bytes_of(packed))
        else:
            inner = hostile.bytes_of(gzip.decompress(packed))
            changed.write_bytes(gzip.compress(inner, 1))
        others = Places(folder / "others", folder / "others-rules.toml")
        shutil.rmtree(others.data, ignore_errors=True)
        try:
            restore_backup(changed, others)
        except BackupError:
            surface.refused += 1
            if others.data.exists() and any(others.data.iterdir()):
                surface.failures.append("backups: refused, and something is there")
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            surface.failures.append(f"backups: {error!r}"[:300])
    return surface


class _Opened:
    """An archive at work."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.archive = Archive(folder)
        self.archive.start()

    def wait(self) -> None:
        """Wait for the file to take what is handed in, maybe after a mend."""
        until_s = time.monotonic() + _OPENED_S
        while not self.archive.wait_until_opened(_OPENED_S) or self.archive.problem:
            assert time.monotonic() < until_s, self.archive.problem
            time.sleep(0.05)

    def close(self) -> None:
        assert self.archive.close(_OPENED_S)


def _change(hostile: Hostile, path: Path) -> None:
    if hostile.dice.random() < 0.5:
        path.write_bytes(hostile.bytes_of(path.read_bytes()))
        return
    table, column = hostile.dice.choice(
        (
            ("segment", "columns"),
            ("description", "devices"),
            ("recent", "messages"),
            ("remark", "message"),
        )
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        row, value = hostile.dice.choice(rows)
        content = value if isinstance(value, bytes) else str(value).encode()
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
            (hostile.bytes_of(content), row),
        )


def _reads(archive: Archive) -> bool:
    """Read all that there is; False where the archive says that it can't."""
    try:
        for step_ms in (FRAMES, SECOND, MINUTE, HOUR):
            with archive.reading() as connection:
                devices = dict(enumerate(DEVICES))
                read_archive(connection, BEGIN_MS, _END_MS, devices, step_ms)
        with archive.reading() as connection:
            list(archived_messages(connection, BEGIN_MS, _END_MS, DEVICES))
            find(connection, Search())
    except ArchiveError:
        return False
    return True
