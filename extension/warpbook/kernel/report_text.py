"""The report of a cell as plain text, for terminals and screen readers."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook.kernel.report import Table, headline, tables
from warpbook_monitors.trace.cell_profile import CellProfile

_NAME_WIDTH = 52


def report_text(profile: CellProfile) -> str:
    """Write the whole report."""
    return "\n".join(_lines(profile))


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Set rows in columns, the first to the left and the figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [
                cell.rjust(width)
                for cell, width in zip(row[1:], widths[1:], strict=True)
            ]
        ).rstrip()
        for row in rows
    ]


def _lines(profile: CellProfile) -> Iterator[str]:
    figures = headline(profile)
    width = max(len(label) for label, _ in figures)
    for label, value in figures:
        yield f"{label.ljust(width)}  {value}"
    for warning in profile.completeness.warnings:
        yield f"! {warning}"
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
    # an escape sequence in a name must not reach the terminal
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    return shown if len(shown) <= _NAME_WIDTH else shown[: _NAME_WIDTH - 1] + "…"
