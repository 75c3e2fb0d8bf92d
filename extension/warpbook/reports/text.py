"""The report of a cell as plain text, for terminals and screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_monitors.plain_text import joined, labelled
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.model.report_view import (
    CauseView,
    ChangeView,
    EditedView,
    KernelStallsView,
    LabelledFigure,
    ReportTable,
    ReportView,
)
from warpbook_profiler.report.tables import as_lines

_BAR_WIDTH = 60
#: where no button does it
PLACE_IT = "%gpuapply puts it into the next cell, until another cell is profiled."


def report_text(view: ReportView, notes: Sequence[str] = ()) -> str:
    """Write the whole report; the notes follow the figures."""
    return joined(report_lines(view, notes))


def document_text(
    said: str, notes: Sequence[str], tables: Sequence[ReportTable]
) -> str:
    return joined([said, *notes, *as_lines(tables)])


def comparison_lines(shown: Comparison, width: int | None = None) -> Iterator[str]:
    """Write a comparison line by line: both bars, then what differs most.

    Args:
        shown: with its bars and tables.
        width: of the terminal in characters, if it is one.
    """
    yield shown.sentence
    yield from (f"! {caution}" for caution in shown.cautions)
    yield from shown.notes
    for bar in shown.bars:
        yield ""
        yield bar.title
        length = round(_BAR_WIDTH * sum(part.ratio for part in bar.parts))
        yield f"    {'#' * max(length, 1)}"
        yield f"    {', '.join(part.label for part in bar.parts)}"
    yield from as_lines(shown.tables, width)


def report_lines(
    view: ReportView, notes: Sequence[str] = (), width: int | None = None
) -> Iterator[str]:
    """Write a report line by line, in the order of the view.

    Args:
        view: of the report.
        notes: follow the figures.
        width: of the terminal in characters, if it is one.
    """
    if view.headline is not None:
        headline = view.headline
        yield f"{headline.label}: {headline.cause} {headline.change}".rstrip()
        yield ""
    if view.base:
        yield view.base
    yield from _labelled(view.figures)
    yield from notes
    for warning in view.warnings:
        yield f"! {warning}"
    if view.changes:
        yield ""
        yield "What to change"
        for change in view.changes:
            yield from _change(change)
    if view.trials:
        yield ""
        yield "Tried on copies"
        yield from (f"{trial.name}: {trial.sentence}" for trial in view.trials)
    if view.edited is not None:
        yield from _edited(view.edited, width)
    if view.lines is not None:
        yield from as_lines([view.lines], width)
    if view.causes:
        yield ""
        yield "What explains the time"
        for cause in view.causes:
            yield from _cause(cause)
    if view.stalls is not None:
        yield ""
        yield "Stalls"
        yield view.stalls.sentence
        yield from view.stalls.notes
        for kernel in view.stalls.kernels:
            yield from _stalls(kernel, width)
    for section in view.sections:
        yield from as_lines(section.tables, width)
    for group in view.groups:
        yield ""
        yield group.title
        yield from _labelled(group.figures)


def _labelled(figures: Sequence[LabelledFigure]) -> list[str]:
    return labelled([(figure.label, figure.value) for figure in figures])


def _change(change: ChangeView) -> Iterator[str]:
    yield change.heading
    yield f"    {change.sentence}"
    yield f"    {change.evidence} {change.acts_on}".rstrip()
    yield from (f"        {line}" for line in change.diff.splitlines())


def _edited(edited: EditedView, width: int | None) -> Iterator[str]:
    yield ""
    yield "The edited cell"
    yield edited.sentence
    yield from (f"    {line}" for line in edited.diff.splitlines())
    if edited.can_be_placed:
        yield PLACE_IT
    if edited.table is not None:
        yield from as_lines([edited.table], width)


def _cause(cause: CauseView) -> Iterator[str]:
    yield f"{cause.share} {cause.label}: {cause.evidence}"
    yield _advice(cause.advice, cause.lab)


def _advice(advice: str, lab: str | None) -> str:
    taught = "" if lab is None else f"Lab: {lab}."
    return f"    {' '.join(filter(None, (advice, taught)))}".rstrip()


def _stalls(kernel: KernelStallsView, width: int | None) -> Iterator[str]:
    yield ""
    yield kernel.name
    yield kernel.sentence
    for reason in kernel.reasons:
        yield f"{reason.share} {reason.words}"
        if reason.advice or reason.lab:
            yield _advice(reason.advice, reason.lab)
    yield from as_lines(kernel.sources, width)
    yield from kernel.notes
