"""`POST /v1/reports/<id>/timeline` of the ingest: all events of a report's run."""

from __future__ import annotations

from typing import Any

from tornado import web

from warpbook.server.ingest_handler import IngestHandler
from warpbook.server.timelines import NoTimeline, Timelines
from warpbook_monitors.trace.timeline_answers import MAX_BODY_BYTES


@web.stream_request_body
class TimelineHandler(IngestHandler):
    """Takes a body larger than others may be, once the secret was right.

    Cost: MAX_BODY_BYTES, and one timeline is made at a time.
    """

    def initialize(  # type: ignore[override]
        self, timelines: Timelines, **shared: Any
    ) -> None:
        """Take where timelines are kept."""
        super().initialize(**shared)
        self._timelines = timelines
        self._body = bytearray()

    def prepare(self) -> None:
        """Look at the secret before the body comes."""
        super().prepare()
        told = self.request.headers.get("Content-Length", "")
        if not told.isdigit() or int(told) > MAX_BODY_BYTES:
            raise web.HTTPError(
                413, reason=f"A timeline may have {MAX_BODY_BYTES} bytes."
            )
        connection: Any = self.request.connection
        connection.set_max_body_size(MAX_BODY_BYTES)

    def data_received(self, chunk: bytes) -> None:
        """Gather the body."""
        self._body += chunk

    async def post(self, report_id: str) -> None:
        """Keep the timeline, once it was found to be one."""
        try:
            await self._timelines.add(report_id, bytes(self._body))
        except NoTimeline as missing:
            self.refuse(404, str(missing))
        except ValueError as wrong:
            self.refuse(400, f"Not a timeline: {wrong}")
        else:
            self.set_status(204)
