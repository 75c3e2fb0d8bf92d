"""`GET api/v1/receipt`: what a cell cost that only a view knows about."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import PROTOCOL_VERSION, CellRun
from warpbook.server.broadcast import Broadcaster
from warpbook.server.receipts import Receipts, check_times
from warpbook.server.reports import Reports
from warpbook.server.rest import Handler
from warpbook.server.selection import encode

_MAX_TEXT = 200


class ReceiptHandler(Handler):
    """`?from_ms=&to_ms=&kernel_id=&cell_id=&title=`; the first two are needed."""

    def initialize(  # type: ignore[override]
        self, broadcaster: Broadcaster, reports: Reports, receipts: Receipts
    ) -> None:
        """Take who writes receipts."""
        super().initialize(broadcaster, reports)
        self._receipts = receipts

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give the receipt that the kernel asked for, or else write one."""
        from_ms, to_ms = self.span_arguments()
        run = CellRun(
            id=f"span-{from_ms:.0f}-{to_ms:.0f}",
            protocol=PROTOCOL_VERSION,
            kernel_id=self._text("kernel_id") or "",
            notebook=None,
            cell_id=self._text("cell_id"),
            execution_count=None,
            title=self._text("title") or "",
            started_ms=from_ms,
            ended_ms=to_ms,
            status="ok",
        )
        try:
            check_times(run)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        receipt = await self._receipts.find(run) or await self._receipts.make(run)
        self.finish_json(encode(receipt))

    def _text(self, name: str) -> str | None:
        text = self.get_query_argument(name, None)
        return None if text is None else text[:_MAX_TEXT]
