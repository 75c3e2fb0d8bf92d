"""Cells of exports."""

from __future__ import annotations

from datetime import datetime, timezone

from warpbook_monitors.spreadsheet import cell

__all__ = ["cell", "iso_time"]


def iso_time(time_ms: int | None) -> str:
    """Write a time in UTC, each in the same format; nothing where there is none."""
    if time_ms is None:
        return ""
    at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds")
