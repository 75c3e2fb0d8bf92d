"""The cell reports that this server keeps for views opened later."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from warpbook.protocol import CellReport
from warpbook.reports.labs import LABS
from warpbook.server.records.record_forms import (
    check_report,
    decode_report,
    report_record,
)
from warpbook.server.records.records import Records
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_profiler.report.comparison_view import shown
from warpbook_profiler.report.profile_view import view_of

MAX_REPORTS = 50
#: each new view is sent all of them
MAX_TOTAL_BYTES = 8_000_000
#: of the archive, decoded, for a view that asks often about the same ones
_MOST_OLDER = 8
#: of trace files; a view whose report went has it read again
_MOST_FILES = 16


class Reports(StreamPart):
    """The newest reports by id, each with its bytes for the stream."""

    def __init__(self, records: Records | None = None) -> None:
        """Start with none; `records` has those before."""
        self._records = records or Records()
        self._kept: OrderedDict[str, tuple[CellReport, bytes]] = OrderedDict()
        self._older: OrderedDict[str, CellReport] = OrderedDict()
        self._of_files: OrderedDict[str, CellReport] = OrderedDict()

    async def take(self, report: CellReport) -> tuple[bytes, str]:
        """Put a report on disk, then keep it as `add` does.

        Returns:
            Its bytes, and why it is not on disk; empty where it is.
        """
        stored = encode(replace(report, view=None))
        unkept = await self._records.keep((report_record(report), stored))
        return self.add(report), unkept

    def add(self, report: CellReport) -> bytes:
        """Keep a report, in the place of one with the same id; give its bytes.

        What a kernel told before the end and comes after it is told no more.
        """
        kept = self._kept.get(report.id)
        if kept and report.status == "running" and kept[0].status != "running":
            return kept[1]
        report = _viewed(report)
        encoded = for_views(report)
        self._kept.pop(report.id, None)
        self._older.pop(report.id, None)
        self._kept[report.id] = (report, encoded)
        self._make_room()
        return encoded

    def add_of_file(self, report: CellReport) -> CellReport:
        """Keep a trace file's report for the view that has it open; give it whole.

        It is sent to no other view and not archived: the file itself is on disk.
        """
        report = self._of_files[report.id] = _viewed(report)
        self._of_files.move_to_end(report.id)
        while len(self._of_files) > _MOST_FILES:
            self._of_files.popitem(last=False)
        return report

    async def load(self) -> list[bytes]:
        """Take the newest that are on disk; give the bytes of those that are news.

        Raises:
            ArchiveError: they can't be read.
        """
        messages = await self._records.newest("report", MAX_REPORTS)
        reports = await asyncio.to_thread(_decoded, messages)
        news = [decoded for decoded in reports if decoded[0].id not in self._kept]
        present = list(self._kept.items())
        self._kept = OrderedDict((report.id, (report, body)) for report, body in news)
        self._kept.update(present)
        self._make_room()
        return [body for report, body in news if report.id in self._kept]

    def _make_room(self) -> None:
        while len(self._kept) > MAX_REPORTS or self._total_bytes > MAX_TOTAL_BYTES:
            self._kept.popitem(last=False)

    @property
    def _total_bytes(self) -> int:
        return sum(len(encoded) for _, encoded in self._kept.values())

    @property
    def kept(self) -> Iterator[CellReport]:
        """Give the reports of cells in memory, the newest first."""
        return (report for report, _ in reversed(self._kept.values()))

    def get(self, report_id: str) -> CellReport | None:
        """Find a report that is among the newest, or that of a file that was opened."""
        kept = self._kept.get(report_id)
        return kept[0] if kept else self._of_files.get(report_id)

    async def find(self, report_id: str) -> CellReport | None:
        """Find a report among the newest, of a file, or on disk.

        Raises:
            ArchiveError: it is not among the newest, and the disk can't be read.
        """
        report = self.get(report_id) or self._older.get(report_id)
        if report is not None:
            return report
        message = await self._records.message("report", report_id)
        if message is None:
            return None
        for older, _ in await asyncio.to_thread(_decoded, [message]):
            self._older[report_id] = older
            while len(self._older) > _MOST_OLDER:
                self._older.popitem(last=False)
            return older
        return None

    def greeting(self) -> Iterable[bytes]:
        return [encoded for _, encoded in self._kept.values()]


def _decoded(messages: Iterable[bytes]) -> list[tuple[CellReport, bytes]]:
    """Decode what can be: another version of warpbook may have written others."""
    decoded = []
    for message in messages:
        try:
            # an older version wrote fewer fields than a view looks for
            report = decode_report(message)
            check_report(report)
            report = _viewed(report)
        except (*UNREADABLE, ValueError, OverflowError):
            continue
        decoded.append((report, for_views(report)))
    return decoded


def for_views(report: CellReport) -> bytes:
    """Encode what each view is sent; few ask for the checklist, none for the rest."""
    profile = replace(report.profile, work=None, stalls=None)
    return encode(replace(report, profile=profile, checklist=None))


def _viewed(report: CellReport) -> CellReport:
    difference = report.difference
    if difference is not None:
        difference = shown(difference)
    return replace(report, view=view_of(report.profile, LABS), difference=difference)
