"""The optimisation checklist as text and as static HTML, from one view."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby

from warpbook.reports.style import STYLE
from warpbook_monitors.checklist.answers import ANSWERS, Answer, Checklist, Line

_TITLES: dict[Answer, str] = {
    "no": "No: missing, and it would apply",
    "unknown": "Unknown: nothing recorded tells",
    "yes": "Yes: in use",
    "not applicable": "Not applicable",
}
_COLOURS: dict[Answer, str] = {
    "no": "#b8442f",
    "unknown": "#d08700",
    "yes": "#2f9158",
    "not applicable": "#888888",
}


def checklist_lines(checklist: Checklist) -> Iterator[str]:
    """Write it line by line, what is missing first."""
    yield checklist.summary
    for warning in checklist.warnings:
        yield f"! {warning}"
    for answer, lines in _groups(checklist):
        yield ""
        yield _TITLES[answer]
        for (evidence, advice), alike in groupby(lines, key=_said):
            for line in alike:
                lab = "" if line.lab is None else f" (lab: {line.lab})"
                yield f"  {line.question} [{line.name}]{lab}"
            yield f"      {evidence}"
            if advice:
                yield f"      {advice}"


def checklist_html(checklist: Checklist, title: str) -> str:
    """Write it as HTML; what does not apply is folded.

    Args:
        checklist: the answers.
        title: what was profiled, for who can't see it.
    """
    warnings = "".join(
        f'<p class="warpbook-warning">{escape(warning)}</p>'
        for warning in checklist.warnings
    )
    groups = "".join(_group(answer, lines) for answer, lines in _groups(checklist))
    return (
        f'<div class="warpbook-report" aria-label="Checklist of {escape(title)}">'
        f'<style>{STYLE}</style><p class="warpbook-verdict">'
        f"{escape(checklist.summary)}</p>{warnings}{groups}</div>"
    )


def _groups(checklist: Checklist) -> Iterator[tuple[Answer, list[Line]]]:
    for answer in ANSWERS:
        lines = [line for line in checklist.lines if line.answer == answer]
        if lines:
            yield answer, lines


def _said(line: Line) -> tuple[str, str]:
    return line.evidence, line.advice


def _group(answer: Answer, lines: list[Line]) -> str:
    rows = "".join(map(_row, lines))
    state = "" if answer == "not applicable" else " open"
    return (
        f"<details{state}><summary>{escape(_TITLES[answer])} ({len(lines)})</summary>"
        f"<ul>{rows}</ul></details>"
    )


def _row(line: Line) -> str:
    lab = "" if line.lab is None else f" <em>Lab: {escape(line.lab)}.</em>"
    advice = f"<br>{escape(line.advice)}" if line.advice else ""
    colour = _COLOURS[line.answer]
    return (
        f'<li><span class="warpbook-badge" style="border-color:{colour}">'
        f"{escape(line.answer)}</span> <strong>{escape(line.question)}</strong> "
        f"<span>{escape(line.evidence)}</span>{advice}{lab}</li>"
    )
