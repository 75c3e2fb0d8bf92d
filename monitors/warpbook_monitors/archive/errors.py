"""Why the archive can't be used, each with what to do."""

from __future__ import annotations

import zlib

import msgspec

from warpbook_monitors.errors import MonitorError

#: what decoding a value of a damaged or foreign file raises; msgspec lets bad UTF-8
#: through as UnicodeDecodeError, and SQLite may give a value of any type
UNREADABLE = (msgspec.MsgspecError, UnicodeError, zlib.error, TypeError)


class ArchiveError(MonitorError):
    """The archive can't be used; the message says why and what to do."""


class ArchiveTooNew(ArchiveError):
    """A newer warpbook wrote the file; it is left as it is."""


class ArchiveStopped(ArchiveError):
    """The archive takes nothing at the moment: the disk is full, or does not answer."""
