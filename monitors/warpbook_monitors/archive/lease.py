"""Which of a person's servers keeps the history of this machine: one at a time.

The lock is the operating system's, so it ends with the process that holds it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from warpbook_monitors.archive.file_identity import identity_of


class Lease:
    """A lock on a file beside the archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process has it."""
        return self._descriptor is not None

    def take(self) -> bool:
        """Take it unless another process has it; say whether it is held.

        Raises:
            OSError: the file can't be opened.
        """
        if self._descriptor is not None:
            if self._is_in_place(self._descriptor):
                return True
            # somebody removed the file: what is locked is nobody's any more
            self.release()
        while True:
            descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_in_place(descriptor):
                    break
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:
                os.close(descriptor)
                raise
            # it was removed between the two
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor
        return True

    def _is_in_place(self, descriptor: int) -> bool:
        stat = os.fstat(descriptor)
        return identity_of(self._path) == (stat.st_dev, stat.st_ino)

    def release(self) -> None:
        if self._descriptor is not None:
            # a child that was forked meanwhile may have the file open, too
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> int | None:
        """The process that took it last; None where that can't be read."""
        try:
            return int(self._path.read_text().strip() or 0) or None
        except (OSError, ValueError):
            return None
