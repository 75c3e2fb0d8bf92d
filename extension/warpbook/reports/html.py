"""The report of a cell as static HTML: escaped, scoped, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from urllib.parse import quote

from warpbook.colours import colour_of
from warpbook.reports.checklist import groups_html
from warpbook.reports.labs import LABS
from warpbook.reports.pictures import memory_svg, roofline_svg
from warpbook.reports.style import STYLE
from warpbook.reports.text import PLACE_IT
from warpbook.reports.time_pictures import flame_svg, timeline_svg
from warpbook_monitors.html_table import OWN_KEYS, name_cell, table_html
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.report_view import (
    CauseView,
    ChangeView,
    EditedView,
    FigureGroup,
    Headline,
    KernelStallsView,
    LabelledFigure,
    ReportTable,
    ReportView,
    RowLinks,
    StallsView,
    TableCell,
    TimeBar,
)
from warpbook_profiler.report.profile_view import view_of
from warpbook_profiler.report.tables import shown

#: more would hide what they stand beside
_MOST_LINKS, _MOST_LABEL = 3, 60


class _Anchors:
    """Links within a saved page; a notebook, with several reports, has none."""

    def __init__(self, view: ReportView | None = None) -> None:
        """Know what can be linked: the causes, changes and rows of a view."""
        self._labels: dict[str, str] = {}
        if view is None:
            return
        self._labels |= {one.id: f"{one.label} {one.share}" for one in view.causes}
        self._labels |= {change.id: change.name for change in view.changes}
        for section in view.sections:
            for table in section.tables:
                for link, row in zip(table.links, table.rows, strict=False):
                    self._labels[link.id] = row[0].text

    def __bool__(self) -> bool:
        return bool(self._labels)

    def at(self, name: str) -> str:
        """Write the attribute of what links lead to."""
        return f' id="{escape(name)}"' if name in self._labels else ""

    def to(self, word: str, names: Sequence[str]) -> str:
        """Write links behind a word; nothing where there are none."""
        known = [name for name in names if name in self._labels]
        links = [
            f'<a href="#{quote(name)}">{escape(self._labels[name][:_MOST_LABEL])}</a>'
            for name in known[:_MOST_LINKS]
        ]
        if more := len(known) - len(links):
            links.append(f"and {more} more")
        return f"<div>{word}: {', '.join(links)}</div>" if links else ""


_NO_ANCHORS = _Anchors()


def report_html(
    profile: CellProfile,
    title: str,
    notes: Sequence[str] = (),
    *,
    checklist: Checklist | None = None,
    is_open: bool = False,
) -> str:
    """Write the whole report.

    Args:
        profile: its figures.
        title: what it is called for who can't see it.
        notes: what follows the figures.
        checklist: follows the causes, where it is known.
        is_open: its causes, tables and figures are unfolded, all rows and pictures
            are there, and causes, changes and rows are linked.
    """
    view = view_of(profile, LABS)
    anchors = _Anchors(view) if is_open else _NO_ANCHORS
    cautions = "".join(
        f'<p class="warpbook-warning">{escape(warning)}</p>'
        for warning in view.warnings
    )
    trials = [LabelledFigure(trial.name, trial.sentence) for trial in view.trials]
    table = partial(_table, is_whole=is_open, anchors=anchors)
    folded = partial(_folded, is_open=is_open)
    code = "" if view.lines is None else table(view.lines)
    answers = "" if checklist is None else _checklist(checklist)
    time = f"<p>{escape(view.base)}</p>" if view.time is None else _time_bar(view.time)
    pictures = (roofline_svg(profile),) + ("",) * len(view.sections)
    over_time = flame_svg(profile) + timeline_svg(profile) if is_open else ""
    sections = "".join(
        folded(section.title, picture + "".join(map(table, section.tables)))
        for section, picture in zip(view.sections, pictures, strict=False)
    )
    return (
        f'<div class="warpbook-report" {OWN_KEYS} role="region" '
        f'aria-label="Profile of {escape(title)}">'
        f"<style>{STYLE}</style>{_verdict(view.headline, view.meanings)}{time}"
        f"{_figures(view.figures)}{_notes(notes)}{cautions}"
        f"{_changes(view.changes, anchors)}{_trials(trials)}{_edited(view.edited)}"
        f"{memory_svg(profile)}{code}{folded(*_causes(view.causes, anchors))}"
        f"{_folded('Stalls', _stalls(view.stalls), is_open=True)}"
        f"{folded('Checklist', answers)}{sections}"
        f"{folded('Over time', over_time)}{folded(*_groups(view.groups))}</div>"
    )


def document_html(
    said: str, notes: Sequence[str], tables: Sequence[ReportTable], label: str
) -> str:
    return (
        f'<div class="warpbook-report" {OWN_KEYS} role="region" '
        f'aria-label="{escape(label)}">'
        f'<style>{STYLE}</style><p class="warpbook-verdict">{escape(said)}</p>'
        f"{_notes(notes)}{''.join(map(_table, tables))}</div>"
    )


def comparison_html(shown: Comparison, label: str) -> str:
    """Write a comparison: both bars, then what differs most."""
    cautions = "".join(
        f'<p class="warpbook-warning">{escape(caution)}</p>'
        for caution in shown.cautions
    )
    bars = "".join(map(_time_bar, shown.bars))
    return (
        f'<div class="warpbook-report" aria-label="{escape(label)}">'
        f'<style>{STYLE}</style><p class="warpbook-verdict">{escape(shown.sentence)}'
        f"</p>{cautions}{bars}{_notes(shown.notes)}"
        f"{''.join(map(_table, shown.tables))}</div>"
    )


def notice_html(message: str) -> str:
    """Write why there is no report."""
    return (
        f'<div class="warpbook-report"><style>{STYLE}</style>'
        f'<p class="warpbook-warning">{escape(message)}</p></div>'
    )


def _verdict(headline: Headline | None, meanings: Mapping[str, str]) -> str:
    if headline is None:
        return ""
    badge = (
        f'<span class="warpbook-badge" style="border-color:{colour_of(headline.kind)}" '
        f'title="{escape(meanings.get(headline.label, ""))}">'
        f"{escape(headline.label)}</span> "
    )
    cause = f'<p class="warpbook-verdict">{badge}{escape(headline.cause)}</p>'
    if not headline.change:
        return cause
    return f'{cause}<p class="warpbook-change">{escape(headline.change)}</p>'


def _time_bar(time: TimeBar) -> str:
    """Draw where the time goes as one bar, with its parts in words below."""
    bar = "".join(
        f'<span style="color:{colour_of(part.kind)};width:{part.ratio:.1%}" '
        f'title="{escape(part.label)}"></span>'
        for part in time.parts
    )
    legend = "".join(
        f'<span><b style="color:{colour_of(part.kind)}"></b>{escape(part.label)}</span>'
        for part in time.parts
    )
    return (
        f'<figure class="warpbook-time"><figcaption>{escape(time.title)}</figcaption>'
        f'<div class="warpbook-parts" aria-hidden="true">{bar}</div>'
        f'<div class="warpbook-legend">{legend}</div></figure>'
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def _figures(figures: Sequence[LabelledFigure]) -> str:
    rows = "".join(
        f"<dt>{escape(figure.label)}</dt><dd>{escape(figure.value)}</dd>"
        for figure in figures
    )
    return f"<dl>{rows}</dl>"


def _changes(changes: Sequence[ChangeView], anchors: _Anchors) -> str:
    rows = "".join(
        f"<li{anchors.at(change.id)}><strong>{escape(change.heading)}</strong> "
        f"{escape(change.sentence)} <span>{escape(change.evidence)}"
        f"{'' if anchors else ' ' + escape(change.acts_on)}</span>"
        f"{anchors.to('Acts on', change.causes)}{anchors.to('Rows', change.rows)}"
        f"{_diff(change.diff)}</li>"
        for change in changes
    )
    return f"<h4>What to change</h4><ol>{rows}</ol>" if rows else ""


def _diff(lines: str) -> str:
    return _folded("Edit", f"<pre>{escape(lines)}</pre>") if lines else ""


def _trials(trials: Sequence[LabelledFigure]) -> str:
    # it was asked for, so it is not folded
    return f"<h4>Tried on copies</h4>{_figures(trials)}" if trials else ""


def _edited(edited: EditedView | None) -> str:
    if edited is None:
        return ""
    diff = f"<pre>{escape(edited.diff)}</pre>" if edited.diff else ""
    diff += f"<p>{PLACE_IT}</p>" if edited.can_be_placed else ""
    table = "" if edited.table is None else _table(edited.table)
    return f"<h4>The edited cell</h4><p>{escape(edited.sentence)}</p>{diff}{table}"


def _causes(causes: Sequence[CauseView], anchors: _Anchors) -> tuple[str, str]:
    rows = "".join(_cause(cause, anchors) for cause in causes)
    return "What explains the time", f"<ol>{rows}</ol>" if rows else ""


def _cause(cause: CauseView, anchors: _Anchors) -> str:
    said = f"{cause.label}: {cause.evidence}"
    links = anchors.to("Changes", cause.changes) + anchors.to("Rows", cause.rows)
    at = anchors.at(cause.id)
    return (
        f"<li{at}>{_explained(cause.share, said, cause.advice, cause.lab)}{links}</li>"
    )


def _explained(share: str, said: str, advice: str, lab: str | None) -> str:
    taught = "" if lab is None else f"Lab: {lab}."
    words = " ".join(filter(None, (advice, taught)))
    return f"{escape(share)} {escape(said)} <em>{escape(words)}</em>"


def _stalls(stalls: StallsView | None) -> str:
    if stalls is None:
        return ""
    kernels = "".join(map(_kernel_stalls, stalls.kernels))
    return f"{_notes((stalls.sentence, *stalls.notes))}{kernels}"


def _kernel_stalls(kernel: KernelStallsView) -> str:
    reasons = "".join(
        f"<li>{_explained(reason.share, reason.words, reason.advice, reason.lab)}</li>"
        for reason in kernel.reasons
    )
    return (
        f"<section><h4>{escape(kernel.name)}</h4><p>{escape(kernel.sentence)}</p>"
        f"<ol>{reasons}</ol>{''.join(map(_table, kernel.sources))}"
        f"{_notes(kernel.notes)}</section>"
    )


def _checklist(checklist: Checklist) -> str:
    return f"<p>{escape(checklist.summary)}</p>{groups_html(checklist)}"


def _groups(groups: Sequence[FigureGroup]) -> tuple[str, str]:
    sections = "".join(
        f"<section><h4>{escape(group.title)}</h4>{_figures(group.figures)}</section>"
        for group in groups
    )
    inner = f'<div class="warpbook-groups">{sections}</div>'
    return "Figures", inner if sections else ""


def _folded(title: str, inner: str, *, is_open: bool = False) -> str:
    """Fold what is there below its title."""
    if not inner:
        return ""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(title)}</summary>{inner}</details>"


def _table(
    table: ReportTable, *, is_whole: bool = False, anchors: _Anchors = _NO_ANCHORS
) -> str:
    rows, more = (table.rows, 0) if is_whole else shown(table)
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    # of rows that belong to nothing there are none
    links = table.links if anchors and table.links else (None,) * len(rows)
    part_of = "<th>Part of</th>" if any(links) else ""
    body = "".join(
        _row(row, link, anchors, is_code=table.is_code)
        for row, link in zip(rows, links, strict=False)
    )
    caption = f"<caption>{more:,} more</caption>" if more else ""
    return table_html(
        f"<table>{caption}<thead><tr><th>{escape(table.title)}</th>{header}"
        f"{part_of}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(
    row: tuple[TableCell, ...],
    links: RowLinks | None,
    anchors: _Anchors,
    *,
    is_code: bool,
) -> str:
    name, *figures = row
    cells = "".join(
        f"<td>{escape(figure.text)}{_bar(figure.bar)}</td>" for figure in figures
    )
    at = ""
    if links is not None:
        at = anchors.at(links.id)
        causes = anchors.to("Causes", links.causes)
        cells += f"<td>{causes}{anchors.to('Changes', links.changes)}</td>"
    return f"<tr{at}>{name_cell(name.text, is_code=is_code)}{cells}</tr>"


def _bar(length: float) -> str:
    """Draw a bar below a figure; what can't be seen is left out."""
    if length < 0.01:
        return ""
    return f'<div class="warpbook-bar" style="width:{length:.0%}"></div>'
