"""What is made of a report: its file, its checklist, its difference to another."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timezone
from pathlib import PurePosixPath

from jupyter_server.auth.decorator import authorized
from msgspec import Struct
from msgspec.structs import replace
from tornado import web

from warpbook.protocol import CellReport, Comparison
from warpbook.reports.page import report_page
from warpbook.server.past.history import Past
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import ReportId
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.view import view_of_checklist
from warpbook_profiler.compare.clocks import Clocks, clocks_of
from warpbook_profiler.compare.compare import compare
from warpbook_profiler.report.comparison_view import shown

#: what a header and every file system take as it is; the rest becomes "-"
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_NAME = 60


class ReportPageHandler(Handler):
    """Writes the file off the event loop.

    Cost: what the report holds, which is bounded where it comes in.
    """

    #: a browser may be sent here to save it
    may_be_opened = True

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        report = await self.kept_report(report_id)
        page = await asyncio.to_thread(_page, report)
        self.set_header(
            "Content-Disposition", f'attachment; filename="{file_name(report)}"'
        )
        self.finish(page, set_content_type="text/html; charset=utf-8")


def file_name(report: CellReport) -> str:
    """Name the file after the cell and when it ran, or after the trace file."""
    number = "" if report.execution_count is None else f"-{report.execution_count}"
    cell = f"{PurePosixPath(report.notebook or 'cell').stem}{number}"
    name = _OTHER.sub("-", report.file or cell)[:_MOST_NAME].strip("-.")
    return f"warpbook-{name or 'report'}-{_started(report):%Y%m%d-%H%M%S}.html"


def _started(report: CellReport) -> datetime:
    return datetime.fromtimestamp(report.started_ms / 1000, timezone.utc)


def _page(report: CellReport) -> bytes:
    when = f"{_started(report):%Y-%m-%d %H:%M:%S} UTC"
    origin = f"Trace file, saved {when}."
    if report.file is None:
        notebook = report.notebook or "a kernel without a notebook"
        number = report.execution_count
        cell = notebook if number is None else f"{notebook} [{number}]"
        origin = f"{cell}, {when}, status: {report.status}."
    page = report_page(
        report.profile,
        checklist_of(report),
        report.title,
        origin,
        report.notes,
        report.difference,
    )
    # a lone surrogate in a name can't be written
    return page.encode("utf-8", "replace")


class ChecklistHandler(Handler):
    """Answers off the event loop.

    Cost: some milliseconds where the kernel did not answer before.
    """

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        report = await self.kept_report(report_id)
        answers = await asyncio.to_thread(checklist_of, report)
        self.finish_json(encode(view_of_checklist(answers)))


def checklist_of(report: CellReport) -> Checklist:
    """Give what the kernel answered; else judge the profile, without its code."""
    # it needs numpy, which must not be imported on the event loop
    from warpbook_profiler.techniques.registry import checklist, questions

    answers = report.checklist
    if answers is None:
        return checklist(report.profile)
    # the kernel's warpbook may know other labs
    labs = {question.name: question.lab for question in questions()}
    lines = tuple(replace(line, lab=labs.get(line.name)) for line in answers.lines)
    return replace(answers, lines=lines)


class Difference(Struct, frozen=True):
    """Which report is the one before."""

    before: ReportId


class DifferenceHandler(Handler):
    """Compares, with the clocks that the history holds of both runs.

    Cost: two reports, bounded where they come in, and the held part of their spans.
    """

    query_type = Difference

    _past: Past

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Compare the one before with this one, in that order whenever they ran."""
        before = await self.kept_report(self.query(Difference).before)
        after = await self.kept_report(report_id)
        self.finish_json(encode(await difference_of(before, after, self._past)))


async def difference_of(
    before: CellReport, after: CellReport, past: Past
) -> Comparison:
    """Compare two reports as they are shown; off the event loop.

    Args:
        before: the run to compare with.
        after: the run that is judged.
        past: has the clocks of both.
    """
    clocks = (await _clocks(before, past), await _clocks(after, past))
    is_one_cell = before.cell_id is not None and before.cell_id == after.cell_id

    def compared() -> Comparison:
        # with repeats it needs numpy, which must not be imported on the event loop
        runs = before.profile, after.profile
        return shown(compare(*runs, clocks, is_one_cell=is_one_cell))

    return await asyncio.to_thread(compared)


async def _clocks(report: CellReport, past: Past) -> Clocks | None:
    """Ask how the GPUs ran meanwhile; None where nobody read them."""
    wanted = [f"gpu:{uuid}" for uuid in report.gpus]
    devices = {
        at: device
        for at, device in enumerate(past.broadcaster.devices)
        if device.id in wanted
    }
    if not devices or not report.started_ms < report.ended_ms:
        return None
    spans = await past.spans(report.started_ms, report.ended_ms, devices)
    return clocks_of(spans, wanted)
