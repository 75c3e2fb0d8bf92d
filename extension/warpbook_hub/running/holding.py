"""A folder is run by one hub at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_LOCK = "running.lock"


class IsHeld(Exception):
    """Another hub runs in the folder."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other hubs out of a folder; what we start does not hold it.

    Raises:
        IsHeld: one runs there.
        OSError: the folder can't be written.
    """
    # the file stays: whoever removed it could hold one that nobody else finds
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / _LOCK, flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IsHeld from None
        yield
    finally:
        os.close(descriptor)
