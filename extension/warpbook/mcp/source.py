"""Where tools have their answers from: a Jupyter server, or this machine alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from warpbook.lab_protocol import LabList
from warpbook.mcp.acting import Actor
from warpbook.mcp.marked import Own, mark
from warpbook.protocol import (
    CellReport,
    ChecklistView,
    Comparison,
    KeptRecord,
    Receipt,
    StateNow,
)

_MOST_QUOTED = 400


class ToolError(Exception):
    """A tool can't answer; the message says what to do."""

    def __init__(self, words: str, quoted: str = "") -> None:
        """Say why, in words of our own, and quote what somebody else's say."""
        said = f" {mark(quoted, _MOST_QUOTED)}" if quoted else ""
        super().__init__(f"{words}{said}")


class Source(Protocol):
    """What tools may ask; all of it but what the `actor` does only reads.

    Each raises `ToolError` where it can't answer.
    """

    @property
    def name(self) -> Own:
        """What answers: the Jupyter server, or this machine."""

    @property
    def actor(self) -> Actor | None:
        """Who acts, with the person's consent; None where there are no pages."""

    async def state(self) -> StateNow:
        """Read the GPUs now, also while cells run."""

    async def records(
        self, text: str, notebook: str | None, most: int
    ) -> tuple[Sequence[KeptRecord], str]:
        """Give the newest cells, receipts and reports, and why there may be more."""

    async def newest_report(self) -> CellReport:
        """Give the report that began last."""

    async def report(self, report_id: str) -> CellReport:
        """Give a report by its id."""

    async def receipt(self, receipt_id: str) -> Receipt | None:
        """Give the receipt of a cell; None where there is none of this id."""

    async def trace(self, path: str) -> CellReport:
        """Give the report of a trace file, among those that may be read."""

    async def checklist(self, report: CellReport) -> ChecklistView:
        """Answer the questions of the checklist."""

    async def difference(self, before: CellReport, after: CellReport) -> Comparison:
        """Compare two runs."""

    async def labs(self) -> LabList:
        """List the labs, with how far the person is."""

    def place(self, report: CellReport) -> dict[str, object]:
        """Say how a person finds a report."""
