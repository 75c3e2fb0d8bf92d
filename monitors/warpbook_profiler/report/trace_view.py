"""The report of a trace file as a report that can be shown."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.model.bare_words import times
from warpbook_profiler.model.report_view import (
    FigureGroup,
    Headline,
    Labs,
    ReportView,
    TableSection,
)
from warpbook_profiler.report import cpu_words as cpu_words
from warpbook_profiler.report import figure_groups, tables
from warpbook_profiler.report.collective_table import collectives
from warpbook_profiler.report.profile_view import (
    cause_views,
    change_views,
    sections_of,
    time_bar,
    with_rows,
)
from warpbook_profiler.report.report import TraceReport


def view_of_trace(report: TraceReport, labs: Labs) -> ReportView:
    """Put what a trace file says into words, figures and tables.

    Args:
        report: of a trace file.
        labs: which lab a cause or change points to.
    """
    verdict = report.verdict
    cautions = () if report.bare is None else report.bare.cautions
    return ReportView(
        headline=Headline(verdict.kind, verdict.cause, verdict.change),
        time=time_bar(report.findings, report.bare),
        figures=figure_groups.labelled_figures(_figures(report)),
        warnings=(*report.completeness.warnings, *cautions),
        changes=change_views(report.changes),
        trials=(),
        edited=None,
        lines=None,
        causes=cause_views(report.findings, labs),
        sections=_sections(report),
        groups=_groups(report),
    )


def _figures(report: TraceReport) -> Iterator[tuple[str, str]]:
    if report.bare is not None:
        yield "Time", report.bare.sentence
    elif report.cpu is not None and report.cpu.bare is not None:
        yield "Time", times(report.cpu.bare)
    unknown = "not known" if report.cpu is None else "none at work"
    yield "GPU", report.gpu or unknown


def _groups(report: TraceReport) -> tuple[FigureGroup, ...]:
    if report.cpu is not None:
        return cpu_words.groups(report.cpu)
    whole = report.completeness
    return figure_groups.groups(
        report.metrics,
        whole.matched,
        report.gpu_recorded,
        report.bare,
        whole.linked_by,
    )


def _sections(report: TraceReport) -> tuple[TableSection, ...]:
    metrics = report.metrics
    of_host = (
        tables.annotated_parts(report.annotations),
        tables.operators(report.operators),
    )
    if not report.gpu_recorded:
        return sections_of(with_rows(*of_host), ())
    work = with_rows(
        tables.kernels(report.kernels),
        tables.kernel_work(metrics),
        *of_host,
        tables.roofline(report.roofline),
    )
    waits = with_rows(
        tables.sync_points(metrics),
        tables.idle_places(metrics),
        tables.streams(metrics),
        tables.copies(report.copies),
        collectives(metrics),
    )
    return sections_of(work, waits)
