"""Folders that a killed process left in the temporary folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

#: in which jails and players of host code begin
JAIL_PREFIX, PLAYER_PREFIX = "warpbook-jail-", "warpbook-host-"
#: between its making and its lock a folder is young, whatever the clock says
_YOUNG_S = 60.0


class OwnFolder(tempfile.TemporaryDirectory[str]):
    """A folder that is a leftover from the moment its process ends."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix, ignore_cleanup_errors=True)
        self._lock = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def cleanup(self) -> None:
        os.close(self._lock)
        super().cleanup()


def remove_leftovers() -> int:
    """Remove our own folders whose processes have ended; give how many."""
    count = 0
    for prefix in (JAIL_PREFIX, PLAYER_PREFIX):
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            # it may be another's, or go meanwhile
            with contextlib.suppress(OSError):
                state = folder.lstat()
                if folder.is_symlink() or state.st_uid != os.getuid():
                    continue
                if abs(time.time() - state.st_mtime) > _YOUNG_S and not _in_use(folder):
                    shutil.rmtree(folder)
                    count += 1
    return count


def _in_use(folder: Path) -> bool:
    """Whether a process has it locked.

    Raises:
        OSError: it can't be opened.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
