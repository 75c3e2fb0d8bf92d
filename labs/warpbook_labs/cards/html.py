"""The card of a lab's result, as static HTML for a notebook or a page.

What is shown is decided beside this file; here it is only marked up. Any string
may be somebody else's: each is made one line, then escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from warpbook_labs.cards.model import (
    Card,
    CardBar,
    CardFacts,
    CardLog,
    CardSection,
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
from warpbook_monitors.html_table import OWN_KEYS, TABLE_STYLE, name_cell, table_html
from warpbook_monitors.plain_text import bounded, printable

_WIDTH, _LEFT, _LANE, _BAR = 640, 90, 24, 16
#: colours that are seen on light and on dark
_COLOURS = {"host": "#888888", "h2d": "#d98200", "compute": "#1f77b4", "d2h": "#2ca02c"}


def timeline_svg(timeline: CardTimeline) -> str:
    took = units.duration_ns(timeline.end_ns)
    height = _LANE * len(timeline.lanes) + 16
    said = f"What was done when; the full width is {took}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(said)}" '
        'font-size="11" fill="currentColor">'
        f"{''.join(_parts(timeline))}"
        f'<text x="{_LEFT}" y="{height - 3}">0</text>'
        f'<text x="{_WIDTH}" y="{height - 3}" text-anchor="end">{escape(took)}</text>'
        "</svg>"
    )


def _parts(timeline: CardTimeline) -> Iterator[str]:
    for number, lane in enumerate(timeline.lanes):
        top = number * _LANE
        yield f'<text x="0" y="{top + 14}">{escape(printable(lane.name))}</text>'
        yield (
            f'<path d="M{_LEFT} {top + 20}H{_WIDTH}" stroke="currentColor" '
            'opacity="0.25"/>'
        )
        colour = _COLOURS.get(lane.engine, "currentColor")
        for bar in lane.bars:
            yield _bar(bar, colour, top + 20 - _BAR, timeline.end_ns)


def _bar(bar: CardBar, colour: str, top: int, end_ns: int) -> str:
    scale = (_WIDTH - _LEFT) / end_ns
    duration_ns = bar.end_ns - bar.begin_ns
    words = f"{printable(bar.label)}, {units.duration_ns(duration_ns)}"
    if bar.line is not None:
        words += f", line {bar.line}"
    faint = ' opacity="0.35"' if bar.is_waiting else ""
    return (
        f'<rect x="{_LEFT + bar.begin_ns * scale:.1f}" y="{top}" '
        f'width="{max(duration_ns * scale, 0.6):.1f}" height="{_BAR}" '
        f'fill="{colour}"{faint}><title>{escape(words)}</title></rect>'
    )


_MOST_WORDS = 160
#: of words that are escaped already: what is between two backticks is code
CODE = re.compile("`([^`]+)`")
#: cells that are no numbers
_WORDS = (TextCell, StatusCell, LocationCell, CodeCell)
# every rule begins with the card's own class, so that no other output changes; said
# twice it counts for more than the page's own rules for tables
STYLE = (
    TABLE_STYLE
    + """
.warpbook-lab { font-size: 13px; line-height: 1.4; max-width: 60em; }
.warpbook-lab p { margin: 0.3em 0; }
.warpbook-lab .warpbook-verdict { font-weight: 600; }
.warpbook-lab .warpbook-passed, .warpbook-lab .warpbook-failed,
.warpbook-lab .warpbook-warning { border-left: 3px solid #d08700;
  padding-left: 0.6em; }
