"""`POST /v1/reports/<id>/timeline` of the ingest: all events of a report's run."""

from __future__ import annotations

from warpbook.server.ingest.ingest_handler import IngestHandler
from warpbook.server.records.timelines import NoTimeline
from warpbook_profiler.model.timeline_answers import MAX_BODY_BYTES


class TimelineHandler(IngestHandler):
    """Takes a body larger than others may be.

    Cost: MAX_BODY_BYTES, and one timeline is made at a time.
    """

    max_body_bytes = MAX_BODY_BYTES

    async def post(self, report_id: str) -> None:
        """Keep the timeline, once it was found to be one."""
        if not await self.is_own(report_id):
            return
        try:
            unkept = await self.parts.timelines.add(report_id, bytes(self.body))
        except NoTimeline as missing:
            self.refuse(404, str(missing))
        except ValueError as wrong:
            self.refuse(400, f"Not a timeline: {wrong}")
        else:
            self.acknowledge(unkept)
