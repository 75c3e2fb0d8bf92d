"""The head of the audit log in a file outside of the course's database.

The folder is that of who runs the hub, which the service's account can't enter.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from warpbook.hub.audit import AuditHead

FILE = "audit_head.json"
#: holds it as JSON for what is started with the hub
ENVIRONMENT = "WARPBOOK_HUB_AUDIT_HEAD"


def kept_head(folder: Path) -> AuditHead | None:
    """Give the head that was kept last; None before the first.

    Raises:
        ValueError: the file is damaged.
        OSError: it can't be read.
    """
    try:
        content = (folder / FILE).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=AuditHead)


def keep_head(folder: Path, head: AuditHead) -> None:
    """Keep a head in the place of the one before; the file is whole at any moment.

    Raises:
        OSError: it can't be written.
    """
    unfinished = folder / f".{FILE}"
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(head))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / FILE)
