"""Cells of a CSV: no program that opens it takes one for a formula."""

from __future__ import annotations

from datetime import datetime, timezone

#: what spreadsheets begin a formula with, also behind spaces, and as wide characters
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def cell(value: object) -> str:
    """Write a value; of a text that could be a formula, with a quote before it."""
    if isinstance(value, float):
        return f"{round(value, 6):g}" if abs(value) < 1e6 else f"{value:.2f}"
    text = str(value)
    is_formula = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if is_formula else text


def iso_time(time_ms: int | None) -> str:
    """Write a time in UTC; nothing where there is none."""
    if time_ms is None:
        return ""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
