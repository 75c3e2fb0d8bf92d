"""The report of a cell as static HTML: escaped, scoped, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from warpbook.kernel.report import (
    cause_and_change,
    causes,
    changes,
    code_tables,
    groups,
    headline,
    sections,
    time_bar,
    time_words,
    trials,
    warnings,
)
from warpbook.kernel.report_svg import memory_svg, roofline_svg
from warpbook_monitors.plain_text import shortened
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.figure_groups import Figures
from warpbook_monitors.trace.tables import Table
from warpbook_monitors.verdict_kinds import Kind

#: a whole name is told when the pointer rests on it
_NAME_WIDTH = 100
#: of causes, on light and on dark pages
_COLOURS = {
    "sync-bound": "#b8442f",
    "launch-bound": "#d08700",
    "host-bound": "#a8842c",
    "transfer-bound": "#8c5fb0",
    "communication-bound": "#b0608f",
    "memory-bound": "#3c7ebb",
    "compute-bound": "#2f9158",
}
_PLAIN = "#888888"
# every rule begins with the report's own class, so that no other output changes
_STYLE = """
.warpbook-report { font-size: 13px; line-height: 1.4; max-width: 60em; }
.warpbook-report dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1em; margin: 0.3em 0; }
.warpbook-report dt, .warpbook-report dd { float: none; font-weight: normal;
  margin: 0; padding: 0; width: auto; }
.warpbook-report dt { opacity: 0.7; }
.warpbook-report .warpbook-warning { border-left: 3px solid #d08700;
  padding-left: 0.6em; margin: 0.3em 0; }
.warpbook-report .warpbook-verdict { font-weight: 600; margin: 0.3em 0; }
.warpbook-report .warpbook-badge { border: 2px solid; border-radius: 1em;
  font-size: 90%; margin-right: 0.5em; padding: 0.1em 0.7em; white-space: nowrap; }
.warpbook-report .warpbook-change { margin: 0.3em 0; }
.warpbook-report .warpbook-time { margin: 0.6em 0; }
.warpbook-report .warpbook-time figcaption { opacity: 0.7; }
.warpbook-report .warpbook-parts { display: flex; height: 1em; margin: 0.2em 0; }
.warpbook-report .warpbook-parts > span { background: currentColor;
  border-radius: 2px; margin-right: 1px; min-width: 2px; }
.warpbook-report .warpbook-legend > span { margin-right: 1.2em; white-space: nowrap; }
.warpbook-report .warpbook-legend b { background: currentColor; border-radius: 2px;
  display: inline-block; height: 0.7em; margin-right: 0.4em; width: 0.7em; }
.warpbook-report p { margin: 0.3em 0; }
.warpbook-report ol { margin: 0.3em 0; padding-left: 1.5em; }
.warpbook-report li > span { opacity: 0.8; }
.warpbook-report pre { margin: 0.2em 0 0.4em; white-space: pre-wrap; }
.warpbook-report summary { cursor: pointer; }
.warpbook-report .warpbook-groups { display: grid; gap: 0.3em 2em;
  grid-template-columns: repeat(auto-fit, minmax(20em, 1fr)); }
.warpbook-report .warpbook-groups dl { grid-template-columns: fit-content(60%) 1fr; }
.warpbook-report .warpbook-groups dd { text-align: right; }
.warpbook-report .warpbook-groups h4 { font-size: inherit; margin: 0.3em 0 0; }
.warpbook-report table { border-collapse: collapse; margin: 0.6em 0; width: 100%;
  table-layout: fixed; }
.warpbook-report th, .warpbook-report td { text-align: right; padding: 1px 0.6em;
  width: 6.4em; white-space: nowrap; }
.warpbook-report tr > :first-child { text-align: left; width: auto;
  overflow: hidden; text-overflow: ellipsis; white-space: pre; }
.warpbook-report .warpbook-code th, .warpbook-report .warpbook-code td {
  width: 4.8em; padding: 1px 0.3em; }
.warpbook-report .warpbook-code tr > :first-child { width: auto; white-space: pre; }
.warpbook-report .warpbook-bar { border-bottom: 2px solid #4c8dbe;
  float: right; }
.warpbook-report .warpbook-picture { margin: 0.6em 0; }
.warpbook-report .warpbook-picture svg { width: 100%; max-width: 46em; }
.warpbook-report .warpbook-picture figcaption { opacity: 0.7; }
.warpbook-report td:first-child { font-family: monospace; }
.warpbook-report table, .warpbook-report caption { font-size: inherit;
  color: inherit; }
.warpbook-report caption { caption-side: bottom; text-align: left; opacity: 0.7;
  padding: 1px 0.6em; }
