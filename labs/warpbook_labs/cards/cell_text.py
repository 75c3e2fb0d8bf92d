"""Cells and headings as plain text, the same for every renderer in Python."""

from __future__ import annotations

from collections.abc import Iterable

from warpbook_labs.cards.model import (
    BytesCell,
    Card,
    CardStatus,
    Cell,
    CodeCell,
    DurationCell,
    LocationCell,
    NumberCell,
    RateCell,
    RatioCell,
    StatusCell,
    TextCell,
)
from warpbook_monitors import units

MARKS: dict[CardStatus, str] = {
    "passed": "✓",
    "failed": "✗",
    "unsupported": "?",
    "error": "✗",
    "timed out": "✗",
    "undecided": "?",
}


def heading(card: Card) -> str:
    """Write how it went, in one line."""
    return f"{MARKS[card.status]} {card.title}: {card.label}. {card.message}"


def cell_text(cell: Cell) -> str:
    """Write a cell; what is somebody else's is not escaped yet."""
    match cell:
        case TextCell(text):
            return text
        case StatusCell(status):
            return f"{MARKS[status]} {status}"
        case NumberCell(value, unit):
            return f"{value:,} {unit}".rstrip()
        case RatioCell():
            return _ratio(cell)
        case BytesCell(size_bytes, what):
            return f"{units.size(size_bytes)} {what}".rstrip()
        case DurationCell(duration_ns):
            return units.duration_ns(duration_ns)
        case RateCell(per_second, unit):
            return units.rate(per_second, unit)
        case LocationCell(line, code):
            return f"{line:>4} | {code}"
        case CodeCell(code):
            return code


def cells_text(cells: Iterable[Cell]) -> str:
    return ", ".join(map(cell_text, cells))


def more_lines(count: int) -> str:
    """Say how many lines of a log are left out."""
    return f"and {count:,} more line{'' if count == 1 else 's'}"


def _ratio(cell: RatioCell) -> str:
    text = f"{_in_style(cell.value, cell)} {cell.of}".rstrip()
    if cell.low is not None and cell.high is not None:
        low, high = _in_style(cell.low, cell), _in_style(cell.high, cell)
        pairs = "" if cell.pairs is None else f", {cell.pairs:,} pairs"
        text += f" (95 % CI {low} to {high}{pairs})"
    if cell.required is not None:
        text += f"; required: {_in_style(cell.required, cell)}"
    return text


def _in_style(value: float, cell: RatioCell) -> str:
    """Write a factor or a share; with an interval all its digits count."""
    if cell.style == "percent":
        return units.share(value) if cell.low is None else f"{100 * value:.1f} %"
    if cell.low is not None:
        return f"{value:.3f}×"
    return f"{value:,.0f}×" if value >= 100 else f"{value:.3g}×"
