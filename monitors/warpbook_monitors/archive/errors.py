"""Why the archive can't be used, each with what to do."""

from __future__ import annotations

from warpbook_monitors.errors import MonitorError


class ArchiveError(MonitorError):
    """The archive can't be used; the message says why and what to do."""


class ArchiveTooNew(ArchiveError):
    """A newer warpbook wrote the file; it is left as it is."""


class ArchiveStopped(ArchiveError):
    """The archive takes nothing at the moment: the disk is full, or does not answer."""
