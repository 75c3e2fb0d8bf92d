"""The timelines that this server keeps: all events of the newest reports.

They come after their reports, as one large binary message each, and are made ready on
a thread. numpy must not be imported on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from warpbook.server.records.records import Records
from warpbook.server.records.reports import Reports
from warpbook_monitors.archive.errors import ArchiveError

if TYPE_CHECKING:
    from warpbook_profiler.timeline.timeline import Timeline

#: of all timelines together, in memory; a million events take 45
MAX_MEGABYTES = 256
#: so long after its report whoever asks waits for a timeline
_EXPECTED_S = 20.0


class NoTimeline(Exception):
    """Why a report has no timeline here, for a person."""


class Timelines:
    """Timelines by the id of their report, up to a bound; for the event loop."""

    def __init__(
        self, reports: Reports, max_bytes: int, records: Records | None = None
    ) -> None:
        """Start with none; `records` has those before."""
        self._reports = reports
        self._records = records or Records()
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, Timeline] = OrderedDict()
        #: until when a timeline is expected, and whom to tell when it is there
        self._expected: dict[str, tuple[float, asyncio.Event]] = {}
        # one at a time: each takes some memory while it is made
        self._making = asyncio.Lock()

    def expect(self, report_id: str) -> None:
        """Hear that a report's events will be handed over."""
        now_s = time.monotonic()
        self._expected = {
            other: (until_s, came)
            for other, (until_s, came) in self._expected.items()
            if until_s > now_s
        }
        self._expected[report_id] = now_s + _EXPECTED_S, asyncio.Event()

    async def add_of_file(self, report_id: str, body: bytes) -> None:
        """Keep the events of a trace file whose report is kept; not on disk.

        Raises:
            ValueError: they can't be used.
        """
        async with self._making:
            made = await asyncio.to_thread(_make, body)
        self._keep(report_id, made)

    async def add(self, report_id: str, body: bytes) -> str:
        """Make a timeline and keep it; the oldest make room.

        Returns:
            Why it is not on disk; empty where it is.

        Raises:
            NoTimeline: there is no such report.
            ValueError: the message can't be used.
        """
        if self._reports.get(report_id) is None:
            raise NoTimeline("There is no such report: hand it in first.")

        try:
            async with self._making:
                made = await asyncio.to_thread(_make, body)
            self._keep(report_id, made)
        finally:
            _, came = self._expected.pop(report_id, (0.0, None))
            if came is not None:
                came.set()
        return await self._records.keep_timeline(report_id, body)

    def _keep(self, report_id: str, timeline: Timeline) -> None:
        self._kept.pop(report_id, None)
        self._kept[report_id] = timeline
        if not self._records.is_on:
            # its report can't be found any more
            for old in [old for old in self._kept if self._reports.get(old) is None]:
                del self._kept[old]
        while self._total_bytes > self._max_bytes:
            self._kept.popitem(last=False)

    @property
    def _total_bytes(self) -> int:
        return sum(timeline.size_bytes for timeline in self._kept.values())

    def has(self, report_id: str) -> bool:
        return report_id in self._kept

    async def get(self, report_id: str) -> Timeline:
        """Give the timeline of a report; one that is on its way is waited for.

        Raises:
            NoTimeline: it is not here.
        """
        until_s, came = self._expected.get(report_id, (0.0, None))
        if came is not None:
            try:
                await asyncio.wait_for(came.wait(), max(until_s - time.monotonic(), 0))
            except asyncio.TimeoutError:
                self._expected.pop(report_id, None)
        timeline = self._kept.get(report_id) or await self._from_disk(report_id)
        if timeline is None:
            raise NoTimeline(
                "This server does not have all events of this report: they are handed "
                f"over right after it, and beyond {self._max_bytes >> 20} MiB of all "
                "reports the oldest are dropped. Run the cell, or open the file, again."
            )
        return timeline

    async def _from_disk(self, report_id: str) -> Timeline | None:
        """Make a timeline of what is on disk; None where it is not there."""
        async with self._making:
            # another view may have asked for it meanwhile
            if report_id in self._kept:
                return self._kept[report_id]
            try:
                body = await self._records.timeline(report_id)
                if body is None:
                    return None
                timeline = await asyncio.to_thread(_make, body)
            except ArchiveError as problem:
                raise NoTimeline(str(problem)) from None
            except ValueError:
                # damaged, or of another version of warpbook
                return None
            self._keep(report_id, timeline)
            return timeline


def _make(body: bytes) -> Timeline:
    # numpy must not be imported on the event loop
    from warpbook_profiler.timeline.timeline import Timeline
    from warpbook_profiler.timeline.timeline_body import unpack

    return Timeline(unpack(body))
