"""`GET api/v1/reports/<id>/checklist`: a report's checklist, for who opens it."""

from __future__ import annotations

import asyncio

from jupyter_server.auth.decorator import authorized
from msgspec.structs import replace
from tornado import web

from warpbook.protocol import CellReport
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.view import view_of_checklist


class ChecklistHandler(Handler):
    """Answers off the event loop.

    Cost: some milliseconds where the kernel did not answer before.
    """

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Give the answers by what they are."""
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