.warpbook-lab .warpbook-passed { border-color: #2e8b57; }
.warpbook-lab .warpbook-failed { border-color: #c23b22; }
.warpbook-lab .warpbook-quiet { opacity: 0.75; }
.warpbook-lab h4 { font-size: inherit; margin: 0.6em 0 0.2em; }
.warpbook-lab summary { cursor: pointer; }
.warpbook-lab pre { font-size: 12px; margin: 0.3em 0; max-height: 24em;
  overflow: auto; padding: 0; white-space: pre; }
.warpbook-lab dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1em; margin: 0.3em 0; }
.warpbook-lab dt, .warpbook-lab dd { float: none; font-weight: normal;
  margin: 0; padding: 0; width: auto; }
.warpbook-lab dt { opacity: 0.75; }
.warpbook-lab dd { overflow-wrap: anywhere; }
.warpbook-lab.warpbook-lab tr > th, .warpbook-lab.warpbook-lab tr > td {
  padding: 1px 1em 1px 0; text-align: left; vertical-align: top; }
.warpbook-lab.warpbook-lab tr > .warpbook-number { text-align: right; }
.warpbook-lab svg { max-width: 46em; width: 100%; }
.warpbook-lab code { background: none; font-size: 12px; padding: 0; }
.warpbook-lab.warpbook-lab td > code { background: none; white-space: inherit; }
"""
)


def card_html(card: Card, style: str = STYLE) -> str:
    """Write a card.

    Args:
        style: put before it; empty for a page that has `STYLE` in a file.
    """
    kind = {"passed": "passed", "unsupported": "warning", "undecided": "warning"}.get(
        card.status, "failed"
    )
    sections = "".join(map(_section, card.sections))
    before = f"<style>{style}</style>" if style else ""
    return (
        f'<div class="warpbook-lab" {OWN_KEYS} role="region" '
        f'aria-label="{_safe(f"Card of {card.title}")}">{before}'
        f'<p class="warpbook-verdict warpbook-{kind}">{words_html(heading(card))}</p>'
        f"{sections}</div>"
    )


def shown(text: object, most: int = _MOST_WORDS) -> str:
    """Make somebody else's text fit for HTML, and bound it."""
    return escape(bounded(str(text), most))


def words_html(text: str) -> str:
    """Write words of any origin, with what is between backticks as code."""
    return CODE.sub(r"<code>\1</code>", _safe(text))


def _section(section: CardSection) -> str:
    inner = "".join(map(_part, section.parts))
    title = words_html(section.title)
    if section.fold:
        is_open = " open" if section.fold == "open" else ""
        return f"<details{is_open}><summary>{title}</summary>{inner}</details>"
    return f"<h4>{title}</h4>{inner}" if title else inner


def _part(part: Part) -> str:
    match part:
        case CardText(text, tone):
            kind = "" if tone == "plain" else f' class="warpbook-{tone}"'
            return f"<p{kind}>{words_html(text)}</p>"
        case LocationCell():
            return f"<pre>{_safe(cell_text(part))}</pre>"
        case CardLog(lines, more):
            all_lines = [*lines, more_lines(more)] if more else lines
            return f'<pre tabindex="0">{_joined(all_lines)}</pre>'
        case CardFacts(facts):
            return figures((fact.label, cells_text(fact.cells)) for fact in facts)
        case CardTable():
            return _table(part)
        case CardTimeline():
            return timeline_svg(part)


def figures(rows: Iterable[tuple[str, str]]) -> str:
    inner = "".join(
        f"<dt>{_safe(name)}</dt><dd>{words_html(value)}</dd>" for name, value in rows
    )
    return f"<dl>{inner}</dl>" if inner else ""


def _table(table: CardTable) -> str:
    first = table.rows[0] if table.rows else ()
    head = "".join(
        f"<th{_number(cell)}>{_safe(name)}</th>"
        for name, cell in zip(table.heads, first, strict=True)
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return table_html(
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, (LocationCell, CodeCell)):
        return name_cell(printable(cell_text(cell)), "<code>{}</code>")
    return f"<td{_number(cell)}>{words_html(cell_text(cell))}</td>"


def _number(cell: Cell) -> str:
    """Set what is a number to the right."""
    return "" if isinstance(cell, _WORDS) else ' class="warpbook-number"'


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(map(_safe, lines))


def _safe(text: str) -> str:
    return escape(printable(text))
