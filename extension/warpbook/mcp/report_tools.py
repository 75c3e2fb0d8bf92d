"""`report`, `kernels`, `lines`, `stalls`, `compare`, `checklist`: what profiles say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from warpbook.mcp.answer import Answer
from warpbook.mcp.gpu_tools import utc
from warpbook.mcp.lab_policy import allow_file
from warpbook.mcp.marked import Own
from warpbook.mcp.source import Source, ToolError
from warpbook.mcp.tool import Arguments, Tool
from warpbook.protocol import CellReport, Receipt
from warpbook_profiler.model.report_view import (
    LabelledFigure,
    ReportTable,
    ReportView,
    TableCell,
)

ReportId = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9-]{0,64}$",
        description="Id of a report, as cells gives it; the newest if left out.",
    ),
]
TracePath = Annotated[
    str,
    Meta(
        max_length=4000,
        description="A trace file instead: of torch.profiler or Nsight Systems, by "
        "its path as JupyterLab shows it.",
    ),
]
_NOT_TRACED = (
    "No trace was taken of this cell, so its causes are not known: have the person put "
    "%%gpuprof on its first line."
)


class OneReport(Arguments, frozen=True, kw_only=True):
    """A report, by its id or its trace file."""

    report: ReportId = ""
    trace: TracePath = ""


class Kernels(OneReport, frozen=True, kw_only=True):
    """A table of a report."""

    table: Annotated[
        str,
        Meta(
            max_length=200,
            description="Title of another table, as an answer lists them: operators, "
            "copies, waits, idle time.",
        ),
    ] = "Kernels"


class TwoReports(Arguments, frozen=True, kw_only=True):
    """The run before and the one after, each by its id or its trace file."""

    before: ReportId = ""
    after: ReportId = ""
    before_trace: TracePath = ""
    after_trace: TracePath = ""


async def found_report(source: Source, report: str, trace: str = "") -> CellReport:
    """Find one that the assistant may see.

    Raises:
        ToolError: there is none, or it may not.
    """
    if report and trace:
        raise ToolError("Name a report or a trace file, not both.")
    if trace:
        return await source.trace(trace)
    found = await source.report(report) if report else await source.newest_report()
    await allow_file(found.notebook or found.file)
    return found


async def _viewed(source: Source, asked: OneReport) -> tuple[CellReport, ReportView]:
    report = await found_report(source, asked.report, asked.trace)
    if report.view is None:
        raise ToolError("This report has nothing to show; run the cell again.")
    return report, report.view


async def report_answer(source: Source, asked: OneReport) -> Answer:
    """Give a report, or the receipt of a cell that was not profiled."""
    if asked.report and not asked.trace:
        receipt = await source.receipt(asked.report)
        if receipt is not None:
            await allow_file(receipt.cell.notebook)
            return _receipt(receipt)
    report, view = await _viewed(source, asked)
    whole = report.profile.completeness
    head: dict[str, object] = {
        **_whose(report),
        "verdict": None,
        "base": view.base,
        "figures": _figures(view.figures),
        "completeness": {
            "launches": whole.launches,
            "launches_with_their_work": whole.matched,
        },
        "tables": [table.title for table in _tables(view)],
        "has_lines": view.lines is not None,
        "has_stalls": view.stalls is not None,
    }
    if view.headline is not None:
        head["verdict"] = {
            "kind": Own(view.headline.kind),
            "label": Own(view.headline.label),
            "cause": view.headline.cause,
            "change": view.headline.change,
        }
    unknown: list[str] = [whole.refusal] if whole.refusal else []
    if view.headline is None:
        unknown.append(Own("There is no verdict: no GPU could have been recorded."))
    if report.profile.bare is None:
        unknown.append(Own("The time without the profiler is not known."))
    rows = [*_causes(view), *_changes(view), *_trials(view), *_groups(view)]
    rows += [{"warning": warning} for warning in view.warnings]
    rows += [{"note": note} for note in report.notes]
    return Answer(head, rows, unknown, source.place(report))


def _whose(report: CellReport) -> dict[str, object]:
    whose: dict[str, object] = {"id": Own(report.id), "title": report.title}
    if report.file is not None:
        return {**whose, "trace": report.file, "saved": utc(report.started_ms)}
    return {
        **whose,
        "notebook": report.notebook,
        "execution_count": report.execution_count,
        "status": Own(report.status),
        "began": utc(report.started_ms),
    }


def _causes(view: ReportView) -> Iterator[dict[str, object]]:
    for cause in view.causes:
        yield {
            "cause": Own(cause.id),
            "kind": Own(cause.kind),
            "label": Own(cause.label),
            "share": cause.share,
            "evidence": cause.evidence,
            "advice": cause.advice,
            **_lab(cause.lab),
            "changes": [Own(change) for change in cause.changes],
        }


def _changes(view: ReportView) -> Iterator[dict[str, object]]:
    for change in view.changes:
        row = {
            "change": Own(change.id),
            "name": change.name,
            "what": change.heading,
            "gives": change.sentence,
            "evidence": change.evidence,
            "acts_on": change.acts_on,
            **_lab(change.lab),
        }
        if change.diff:
            row["diff"] = change.diff
        yield row


def _trials(view: ReportView) -> Iterator[dict[str, object]]:
    for trial in view.trials:
        yield {
            "trial": trial.name,
            "outcome": Own(trial.outcome),
            "sentence": trial.sentence,
        }
    if view.edited is not None:
        yield {"edited": view.edited.sentence, "diff": view.edited.diff}


def _groups(view: ReportView) -> Iterator[dict[str, object]]:
    for group in view.groups:
        yield {"group": Own(group.title), "figures": _figures(group.figures)}


def _lab(lab: str | None) -> dict[str, object]:
    # of a technique of another package it may be anything
    return {} if lab is None else {"lab": lab}


def _figures(figures: Sequence[LabelledFigure]) -> list[list[object]]:
    return [[Own(figure.label), figure.value] for figure in figures]


def _receipt(receipt: Receipt) -> Answer:
    head: dict[str, object] = {
        "id": Own(receipt.cell.id),
        "title": receipt.cell.title,
        "notebook": receipt.cell.notebook,
        "status": Own(receipt.cell.status),
        "began": utc(receipt.cell.started_ms),
        "wall_ms": receipt.wall_ms,
        "line": receipt.line,
    }
    rows: list[object] = []
    unknown: list[str] = [Own(_NOT_TRACED)]
    if receipt.view is not None:
        head["cell_line"] = receipt.view.cell_line
        unknown += receipt.view.notes
        for device in receipt.view.devices:
            table = device.table
            rows.append(
                {
                    "gpu": device.name,
                    **({} if table is None else _header(table)),
                    "rows": [] if table is None else list(map(_texts, table.rows)),
                    "unsure": list(device.notes),
                }
            )
        rows += [
            {"group": group.title, "figures": _figures(group.figures)}
            for group in receipt.view.allocators
        ]
    return Answer(head, rows, unknown, {"id": Own(receipt.cell.id)})


async def _kernels(source: Source, asked: Kernels) -> Answer:
    report, view = await _viewed(source, asked)
    tables = _tables(view)
    wanted = asked.table
    for table in tables:
        # a title may say more: "Kernels, side by side"
        if table.title == wanted or table.title.startswith(f"{wanted},"):
            return _table_answer(source, report, table, tables)
    titles = "; ".join(table.title for table in tables) or "none"
    raise ToolError("This report has no such table. It has:", titles)


def _tables(view: ReportView) -> list[ReportTable]:
    return [table for section in view.sections for table in section.tables]


def _table_answer(
    source: Source,
    report: CellReport,
    table: ReportTable,
    tables: Sequence[ReportTable] = (),
) -> Answer:
    head = {**_whose(report), "table": table.title, **_header(table)}
    others = [other.title for other in tables if other is not table]
    if others:
        head["other_tables"] = others
    return Answer(head, list(map(_texts, table.rows)), (), source.place(report))


def _header(table: ReportTable) -> dict[str, object]:
    return {"columns": [Own(table.name), *map(Own, table.header)]}


def _texts(row: Sequence[TableCell]) -> list[str]:
    return [cell.text for cell in row]


async def _lines(source: Source, asked: OneReport) -> Answer:
    report, view = await _viewed(source, asked)
    if view.lines is None:
        raise ToolError(
            "The lines of this run were not recorded: have the person run the cell "
            "with %%gpuprof --lines."
        )
    return _table_answer(source, report, view.lines)


async def _stalls(source: Source, asked: OneReport) -> Answer:
    report, view = await _viewed(source, asked)
    if view.stalls is None:
        raise ToolError(
            "Where warps waited was not sampled: have the person run the cell with "
            "%%gpuprof --stalls."
        )
    rows: list[object] = []
    for kernel in view.stalls.kernels:
        rows.append({"kernel": kernel.name, "sentence": kernel.sentence})
        rows += [
            {
                "of": kernel.name,
                "warps": reason.words,
                "share": reason.share,
                "advice": reason.advice,
                **_lab(reason.lab),
            }
            for reason in kernel.reasons
        ]
        for source_table in kernel.sources:
            rows += [
                {"of": kernel.name, "line": _texts(row)} for row in source_table.rows
            ]
        rows += [{"of": kernel.name, "note": note} for note in kernel.notes]
    head = {**_whose(report), "sentence": view.stalls.sentence}
    return Answer(head, rows, view.stalls.notes, source.place(report))


async def _compare(source: Source, asked: TwoReports) -> Answer:
    if not (asked.before or asked.before_trace):
        raise ToolError("Name the run before, by its report's id or its trace file.")
    before = await found_report(source, asked.before, asked.before_trace)
    after = await found_report(source, asked.after, asked.after_trace)
    difference = await source.difference(before, after)
    head: dict[str, object] = {
        "before": _whose(before),
        "after": _whose(after),
        "verdict": Own(difference.verdict),
        "sentence": difference.sentence,
        "certainty": list(difference.notes),
        "cautions": list(difference.cautions),
        "bars": [
            {"time": bar.title, "parts": [part.label for part in bar.parts]}
            for bar in difference.bars
        ],
    }
    if difference.time is not None:
        head["change_ratio"] = difference.time.change
        head["change_ratio_95_percent"] = [difference.time.low, difference.time.high]
        head["measured_by"] = Own(difference.time.basis)
    rows: list[object] = []
    for table in difference.tables:
        rows.append({"table": table.title, **_header(table)})
        rows += list(map(_texts, table.rows))
    see = {"before": source.place(before), "after": source.place(after)}
    return Answer(head, rows, (), see)


async def _checklist(source: Source, asked: OneReport) -> Answer:
    report = await found_report(source, asked.report, asked.trace)
    view = await source.checklist(report)
    head = {**_whose(report), "summary": view.summary}
    rows: list[object] = [
        {
            "answer": Own(group.answer),
            "questions": [
                {"name": item.name, "question": item.question, **_lab(item.lab)}
                for item in entry.items
            ],
            "evidence": entry.evidence,
            **({"advice": entry.advice} if entry.advice else {}),
        }
        for group in view.groups
        for entry in group.entries
    ]
    return Answer(head, rows, view.warnings, source.place(report))


REPORT_TOOLS = (
    Tool(
        "report",
        "What held a profiled cell or a trace file back: verdict, causes with the time "
        "that each explains, changes with the time after them, figures, and what is "
        "not known. Of an unprofiled cell, its receipt.",
        OneReport,
        report_answer,
    ),
    Tool(
        "kernels",
        "The kernels of a report with their calls, times and ceilings, or another "
        "table of it.",
        Kernels,
        _kernels,
    ),
    Tool(
        "lines",
        "The lines of a profiled cell with the time that each took on host and GPU.",
        OneReport,
        _lines,
    ),
    Tool(
        "stalls",
        "Where the warps of a report's kernels waited, by reason and source line, if "
        "that was sampled.",
        OneReport,
        _stalls,
    ),
    Tool(
        "compare",
        "Whether the run after is faster than the run before, with the interval at "
        "95 % and what differs. It refuses to compare other work.",
        TwoReports,
        _compare,
    ),
    Tool(
        "checklist",
        "Which techniques a run uses, which it does not though they apply, and what is "
        "not known.",
        OneReport,
        _checklist,
    ),
)
