"""`GET api/v1/reports/<id>/difference?before=OTHER`: two reports that one picks."""

from __future__ import annotations

import asyncio

from jupyter_server.auth.decorator import authorized
from msgspec import Struct
from tornado import web

from warpbook.protocol import CellReport, Comparison
from warpbook.server.past.history import Past
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import ReportId
from warpbook_profiler.compare.clocks import Clocks, clocks_of
from warpbook_profiler.compare.compare import compare
from warpbook_profiler.compare.likeness import LEAST_SCORE
from warpbook_profiler.report.comparison_view import shown


class Difference(Struct, frozen=True):
    """Which report is the one before, and whether other work is compared, too."""

    before: ReportId
    anyway: bool = False


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
        query = self.query(Difference)
        before = await self.kept_report(query.before)
        after = await self.kept_report(report_id)
        clocks = (await self._clocks(before), await self._clocks(after))
        anyway = query.anyway or _are_of_one_cell(before, after)

        def compared() -> Comparison:
            # with repeats it needs numpy, which must not be imported on the event loop
            least_score = 0.0 if anyway else LEAST_SCORE
            profiles = before.profile, after.profile
            return shown(compare(*profiles, clocks, least_score=least_score))

        self.finish_json(encode(await asyncio.to_thread(compared)))

    async def _clocks(self, report: CellReport) -> Clocks | None:
        """Ask how the GPUs ran meanwhile; None where nobody read them."""
        wanted = [f"gpu:{uuid}" for uuid in report.gpus]
        devices = {
            at: device
            for at, device in enumerate(self._broadcaster.devices)
            if device.id in wanted
        }
        if not devices or not report.started_ms < report.ended_ms:
            return None
        spans = await self._past.spans(report.started_ms, report.ended_ms, devices)
        return clocks_of(spans, wanted)


def _are_of_one_cell(one: CellReport, other: CellReport) -> bool:
    cell = (one.notebook, one.cell_id)
    return None not in cell and cell == (other.notebook, other.cell_id)