"""


def report_html(profile: CellProfile, title: str, notes: Sequence[str] = ()) -> str:
    """Write the whole report; the notes follow the figures."""
    cautions = "".join(
        f'<p class="warpbook-warning">{escape(warning)}</p>'
        for warning in warnings(profile)
    )
    code = "".join(map(_table, code_tables(profile)))
    return (
        f'<div class="warpbook-report" aria-label="Profile of {escape(title)}">'
        f"<style>{_STYLE}</style>{_verdict(profile)}{_time_bar(profile)}"
        f"{_figures(headline(profile))}{_notes(notes)}{cautions}{_changes(profile)}"
        f"{_trials(profile)}{memory_svg(profile)}{code}{_causes(profile)}"
        f"{_sections(profile)}{_groups(profile)}</div>"
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


def notice_html(message: str) -> str:
    """Write why there is no report."""
    return (
        f'<div class="warpbook-report"><style>{_STYLE}</style>'
        f'<p class="warpbook-warning">{escape(message)}</p></div>'
    )


def _verdict(profile: CellProfile) -> str:
    verdict = profile.verdict
    if verdict is None:
        return ""
    cause, change = cause_and_change(verdict, profile)
    badge = (
        f'<span class="warpbook-badge" style="border-color:{_colour(verdict.kind)}">'
        f"{escape(verdict.kind)}</span> "
    )
    return f'<p class="warpbook-verdict">{badge}{escape(cause)}</p>' + (
        f'<p class="warpbook-change">{escape(change)}</p>' if change else ""
    )


def _time_bar(profile: CellProfile) -> str:
    """Draw where the time goes as one bar, with its parts in words below."""
    parts = time_bar(profile)
    if not parts:
        return ""
    said = time_words(profile)
    bar = "".join(
        f'<span style="color:{_colour(part.kind)};width:{part.ratio:.1%}" '
        f'title="{escape(part.label)}"></span>'
        for part in parts
    )
    legend = "".join(
        f'<span><b style="color:{_colour(part.kind)}"></b>{escape(part.label)}</span>'
        for part in parts
    )
    return (
        f'<figure class="warpbook-time"><figcaption>{escape(said)}</figcaption>'
        f'<div class="warpbook-parts" aria-hidden="true">{bar}</div>'
        f'<div class="warpbook-legend">{legend}</div></figure>'
    )


def _colour(kind: Kind | None) -> str:
    return _COLOURS.get(kind or "", _PLAIN)


def _sections(profile: CellProfile) -> str:
    return "".join(
        _folded(
            section.title,
            (roofline_svg(profile) if not at else "")
            + "".join(map(_table, section.tables)),
        )
        for at, section in enumerate(sections(profile))
        if section.tables
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def _figures(figures: Figures) -> str:
    rows = "".join(
        f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in figures
    )
    return f"<dl>{rows}</dl>"


def _changes(profile: CellProfile) -> str:
    rows = "".join(
        f"<li><strong>{escape(change.title)}</strong> {escape(change.sentence)} "
        f"<span>{escape(change.evidence)}</span>{_sketch(change.sketch)}</li>"
        for change in changes(profile)
    )
    return f"<h4>What to change</h4><ol>{rows}</ol>" if rows else ""


def _sketch(code: str) -> str:
    return _folded("Sketch", f"<pre>{escape(code)}</pre>") if code else ""


def _trials(profile: CellProfile) -> str:
    tried = trials(profile)
    # it was asked for, so it is not folded
    return f"<h4>Tried on copies</h4>{_figures(tried)}" if tried else ""


def _causes(profile: CellProfile) -> str:
    rows = "".join(
        f"<li>{escape(each.title)}: {escape(each.evidence)} "
        f"<em>{escape(each.advice)}</em></li>"
        for each in causes(profile)
    )
    return _folded("What explains the time", f"<ol>{rows}</ol>") if rows else ""


def _groups(profile: CellProfile) -> str:
    found = "".join(
        f"<section><h4>{escape(group.title)}</h4>{_figures(group.figures)}</section>"
        for group in groups(profile)
    )
    inner = f'<div class="warpbook-groups">{found}</div>'
    return _folded("Figures", inner) if found else ""


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    bars = table.bars or ((),) * len(table.rows)
    rows = "".join(_row(*each) for each in zip(table.rows, bars, strict=True))
    more = f"<caption>{table.more:,} more</caption>" if table.more else ""
    kind = ' class="warpbook-code"' if table.is_code else ""
    return (
        f"<table{kind}>{more}<thead><tr><th>{escape(table.title)}</th>{header}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _row(row: tuple[str, ...], bars: tuple[float, ...]) -> str:
    name = escape(shortened(row[0], _NAME_WIDTH))
    figures = "".join(
        f"<td>{escape(cell)}{_bar(length)}</td>"
        for cell, length in zip(row[1:], bars[1:] or (0.0,) * len(row[1:]), strict=True)
    )
    return f'<tr><td title="{escape(row[0])}">{name}</td>{figures}</tr>'


def _bar(length: float) -> str:
    """Draw a bar below a figure; what can't be seen is left out."""
    if length < 0.01:
        return ""
    return f'<div class="warpbook-bar" style="width:{length:.0%}"></div>'
