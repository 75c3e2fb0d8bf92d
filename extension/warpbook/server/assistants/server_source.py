"""What tools ask, answered by the parts that answer the page, so with its figures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornado import web

from warpbook.lab_protocol import LabList
from warpbook.mcp.acting import Actor
from warpbook.mcp.lab_policy import allow_file
from warpbook.mcp.marked import Own
from warpbook.mcp.source import ToolError
from warpbook.protocol import (
    CellReport,
    ChecklistView,
    Comparison,
    KeptRecord,
    Receipt,
    StateNow,
)
from warpbook.server.cells.receipts import Receipts
from warpbook.server.labs.labs_routes import lab_list
from warpbook.server.past.history import Past
from warpbook.server.records.record_forms import receipt_record, report_record
from warpbook.server.records.records import Records
from warpbook.server.records.reports import Reports
from warpbook.server.reports.report_routes import checklist_of, difference_of
from warpbook.server.reports.trace_files import NoReport, TraceFiles
from warpbook.server.reports.trace_route import NoFiles
from warpbook.server.stream.broadcast import Broadcaster
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.records import Search
from warpbook_profiler.checklist.view import view_of_checklist

#: an assistant that asked asks again, and need not wait for GPUs that wake
_WATCH_S = 60.0

#: from a path as somebody names a file to its name in reports, and where it is
Find = Callable[[str], Awaitable[tuple[str, Path]]]


@dataclass(frozen=True)
class ServerParts:
    """The parts of a server that answer."""

    broadcaster: Broadcaster
    past: Past
    reports: Reports
    records: Records
    receipts: Receipts
    trace_files: TraceFiles


class ServerSource:
    """Answers one request of somebody who may read."""

    def __init__(
        self,
        parts: ServerParts,
        find: Find,
        base_url: str | None,
        name: Own,
        actor: Actor | None = None,
    ) -> None:
        """Take who answers.

        Args:
            parts: that read and keep.
            find: a trace file among those that may be read.
            base_url: of the server's pages; None where there are none.
            name: of what answers.
            actor: who acts; None where there are no pages.
        """
        self._parts = parts
        self._find = find
        self._base_url = base_url
        self.name = name
        self.actor = actor

    async def state(self) -> StateNow:
        state = await self._parts.broadcaster.state()
        self._parts.broadcaster.keep_awake(_WATCH_S)
        return state

    async def records(
        self, text: str, notebook: str | None, most: int
    ) -> tuple[Sequence[KeptRecord], str]:
        search = Search(
            text=text,
            notebook=notebook,
            kinds=("cell", "receipt", "report"),
            limit=most,
        )
        if not self._parts.records.is_on:
            return self._of_memory(search)
        with _refusals():
            found = await self._parts.records.find(search)
        return found.records, "There are older ones." if found.has_more else ""

    def _of_memory(self, search: Search) -> tuple[Sequence[KeptRecord], str]:
        """List what is held where nothing is kept on disk."""
        is_replay = self._parts.broadcaster.sampler.replay is not None
        held = [
            *(receipt_record(it, is_replay) for it in self._parts.receipts.kept),
            *(report_record(it) for it in self._parts.reports.kept),
        ]
        words = search.text.lower().split()
        matching = [
            record
            for record in sorted(held, key=lambda one: -one.started_ms)
            if search.notebook in (None, record.notebook)
            and all(
                word in f"{record.title} {record.notebook} {record.sentence}".lower()
                for word in words
            )
        ]
        why = "Nothing is kept on disk here (WarpbookApp.archive is off): only the "
        return matching[: search.limit], f"{why}newest are known."

    async def newest_report(self) -> CellReport:
        for report in self._parts.reports.kept:
            return report
        raise ToolError(
            "There is no report: have the person put %%gpuprof on the first line of a "
            "cell and run it, or name a trace file."
        )

    async def report(self, report_id: str) -> CellReport:
        with _refusals():
            report = await self._parts.reports.find(report_id)
        if report is None:
            raise ToolError(
                "No report of this id is kept; cells lists those that are, with their "
                "ids."
            )
        return report

    async def receipt(self, receipt_id: str) -> Receipt | None:
        for receipt in self._parts.receipts.kept:
            if receipt.cell.id == receipt_id:
                return receipt
        with _refusals():
            return await self._parts.receipts.find_kept(receipt_id)

    async def trace(self, path: str) -> CellReport:
        with _refusals():
            name, file = await self._find(path)
            # where it is: a path may go up, or by a link
            await allow_file(str(await asyncio.to_thread(file.resolve)))
            return await self._parts.trace_files.report(name, file)

    async def checklist(self, report: CellReport) -> ChecklistView:
        answers = await asyncio.to_thread(checklist_of, report)
        return view_of_checklist(answers)

    async def difference(self, before: CellReport, after: CellReport) -> Comparison:
        return await difference_of(before, after, self._parts.past)

    async def labs(self) -> LabList:
        with _refusals():
            return await lab_list(self._parts.broadcaster)

    def place(self, report: CellReport) -> dict[str, object]:
        place: dict[str, object] = {"id": Own(report.id)}
        if self._base_url is not None:
            place["in_jupyterlab"] = Own(
                "the report of this title on warpbook's dashboard"
            )
            route = f"warpbook/api/v1/reports/{report.id}/page"
            place["as_a_file"] = Own(f"{self._base_url}{route}")
        return place


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Raise as words what routes answer with a status."""
    try:
        yield
    except web.HTTPError as refusal:
        words = refusal.log_message or "There is no such file."
        raise ToolError("That can't be given:", words) from None
    except ArchiveError as problem:
        raise ToolError("The archive can't be read now:", str(problem)) from None
    except (NoFiles, NoReport) as problem:
        raise ToolError("There is no report of it:", str(problem)) from None
