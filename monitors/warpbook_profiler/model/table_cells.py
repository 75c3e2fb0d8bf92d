"""Cells of tables: a figure in the words that every view shows, and what sorts it."""

from __future__ import annotations

from warpbook_monitors import units
from warpbook_profiler.model.report_view import TableCell

UNKNOWN = "not known"
UNKNOWN_CELL = TableCell(UNKNOWN)


def words(text: str) -> TableCell:
    """Show a name or a word."""
    return TableCell(text)


def line(number: int | None) -> TableCell:
    """Show the number of a line; empty where the work belongs to none."""
    return TableCell("", None) if number is None else TableCell(str(number), number)


def count(number: int) -> TableCell:
    """Show how many."""
    return TableCell(f"{number:,}", number)


def time_ns(nanoseconds: float | None, longest_ns: float | None = None) -> TableCell:
    """Show a time; beside a longest one with a bar."""
    if nanoseconds is None:
        return TableCell(UNKNOWN)
    bar = min(max(nanoseconds / longest_ns, 0.0), 1.0) if longest_ns else 0.0
    return TableCell(units.duration_ns(nanoseconds), nanoseconds, bar)


def ratio(of_one: float | None) -> TableCell:
    """Show a share that may not be known."""
    return TableCell(share(of_one), of_one)


def size(size_bytes: int | None) -> TableCell:
    """Show a size that may not be known."""
    if size_bytes is None:
        return TableCell(UNKNOWN)
    return TableCell(units.size(size_bytes), size_bytes)


def size_change(change_bytes: int) -> TableCell:
    """Show by how much a size changed, with its sign."""
    sign = "-" if change_bytes < 0 else "+"
    return TableCell(f"{sign}{units.size(abs(change_bytes))}", change_bytes)


def copy_rate(size_bytes: int | None, nanoseconds: float) -> TableCell:
    """Show how fast a size was copied."""
    if size_bytes is None or not nanoseconds:
        return TableCell(UNKNOWN)
    return rate(size_bytes / nanoseconds * 1e9, "B")


def rate(per_second: float | None, unit: str) -> TableCell:
    """Show a rate that may not be known."""
    if per_second is None:
        return TableCell(UNKNOWN)
    return TableCell(units.rate(per_second, unit), per_second)


def share(of_one: float | None) -> str:
    """Write a share that may not be known."""
    return UNKNOWN if of_one is None else units.share(of_one)
