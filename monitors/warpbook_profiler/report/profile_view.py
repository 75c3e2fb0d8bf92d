"""The profile of a cell as a report that can be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.advice.words import heading
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.bare_words import took
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import Finding
from warpbook_profiler.model.report_view import (
    CauseView,
    ChangeView,
    FigureGroup,
    Headline,
    Labs,
    ReportTable,
    ReportView,
    TableSection,
    TimeBar,
    TimePart,
    TrialView,
)
from warpbook_profiler.report import cpu_words as cpu_words
from warpbook_profiler.report import figure_groups, tables
from warpbook_profiler.report.collective_table import collectives
from warpbook_profiler.report.edited import edited_view
from warpbook_profiler.report.headline_figures import headline_figures
from warpbook_profiler.verdict.leading_cause import shares_by_kind

#: of the bar: less is not seen
_LEAST_PART = 0.01


def view_of(profile: CellProfile, labs: Labs) -> ReportView:
    """Put what a profile says into words, figures and tables.

    Args:
        profile: of a cell.
        labs: which lab a cause or change points to.
    """
    return ReportView(
        headline=_headline(profile),
        time=time_bar(profile.findings, profile.bare),
        figures=figure_groups.labelled_figures(headline_figures(profile)),
        warnings=_warnings(profile),
        changes=change_views(profile.changes),
        trials=tuple(
            TrialView(trial.name, trial.outcome, trial.sentence)
            for trial in profile.trials
        ),
        edited=edited_view(profile),
        lines=tables.lines(profile.lines) if profile.lines else None,
        causes=cause_views(profile.findings, labs),
        sections=_sections(profile),
        groups=_groups(profile),
    )


def _headline(profile: CellProfile) -> Headline | None:
    verdict = profile.verdict
    if verdict is None:
        return None
    return Headline(verdict.kind, verdict.cause, verdict.change)


def cause_views(findings: Sequence[Finding], labs: Labs) -> tuple[CauseView, ...]:
    """Word the causes, in their order."""
    return tuple(
        CauseView(
            finding.kind,
            units.share(finding.share),
            finding.share,
            finding.evidence,
            figure_groups.advice(finding),
            labs.get(finding.topic),
        )
        for finding in findings
    )


def time_bar(findings: Sequence[Finding], bare: BareRun | None) -> TimeBar | None:
    """Divide the time without the profiler by its causes."""
    parts = time_parts(shares_by_kind(findings))
    return TimeBar(_time_title(bare), parts) if parts else None


def time_parts(shares: Mapping[Kind, float]) -> tuple[TimePart, ...]:
    """Divide a time by its causes; empty where nothing explains it."""
    total = sum(shares.values())
    if not total:
        return ()
    parts: list[tuple[Kind | None, str, float]] = [
        (kind, kind, share) for kind, share in shares.items()
    ]
    if total < 1 - _LEAST_PART:
        parts.append((None, "not explained", 1 - total))
    whole = max(total, 1.0)
    return tuple(
        TimePart(kind, f"{name} {units.share(share / whole)}", share / whole)
        for kind, name, share in parts
    )


def _time_title(bare: BareRun | None) -> str:
    if bare is None:
        return "Where the time of this run goes"
    return f"Where the {took(bare)} without the profiler go"


def change_views(changes: Sequence[Change]) -> tuple[ChangeView, ...]:
    """Word the changes, in their order."""
    return tuple(
        ChangeView(
            change.name,
            heading(change),
            change.sentence,
            change.evidence,
            change.diff,
            change.lab,
        )
        for change in changes
    )


def _groups(profile: CellProfile) -> tuple[FigureGroup, ...]:
    of_cpu = cpu_words.groups(profile.cpu)
    if profile.metrics is None:
        return of_cpu
    whole = profile.completeness
    of_gpu = figure_groups.groups(
        profile.metrics, whole.matched, bare=profile.bare, linked_by=whole.linked_by
    )
    return (*of_cpu, *of_gpu)


def _warnings(profile: CellProfile) -> tuple[str, ...]:
    cautions = () if profile.bare is None else profile.bare.cautions
    return (*profile.completeness.warnings, *cautions)


def _sections(profile: CellProfile) -> tuple[TableSection, ...]:
    metrics = profile.metrics
    work = with_rows(
        tables.kernels(profile.kernels),
        None if metrics is None else tables.kernel_work(metrics),
        tables.steps(profile.steps),
        tables.modules(profile.modules),
        tables.functions(profile.functions),
        tables.paths(profile.paths),
        tables.annotated_parts(profile.annotations),
        tables.operators(profile.operators),
        tables.roofline(profile.roofline),
    )
    waits = with_rows(
        None if metrics is None else tables.sync_points(metrics),
        None if metrics is None else tables.idle_places(metrics),
        None if metrics is None else tables.streams(metrics),
        tables.copies(profile.copies),
        None if metrics is None else collectives(metrics),
        tables.memory(profile.memory),
        tables.memory_peaks(profile.memory_curves),
    )
    return sections_of(work, waits)


def sections_of(
    work: tuple[ReportTable, ...], waits: tuple[ReportTable, ...]
) -> tuple[TableSection, ...]:
    """Put tables that have rows below their titles."""
    sections = (
        TableSection("Kernels and operators", work),
        TableSection("Waits, copies and memory", waits),
    )
    return tuple(section for section in sections if section.tables)


def with_rows(*candidates: ReportTable | None) -> tuple[ReportTable, ...]:
    """Leave out tables that have nothing to tell."""
    return tuple(table for table in candidates if table is not None and table.rows)
