"""Files that a person names are opened only if they are plain files."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotAPlainFile(OSError):
    """A pipe, a device, a socket or a folder: to read it could take for ever."""


def check_plain(path: Path) -> None:
    """Refuse what is no plain file, before it is opened.

    Raises:
        NotAPlainFile: it is something else.
        OSError: it is not there, or can't be looked at.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotAPlainFile(0, "It is not a regular file; copy it to one", str(path))
