"""Which file is in a place now, and a lock that keeps it there while it is opened.

SQLite follows the file that it opened, not its name: who goes on writing into one that
was replaced writes for nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from warpbook_monitors.archive.errors import ArchiveStopped

#: device and inode
Identity = tuple[int, int]

#: to open takes milliseconds, to mend a second for each 100 MB or so
_PATIENCE_S = 10.0
_LOOK_S = 0.02


def identity_of(path: Path) -> Identity | None:
    """Which file has that name; None where there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


@contextlib.contextmanager
def place_lock(path: Path, to_replace: bool) -> Iterator[None]:
    """Hold the lock on the place of a file.

    Args:
        path: of the file, in a folder that is there.
        to_replace: alone, to put another file there; else, with others, to open it.

    Raises:
        ArchiveStopped: another process is replacing the file.
        OSError: the lock can't be opened.
    """
    lock = path.with_name(f"{path.stem}.place.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until_s = time.monotonic() + _PATIENCE_S
        how = fcntl.LOCK_EX if to_replace else fcntl.LOCK_SH
        while True:
            try:
                fcntl.flock(descriptor, how | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise ArchiveStopped(
                        f"{path}: another process is repairing it."
                    ) from None
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)
