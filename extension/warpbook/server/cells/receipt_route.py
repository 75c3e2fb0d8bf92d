"""`GET api/v1/receipt`: what a cell cost that only a view knows about."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import PROTOCOL_VERSION, CellRun
from warpbook.server.cells.receipts import Receipts, check_times
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import Name, Span

_MAX_TEXT = 200


class ReceiptQuery(Span, frozen=True, kw_only=True):
    """The cell that a view knows; it may know no more than when it ran."""

    kernel_id: Name = ""
    cell_id: Name | None = None
    title: str = ""


class ReceiptHandler(Handler):
    """`?from_ms=&to_ms=&kernel_id=&cell_id=&title=`; the first two are needed.

    Cost: what is held of the span, in rows that fit a bound, on a thread.
    """

    query_type = ReceiptQuery

    _receipts: Receipts

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give the receipt that the kernel asked for, or else write one."""
        query = self.query(ReceiptQuery)
        run = CellRun(
            id=f"span-{query.from_ms:.0f}-{query.to_ms:.0f}",
            protocol=PROTOCOL_VERSION,
            kernel_id=query.kernel_id,
            notebook=None,
            cell_id=query.cell_id,
            execution_count=None,
            title=query.title[:_MAX_TEXT],
            started_ms=query.from_ms,
            ended_ms=query.to_ms,
            status="ok",
        )
        try:
            check_times(run)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        receipt = await self._receipts.find(run) or await self._receipts.make(run)
        self.finish_json(encode(receipt))
