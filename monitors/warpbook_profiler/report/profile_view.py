"""The profile of a cell as a report that can be shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import MEANINGS
from warpbook_profiler.advice.words import heading
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict, Finding
from warpbook_profiler.model.report_view import (
    CauseView,
    ChangeView,
    EditedView,
    FigureGroup,
    Headline,
    Labs,
    ReportTable,
    ReportView,
    TableCell,
    TableSection,
    TimeBar,
    TimePart,
    TrialView,
)
from warpbook_profiler.model.trials import Trial, ratios
from warpbook_profiler.report import cpu_words, figure_groups, kernel_tables, tables
from warpbook_profiler.report.base import Base, base_of
from warpbook_profiler.report.collective_table import collectives
from warpbook_profiler.report.headline_figures import headline_figures
from warpbook_profiler.report.links import Links, cause_id, change_id
from warpbook_profiler.report.stalls_view import stall_ids, stalls_view
from warpbook_profiler.verdict.leading_cause import parts_by_label


def edited_view(profile: CellProfile) -> EditedView | None:
    """Word it; None where nobody asked for it."""
    edited = profile.edited
    if edited is None:
        return None
    # a trial of all changes together follows those of each
    shown = (*edited.changes, "all")
    # a change may have been tried again after another
    measured = {trial.name: trial for trial in profile.trials if trial.name in shown}
    table = ReportTable(
        "What each change gave",
        "Change",
        ("Before", "After", "Times as fast", "Promised"),
        tuple(_rows(list(measured.values()))),
    )
    shown_table = table if table.rows else None
    return EditedView(edited.sentence, edited.diff, shown_table, bool(edited.code))


def _rows(trials: list[Trial]) -> Iterator[tuple[TableCell, ...]]:
    for trial in trials:
        if trial.speed is not None:
            yield (
                TableCell(trial.name),
                cells.time_ns(trial.unchanged_ns),
                cells.time_ns(trial.changed_ns),
                TableCell(
                    ratios((trial.speed.low, trial.speed.high)), trial.speed.ratio
                ),
                TableCell("" if trial.promised is None else ratios(trial.promised)),
            )


_FAR = (
    "Kernels reach less than a quarter of what memory or arithmetic units allow: "
    "something else holds them back, such as a grid that is too small."
)
#: of the bar: less is not seen
_LEAST_PART = 0.01


def view_of(profile: CellProfile, labs: Labs) -> ReportView:
    """Put what a profile says into words, figures and tables.

    Args:
        profile: of a cell.
        labs: which lab a cause or change points to.
    """
    links = Links(profile.findings, profile.changes)
    base = base_of(profile.bare, profile.metrics, profile.cpu)
    sections = _sections(profile, base, links)
    return ReportView(
        headline=headline(profile.verdict, profile.findings, links),
        base=base.words,
        time=time_bar(profile.findings, base.words),
        figures=figure_groups.labelled_figures(headline_figures(profile)),
        warnings=_warnings(profile),
        changes=change_views(profile.changes, profile.findings, links),
        trials=tuple(
            TrialView(trial.name, trial.outcome, trial.sentence)
            for trial in profile.trials
        ),
        edited=edited_view(profile),
        lines=tables.lines(profile.lines) if profile.lines else None,
        causes=cause_views(profile.findings, labs, links),
        sections=sections,
        groups=_groups(profile),
        stalls=stalls_view(profile.stalls, profile.kernels, links),
        meanings=meanings(profile.verdict, profile.findings),
    )


def headline(
    verdict: CellVerdict | None, findings: Sequence[Finding], links: Links
) -> Headline | None:
    """Word the verdict; None where there is none."""
    if verdict is None:
        return None
    named = [finding for finding in findings if finding.part in verdict.parts]
    label: str = verdict.kind
    if verdict.kind not in ("mixed", "unknown") and named:
        label = named[0].label
    return Headline(
        verdict.kind,
        label,
        verdict.cause,
        verdict.change,
        links.causes_of(verdict.parts),
        None if verdict.change_at is None else change_id(verdict.change_at),
    )


def meanings(
    verdict: CellVerdict | None, findings: Sequence[Finding]
) -> dict[str, str]:
    """Give what the labels of a verdict and its causes mean."""
    found: dict[str, str] = {}
    if verdict is not None:
        found[verdict.kind] = MEANINGS[verdict.kind]
    for finding in findings:
        found[finding.label] = _FAR if finding.is_far else MEANINGS[finding.kind]
    return found


def cause_views(
    findings: Sequence[Finding], labs: Labs, links: Links
) -> tuple[CauseView, ...]:
    """Word the causes, in their order."""
    return tuple(
        CauseView(
            cause_id(at),
            finding.kind,
            finding.label,
            units.share(finding.share),
            finding.share,
            finding.evidence,
            figure_groups.advice(finding),
            labs.get(finding.topic),
            links.changes_of(finding),
            links.rows_of(cause_id(at)),
        )
        for at, finding in enumerate(findings)
    )


def time_bar(findings: Sequence[Finding], title: str) -> TimeBar | None:
    """Divide the time that shares are of by its causes."""
    ids = [cause_id(at) for at in range(len(findings))]
    shown = time_parts(parts_by_label(findings, ids))
    return TimeBar(title, shown) if shown else None


def time_parts(parts: Iterable[TimePart]) -> tuple[TimePart, ...]:
    """Return the parts of a time with their shares, the largest first.

    What they do not explain is the last one; nothing is returned of no parts.
    """
    in_order = sorted(parts, key=lambda part: -part.ratio)
    total = sum(part.ratio for part in in_order)
    if not total:
        return ()
    # shares are rounded: 0.99 leaves a hundredth
    if round(1 - total, 4) >= _LEAST_PART:
        in_order.append(TimePart(None, "not explained", 1 - total))
    shares = units.parts_of_one([part.ratio for part in in_order])
    return tuple(
        structs.replace(part, label=f"{part.label} {units.share(share)}")
        for part, share in zip(in_order, shares, strict=True)
    )


def change_views(
    changes: Sequence[Change], findings: Sequence[Finding], links: Links
) -> tuple[ChangeView, ...]:
    """Word the changes, in their order."""
    return tuple(
        ChangeView(
            change_id(at),
            change.name,
            heading(change),
            change.sentence,
            change.evidence,
            change.diff,
            change.lab,
            _acts_on([one for one in findings if one.part in change.parts]),
            links.causes_of(change.parts),
            links.rows_of(change_id(at)),
        )
        for at, change in enumerate(changes)
    )


def _acts_on(findings: Sequence[Finding]) -> str:
    parts = parts_by_label(findings)
    named = [f"{part.label} {units.share(part.ratio)}" for part in parts]
    return f"Acts on {', '.join(named)}." if named else ""


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


def _sections(
    profile: CellProfile, base: Base, links: Links
) -> tuple[TableSection, ...]:
    metrics = profile.metrics
    work = with_rows(
        kernel_tables.kernels(
            profile.kernels,
            base.time_ns,
            links,
            stall_ids(profile.stalls, profile.kernels),
        ),
        None if metrics is None else kernel_tables.kernel_work(metrics, links),
        tables.steps(profile.steps),
        tables.modules(profile.modules),
        tables.functions(profile.functions),
        tables.paths(profile.paths),
        tables.annotated_parts(profile.annotations, links),
        tables.operators(profile.operators, links),
        kernel_tables.roofline(profile.roofline, links),
    )
    waits = with_rows(
        None if metrics is None else tables.sync_points(metrics, links),
        None if metrics is None else tables.idle_places(metrics, links),
        None if metrics is None else tables.streams(metrics),
        tables.copies(profile.copies, links),
        None if metrics is None else collectives(metrics, links),
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
