"""The report of a cell as plain text, for terminals and screen readers."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook.kernel.report import Table, causes, headline, sentence, tables
from warpbook_monitors.plain_text import aligned, joined
from warpbook_monitors.trace.cell_profile import CellProfile

_NAME_WIDTH = 52


def report_text(profile: CellProfile) -> str:
    """Write the whole report."""
    return joined(_lines(profile))


def _lines(profile: CellProfile) -> Iterator[str]:
    if said := sentence(profile):
        yield said
        yield ""
    figures = headline(profile)
    width = max(len(label) for label, _ in figures)
    for label, value in figures:
        yield f"{label.ljust(width)}  {value}"
    for warning in profile.completeness.warnings:
        yield f"! {warning}"
    if found := causes(profile):
        yield ""
        yield "What explains the time"
        yield from found
    for table in tables(profile):
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
