"""The optimisation checklist as text and as static HTML, from one view."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from warpbook.colours import ERROR, GOOD, PLAIN
from warpbook.reports.style import STYLE
from warpbook_profiler.checklist.answers import Answer, Checklist
from warpbook_profiler.checklist.view import (
    ChecklistEntry,
    ChecklistGroup,
    ChecklistItem,
    view_of_checklist,
)

_COLOURS: dict[Answer, str] = {
    "no": ERROR,
    "yes": GOOD,
    "unknown": PLAIN,
    "not applicable": PLAIN,
}


def checklist_lines(checklist: Checklist) -> Iterator[str]:
    """Write it line by line, what is missing first."""
    view = view_of_checklist(checklist)
    yield view.summary
    for warning in view.warnings:
        yield f"! {warning}"
    for group in view.groups:
        yield ""
        yield group.title
        for entry in group.entries:
            for item in entry.items:
                lab = "" if item.lab is None else f" (lab: {item.lab})"
                yield f"  {item.question} [{item.name}]{lab}"
            yield f"      {entry.evidence}"
            if entry.advice:
                yield f"      {entry.advice}"


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
    return (
        f'<div class="warpbook-report" aria-label="Checklist of {escape(title)}">'
        f'<style>{STYLE}</style><p class="warpbook-verdict">'
        f"{escape(checklist.summary)}</p>{warnings}{groups_html(checklist)}</div>"
    )


def groups_html(checklist: Checklist) -> str:
    """Write the answers alone, for a page that has style and warnings already."""
    return "".join(map(_group, view_of_checklist(checklist).groups))


def _group(group: ChecklistGroup) -> str:
    rows = "".join(_entry(group.answer, entry) for entry in group.entries)
    state = "" if group.answer == "not applicable" else " open"
    return (
        f"<details{state}><summary>{escape(group.title)} ({group.count})</summary>"
        f"<ul>{rows}</ul></details>"
    )


def _entry(answer: Answer, entry: ChecklistEntry) -> str:
    badge = (
        f'<span class="warpbook-badge" style="border-color:{_COLOURS[answer]}">'
        f"{escape(answer)}</span> "
    )
    items = "<br>".join(map(_item, entry.items))
    advice = f"<br>{escape(entry.advice)}" if entry.advice else ""
    return f"<li>{badge}{items} <span>{escape(entry.evidence)}</span>{advice}</li>"


def _item(item: ChecklistItem) -> str:
    lab = "" if item.lab is None else f" <em>Lab: {escape(item.lab)}.</em>"
    return f"<strong>{escape(item.question)}</strong>{lab}"
