"""The report of a trace file as a report that can be shown."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.model.bare_words import times
from warpbook_profiler.model.report_view import (
    FigureGroup,
    Labs,
    ReportView,
    TableSection,
)
from warpbook_profiler.report import cpu_words, figure_groups, kernel_tables, tables
from warpbook_profiler.report.base import Base, base_of
from warpbook_profiler.report.collective_table import collectives
from warpbook_profiler.report.links import Links
from warpbook_profiler.report.profile_view import (
    cause_views,
    change_views,
    headline,
    meanings,
    sections_of,
    time_bar,
    with_rows,
)
from warpbook_profiler.report.report import TraceReport
from warpbook_profiler.report.stalls_view import stall_ids, stalls_view


def view_of_trace(report: TraceReport, labs: Labs) -> ReportView:
    """Put what a trace file says into words, figures and tables.

    Args:
        report: of a trace file.
        labs: which lab a cause or change points to.
    """
    verdict = report.verdict
    cautions = () if report.bare is None else report.bare.cautions
    links = Links(report.findings, report.changes)
    metrics = report.metrics if report.gpu_recorded else None
    base = base_of(report.bare, metrics, report.cpu)
    sections = _sections(report, base, links)
    return ReportView(
        headline=headline(verdict, report.findings, links),
        base=base.words,
        time=time_bar(report.findings, base.words),
        figures=figure_groups.labelled_figures(_figures(report)),
        warnings=(*report.completeness.warnings, *cautions),
        changes=change_views(report.changes, report.findings, links),
        trials=(),
        edited=None,
        lines=None,
        causes=cause_views(report.findings, labs, links),
        sections=sections,
        groups=_groups(report),
        stalls=stalls_view(report.stalls, report.kernels, links),
        meanings=meanings(verdict, report.findings),
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


def _sections(
    report: TraceReport, base: Base, links: Links
) -> tuple[TableSection, ...]:
    metrics = report.metrics
    of_host = (
        tables.steps(report.steps),
        tables.annotated_parts(report.annotations, links),
        tables.operators(report.operators, links),
    )
    if not report.gpu_recorded:
        return sections_of(with_rows(*of_host), ())
    work = with_rows(
        kernel_tables.kernels(
            report.kernels,
            base.time_ns,
            links,
            stall_ids(report.stalls, report.kernels),
        ),
        kernel_tables.kernel_work(metrics, links),
        *of_host,
        kernel_tables.roofline(report.roofline, links),
    )
    waits = with_rows(
        tables.sync_points(metrics, links),
        tables.idle_places(metrics, links),
        tables.streams(metrics),
        tables.copies(report.copies, links),
        collectives(metrics, links),
    )
    return sections_of(work, waits)
