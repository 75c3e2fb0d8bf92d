"""`GET api/v1/reports/<id>/page`: a report as one HTML file to keep or to send."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timezone
from pathlib import PurePosixPath

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import CellReport
from warpbook.reports.page import report_page
from warpbook.server.records.rest import Handler
from warpbook.server.reports.checklist_route import checklist_of

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
