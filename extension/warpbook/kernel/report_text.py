"""The report of a cell as plain text, for terminals and screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook.kernel.report import Table, causes, headline, sentence, tables
from warpbook_monitors.plain_text import aligned, joined
from warpbook_monitors.trace.cell_profile import CellProfile

_NAME_WIDTH = 52


def report_text(profile: CellProfile, notes: Sequence[str] = ()) -> str:
    """Write the whole report; the notes follow the figures."""
    return joined(_lines(profile, notes))


def document_text(said: str, notes: Sequence[str], tables: Sequence[Table]) -> str:
    """Write a sentence, notes and tables."""
    return joined(_document(said, notes, tables))


def _document(
    said: str, notes: Sequence[str], tables: Sequence[Table]
) -> Iterator[str]:
    yield said
    yield from notes
    yield from _tables(tables)


def _lines(profile: CellProfile, notes: Sequence[str]) -> Iterator[str]:
    if said := sentence(profile):
        yield said
        yield ""
    figures = headline(profile)
    width = max(len(label) for label, _ in figures)
    for label, value in figures:
        yield f"{label.ljust(width)}  {value}"
    yield from notes
    for warning in profile.completeness.warnings:
        yield f"! {warning}"
    if found := causes(profile):
        yield ""
        yield "What explains the time"
        yield from found
    yield from _tables(tables(profile))


def _tables(tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        yield ""
        yield from aligned(
            [(table.title, *table.header)]
            + [(_cut(row[0]), *row[1:]) for row in table.rows]
        )
        yield from _more(table)


def _more(table: Table) -> Iterator[str]:
    if table.more:
        yield f"({table.more:,} more)"


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"
