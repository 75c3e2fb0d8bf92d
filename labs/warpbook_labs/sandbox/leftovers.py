"""Folders that a killed process left in the temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

#: in which jails and players of host code begin
JAIL_PREFIX, PLAYER_PREFIX = "warpbook-jail-", "warpbook-host-"
#: longer than any grading takes
_UNUSED_S = 6 * 3600.0


def remove_leftovers(now_s: float | None = None) -> int:
    """Remove our own folders that nobody has used for hours; give how many."""
    oldest_s = (time.time() if now_s is None else now_s) - _UNUSED_S
    count = 0
    for prefix in (JAIL_PREFIX, PLAYER_PREFIX):
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            # it may be another's, or go meanwhile
            with contextlib.suppress(OSError):
                state = folder.lstat()
                if folder.is_symlink() or state.st_uid != os.getuid():
                    continue
                if state.st_mtime < oldest_s:
                    shutil.rmtree(folder)
                    count += 1
    return count
