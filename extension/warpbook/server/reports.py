"""The cell reports that this server keeps for views opened later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from warpbook.protocol import CellReport
from warpbook.server.selection import encode

MAX_REPORTS = 50
#: each new view is sent all of them
MAX_TOTAL_BYTES = 8_000_000


class Reports:
    """The newest reports by id, each with its bytes for the stream."""

    def __init__(self) -> None:
        """Start with none."""
        self._kept: OrderedDict[str, tuple[CellReport, bytes]] = OrderedDict()

    def add(self, report: CellReport) -> bytes:
        """Keep a report, in the place of one with the same id; give its bytes.

        What a kernel told before the end and comes after it is told no more.
        """
        kept = self._kept.get(report.id)
        if kept and report.status == "running" and kept[0].status != "running":
            return kept[1]
        encoded = encode(report)
        self._kept.pop(report.id, None)
        self._kept[report.id] = (report, encoded)
        while len(self._kept) > MAX_REPORTS or self._total_bytes > MAX_TOTAL_BYTES:
            self._kept.popitem(last=False)
        return encoded

    @property
    def _total_bytes(self) -> int:
        return sum(len(encoded) for _, encoded in self._kept.values())

    def get(self, report_id: str) -> CellReport | None:
        """Find a report that is still kept."""
        kept = self._kept.get(report_id)
        return kept[0] if kept else None

    def encoded(self) -> Iterable[bytes]:
        """Give all reports, oldest first."""
        return [encoded for _, encoded in self._kept.values()]
