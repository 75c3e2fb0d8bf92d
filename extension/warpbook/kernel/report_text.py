"""The report of a cell as plain text, for terminals and screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook.kernel.report import (
    causes,
    changes,
    code_tables,
    groups,
    headline,
    sections,
    sentence,
    trials,
    warnings,
)
from warpbook_monitors.plain_text import joined, labelled
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.trace.tables import Table, as_lines


def report_text(profile: CellProfile, notes: Sequence[str] = ()) -> str:
    """Write the whole report; the notes follow the figures."""
    return joined(_lines(profile, notes))


def document_text(said: str, notes: Sequence[str], tables: Sequence[Table]) -> str:
    """Write a sentence, notes and tables."""
    return joined([said, *notes, *as_lines(tables)])


def _lines(profile: CellProfile, notes: Sequence[str]) -> Iterator[str]:
    if said := sentence(profile):
        yield said
        yield ""
    yield from labelled(headline(profile))
    yield from notes
    for warning in warnings(profile):
        yield f"! {warning}"
    if advised := changes(profile):
        yield ""
        yield "What to change"
        for change in advised:
            yield change.title
            yield f"    {change.sentence}"
            yield f"    {change.evidence}"
            yield from (f"        {line}" for line in change.sketch.splitlines())
    if tried := trials(profile):
        yield ""
        yield "Tried on copies"
        yield from (f"{name}: {words}" for name, words in tried)
    if found := causes(profile):
        yield ""
        yield "What explains the time"
        for each in found:
            yield f"{each.title}: {each.evidence}"
            yield f"    {each.advice}"
    for group in groups(profile):
        yield ""
        yield group.title
        yield from labelled(group.figures)
    yield from as_lines(code_tables(profile))
    for section in sections(profile):
        yield from as_lines(section.tables)
