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
from warpbook_profiler.report.comparison_view import shown


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
