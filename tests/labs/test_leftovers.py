"""What a killed process left in the temporary folder goes with the next start."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from warpbook_labs.course.store import Store
from warpbook_labs.sandbox.children import (
    JAIL_PREFIX,
    PLAYER_PREFIX,
    OwnFolder,
    remove_leftovers,
)


def test_only_our_old_folders_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old_s = time.time() - 24 * 3600
    kept = [tmp_path / f"{JAIL_PREFIX}new", tmp_path / "somebody-elses"]
    gone = [tmp_path / f"{JAIL_PREFIX}old", tmp_path / f"{PLAYER_PREFIX}old"]
    for folder in (*kept, *gone):
        folder.mkdir()
    (gone[1] / "source.py").write_text("x = 1")
    precious = tmp_path / "precious"
    precious.mkdir()
    link = tmp_path / f"{PLAYER_PREFIX}link"
    link.symlink_to(precious)
    for folder in (*gone, kept[1], precious):
        os.utime(folder, (old_s, old_s))
    # a clock that is years ahead makes nothing old that is in use
    used = OwnFolder(JAIL_PREFIX)
    os.utime(used.name, (old_s, old_s))
    assert remove_leftovers() == 2
    assert Path(used.name).exists()
    used.cleanup()
    gone.append(tmp_path / f"{JAIL_PREFIX}of-a-wrong-clock")
    gone[-1].mkdir()
    os.utime(gone[-1], (time.time() + 10**8, time.time() + 10**8))
    assert remove_leftovers() == 1
    assert all(folder.exists() for folder in (*kept, precious, link))
    assert not any(folder.exists() for folder in gone)


def test_submissions_are_nobody_elses_to_read(tmp_path: Path) -> None:
    path = tmp_path / "data" / "labs.db"
    path.parent.mkdir()
    Store(path)
    assert path.stat().st_mode & 0o777 == 0o600
    # as versions before have left it
    path.chmod(0o644)
    Store(path)
    assert path.stat().st_mode & 0o777 == 0o600
    Store(tmp_path / "new" / "labs.db")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
