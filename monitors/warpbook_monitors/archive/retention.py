"""Removes the oldest of what the archive holds."""

from __future__ import annotations

import sqlite3

from warpbook_monitors.archive.limits import Limits


def drop_oldest(connection: sqlite3.Connection, limits: Limits, now_ms: float) -> bool:
    """Remove what is older than it may be, and the oldest beyond the size."""
    return False
