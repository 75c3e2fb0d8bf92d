"""A copy of the database while it is used, and back."""

from __future__ import annotations

from pathlib import Path

from warpbook.hub.database.opening import HubDatabase


def back_up(database: HubDatabase, target: Path) -> None:
    """Copy one moment of the database to a new file, for nobody else to read.

    Raises:
        Conflict: there is a file already.
        NoRoom: the disk is full; no half of a copy is left.
    """
    raise NotImplementedError


def restore(database: HubDatabase, source: Path, now_ms: int, actor: str) -> None:
    """Put a copy in the place of what is there, in one transaction.

    Every lease ends, and a result of one from before is refused.

    Raises:
        DatabaseUnfit: it is damaged, newer, or no database of a hub.
        NoRoom: the disk is full; all is as it was.
    """
    raise NotImplementedError
