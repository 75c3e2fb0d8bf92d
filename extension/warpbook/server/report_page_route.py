"""`GET api/v1/reports/<id>/page`: a report as one HTML file to keep or to send."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import CellReport
from warpbook.reports.page import report_page
from warpbook.server.parameters import NoQuery
from warpbook.server.rest import Handler


class ReportPageHandler(Handler):
    """Writes the file off the event loop.

    Cost: what the report holds, which is bounded where it comes in.
    """

    query_type = NoQuery
    #: a browser may be sent here to save it
    may_be_opened = True

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Give the file."""
        report = await self.kept_report(report_id)
        page = await asyncio.to_thread(_page, report)
        self.set_header(
            "Content-Disposition", 'attachment; filename="warpbook-report.html"'
        )
        self.finish(page, set_content_type="text/html; charset=utf-8")


def _page(report: CellReport) -> bytes:
    started = datetime.fromtimestamp(report.started_ms / 1000, timezone.utc)
    when = f"{started:%Y-%m-%d %H:%M:%S} UTC"
    origin = f"Trace file, saved {when}."
    if report.file is None:
        notebook = report.notebook or "a kernel without a notebook"
        number = report.execution_count
        cell = notebook if number is None else f"{notebook} [{number}]"
        origin = f"{cell}, {when}, status: {report.status}."
    page = report_page(report.profile, report.title, origin, report.notes)
    # a lone surrogate in a name can't be written
    return page.encode("utf-8", "replace")
