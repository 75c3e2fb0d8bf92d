"""Why the archive can't be used, each with what to do."""

from __future__ import annotations

import sqlite3
import zlib

import msgspec

from warpbook_monitors.errors import MonitorError

#: what decoding a value of a damaged or foreign file raises; msgspec lets bad UTF-8
#: through as UnicodeDecodeError, deep JSON as RecursionError, and SQLite may give a
#: value of any type
UNREADABLE = (msgspec.MsgspecError, UnicodeError, zlib.error, TypeError, RecursionError)

#: what SQLite says of a file that is broken, or has lost tables of its format
_DAMAGE = (
    *("malformed", "not a database", "unsupported file format"),
    *("no such table", "no such column"),
)


class ArchiveError(MonitorError):
    """The archive can't be used; the message says why and what to do."""


class ArchiveTooNew(ArchiveError):
    """A newer warpbook wrote the file; it is left as it is."""


class ArchiveStopped(ArchiveError):
    """The archive takes nothing at the moment: the disk is full, or does not answer."""


class ArchiveMoved(ArchiveError):
    """Another file, or none, is in the place of the one that is open."""


def is_damage(error: Exception) -> bool:
    """Whether the file itself is broken: SQLITE_CORRUPT, SQLITE_NOTADB, or its schema.

    What SQLite says of a damaged name may not even be text.
    """
    if isinstance(error, UnicodeDecodeError):
        return True
    words = str(error)
    return isinstance(error, sqlite3.DatabaseError) and any(
        part in words for part in _DAMAGE
    )
