"""The card of a lab's result, as lines of text for a terminal.

What is shown is decided in `warpbook_labs.cards`; here it is only laid out. Any string
may be somebody else's: no control character of it reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_labs.cards.model import (
    Card,
    CardBar,
    CardFacts,
    CardLog,
    CardTable,
    CardText,
    CardTimeline,
    Cell,
    CodeCell,
    LocationCell,
    Part,
    StatusCell,
    TextCell,
    cell_text,
    cells_text,
    heading,
    more_lines,
)
from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded, labelled, printable, shortened

_WIDTH = 76
_MOST_CELL = 40
_COLUMNS = 60
_IDLE, _WAITING, _BUSY = ".-#"
_LEFT = (TextCell, StatusCell, CodeCell, LocationCell)


def card_lines(card: Card) -> Iterator[str]:
    return map(printable, _lines(card))


def _lines(card: Card) -> Iterator[str]:
    yield heading(card)
    for number, section in enumerate(card.sections):
        if number:
            yield ""
        indent = "  " if section.title else ""
        if section.title:
            yield section.title
        for part in section.parts:
            yield from (f"{indent}{line}".rstrip() for line in _part(part))


def _part(part: Part) -> Iterator[str]:
    match part:
        case CardText(text, tone):
            yield f"! {text}" if tone == "warning" else text
        case LocationCell(line, code):
            yield f"  {line:>4} | {bounded(code, _WIDTH)}"
        case CardLog(lines, more):
            yield from lines
            if more:
                yield more_lines(more)
        case CardFacts(facts):
            if facts:
                yield from labelled(
                    [(fact.label, cells_text(fact.cells)) for fact in facts]
                )
        case CardTable():
            yield from _table(part)
        case CardTimeline():
            yield from _timeline(part)


def _table(table: CardTable) -> Iterator[str]:
    rows = [table.heads, *(tuple(map(_cell, row)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = table.rows[0] if table.rows else ()
    to_left = [isinstance(cell, _LEFT) for cell in first]
    for row in rows:
        cells = zip(row, widths, to_left, strict=True)
        yield "  ".join(
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in cells
        ).rstrip()


def _cell(cell: Cell) -> str:
    text = printable(cell_text(cell))
    return text if isinstance(cell, TextCell) else shortened(text, _MOST_CELL)


def _timeline(timeline: CardTimeline) -> Iterator[str]:
    names = max((len(lane.name) for lane in timeline.lanes), default=0)
    yield ""
    for lane in timeline.lanes:
        yield f"{lane.name:{names}}  {_lane(lane.bars, timeline.end_ns)}"
    width = units.duration_ns(timeline.end_ns)
    yield f"{'':{names}}  {_BUSY} busy, {_WAITING} waiting; full width: {width}"


def _lane(bars: Sequence[CardBar], end_ns: int) -> str:
    columns = [_IDLE] * _COLUMNS
    for piece in sorted(bars, key=lambda bar: not bar.is_waiting):
        first = piece.begin_ns * _COLUMNS // end_ns
        last = max(first, (piece.end_ns * _COLUMNS - 1) // end_ns)
        for at in range(first, min(last, _COLUMNS - 1) + 1):
            columns[at] = _WAITING if piece.is_waiting else _BUSY
    return "".join(columns)
