"""The report of a cell as static HTML: escaped, scoped, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from warpbook.kernel.report import Table, causes, headline, sentence, tables
from warpbook_monitors.trace.cell_profile import CellProfile

# every rule begins with the report's own class, so that no other output changes
_STYLE = """
.warpbook-report { font-size: 13px; line-height: 1.4; max-width: 60em; }
.warpbook-report dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1em; margin: 0.3em 0; }
.warpbook-report dt { opacity: 0.7; margin: 0; }
.warpbook-report dd { margin: 0; }
.warpbook-report .warpbook-warning { border-left: 3px solid #d08700;
  padding-left: 0.6em; margin: 0.3em 0; }
.warpbook-report .warpbook-verdict { font-weight: 600; margin: 0.3em 0; }
.warpbook-report p { margin: 0.3em 0; }
.warpbook-report table { border-collapse: collapse; margin: 0.6em 0; width: 100%;
  table-layout: fixed; }
.warpbook-report th, .warpbook-report td { text-align: right; padding: 1px 0.6em;
  width: 6.5em; }
.warpbook-report tr > :first-child { text-align: left; width: auto;
  overflow: hidden; text-overflow: ellipsis; white-space: pre; }
.warpbook-report .warpbook-code th, .warpbook-report .warpbook-code td {
  width: 4.2em; padding: 1px 0.3em; }
.warpbook-report .warpbook-code tr > :first-child { width: auto; }
.warpbook-report td:first-child { font-family: monospace; }
.warpbook-report table, .warpbook-report caption { font-size: inherit;
  color: inherit; }
.warpbook-report caption { caption-side: bottom; text-align: left; opacity: 0.7;
  padding: 1px 0.6em; }
"""


def report_html(profile: CellProfile, title: str, notes: Sequence[str] = ()) -> str:
    """Write the whole report; the notes follow the figures."""
    figures = "".join(
        f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>"
        for label, value in headline(profile)
    )
    warnings = "".join(
        f'<p class="warpbook-warning">{escape(warning)}</p>'
        for warning in profile.completeness.warnings
    )
    verdict = sentence(profile)
    said = f'<p class="warpbook-verdict">{escape(verdict)}</p>' if verdict else ""
    return (
        f'<div class="warpbook-report" aria-label="Profile of {escape(title)}">'
        f"<style>{_STYLE}</style>{said}<dl>{figures}</dl>{_notes(notes)}{warnings}"
        f"{_causes(profile)}{''.join(map(_table, tables(profile)))}</div>"
    )


def document_html(
    said: str, notes: Sequence[str], tables: Sequence[Table], label: str
) -> str:
    """Write a sentence, notes and tables."""
    return (
        f'<div class="warpbook-report" aria-label="{escape(label)}">'
        f'<style>{_STYLE}</style><p class="warpbook-verdict">{escape(said)}</p>'
        f"{_notes(notes)}{''.join(map(_table, tables))}</div>"
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def _causes(profile: CellProfile) -> str:
    rows = "".join(f"<li>{escape(cause)}</li>" for cause in causes(profile))
    return (
        f"<details><summary>What explains the time</summary><ul>{rows}</ul></details>"
        if rows
        else ""
    )


def notice_html(message: str) -> str:
    """Write why there is no report."""
    return (
        f'<div class="warpbook-report"><style>{_STYLE}</style>'
        f'<p class="warpbook-warning">{escape(message)}</p></div>'
    )


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(map(_row, table.rows))
    more = f"<caption>{table.more:,} more</caption>" if table.more else ""
    kind = ' class="warpbook-code"' if table.is_code else ""
    return (
        f"<table{kind}>{more}<thead><tr><th>{escape(table.title)}</th>{header}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _row(row: tuple[str, ...]) -> str:
    name = escape(row[0])
    figures = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
    return f'<tr><td title="{name}">{name}</td>{figures}</tr>'
