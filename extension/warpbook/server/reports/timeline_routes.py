"""A report's timeline for its view: windows, statistics, search, export."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from jupyter_server.auth.decorator import authorized
from msgspec import Meta, Struct
from tornado import web
from tornado.iostream import StreamClosedError

from warpbook.server.past.history_route import gather
from warpbook.server.records.rest import Handler
from warpbook.server.records.timelines import NoTimeline, Timelines
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import RunNs, Text

if TYPE_CHECKING:
    from warpbook_profiler.timeline.timeline import Timeline

#: a window is asked for with a margin: three screens of pixels
MAX_STEPS = 12_000


class TimelineHandler(Handler):
    """A request about one report's timeline."""

    _timelines: Timelines

    async def timeline(self, report_id: str) -> Timeline:
        await self.kept_report(report_id)
        try:
            return await self._timelines.get(report_id)
        except NoTimeline as missing:
            raise web.HTTPError(404, str(missing)) from None

    async def answer(self, report_id: str, ask: Callable[[Timeline], Struct]) -> None:
        """Ask the timeline, off the event loop."""
        timeline = await self.timeline(report_id)
        self.finish_json(await asyncio.to_thread(lambda: encode(ask(timeline))))


class Part(Struct, frozen=True):
    """A part of a run."""

    from_ns: RunNs
    to_ns: RunNs

    def __post_init__(self) -> None:
        """Refuse a part that ends before it begins.

        Raises:
            ValueError: it does.
        """
        if not self.from_ns < self.to_ns:
            raise ValueError("from_ns must be before to_ns")


class Window(Struct, frozen=True):
    """A part, or without one all of the run, in steps."""

    from_ns: RunNs | None = None
    to_ns: RunNs | None = None
    steps: Annotated[int, Meta(ge=1, le=MAX_STEPS)] = 2000
    text: Text = ""

    def __post_init__(self) -> None:
        """Refuse a part that has one end only, or ends before it begins.

        Raises:
            ValueError: it does.
        """
        if (self.from_ns is None) != (self.to_ns is None):
            raise ValueError("from_ns and to_ns come together")
        if self.part is not None:
            Part(*self.part)

    @property
    def part(self) -> tuple[int, int] | None:
        """The part; None is all of the run."""
        if self.from_ns is None or self.to_ns is None:
            return None
        return self.from_ns, self.to_ns


class Search(Struct, frozen=True):
    """A text, and the moment next to which matches are wanted."""

    text: Text
    at_ns: RunNs
    #: -1 is no row
    at_row: Annotated[int, Meta(ge=-1, le=9999)] = -1


class Event(Struct, frozen=True):
    """An event, by its row and its start."""

    row: Annotated[int, Meta(ge=0, le=9999)]
    start_ns: RunNs


class WindowHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline?from_ns=&to_ns=&steps=&text=`.

    Cost: at most 12,000 bars a row, of 64 rows.
    """

    query_type = Window

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Show a part in bars; without one, all of it."""
        query = self.query(Window)

        def window(timeline: Timeline) -> Struct:
            first_ns = timeline.first_ns
            all_ = first_ns, max(timeline.last_ns, first_ns + 1)
            return timeline.window(*(query.part or all_), query.steps, query.text)

        await self.answer(report_id, window)


class StatisticsHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/statistics?from_ns=&to_ns=`.

    Cost: the events of one run, of which there are at most 2,000,000.
    """

    query_type = Part

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        part = self.query(Part)
        await self.answer(
            report_id, lambda all_: all_.statistics(part.from_ns, part.to_ns)
        )


class SearchHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/search?text=&at_ns=&at_row=`.

    Cost: the names of one run, of which there are at most 100,000.
    """

    query_type = Search

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Find names, and the matches next to a moment."""
        query = self.query(Search)
        await self.answer(
            report_id, lambda all_: all_.search(query.text, query.at_ns, query.at_row)
        )


class EventHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/event?row=&start_ns=`.

    Cost: a column of one run, once for each event that is linked, of at most 21.
    """

    query_type = Event

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        query = self.query(Event)

        def details(timeline: Timeline) -> Struct:
            answer = timeline.details(query.row, query.start_ns)
            if answer is None:
                raise web.HTTPError(404, "No event of this row starts then.")
            return answer

        await self.answer(report_id, details)


class TraceHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/export`: a Chrome trace.

    Cost: the events of one run, in pieces, as fast as they are taken.
    """

    may_be_opened = True

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Send all events in pieces, made off the event loop."""
        report = await self.kept_report(report_id)
        timeline = await self.timeline(report_id)
        from warpbook_profiler.timeline.timeline_export import to_chrome_trace

        pieces = to_chrome_trace(timeline, report.title)
        self.set_header("Content-Type", "application/json")
        self.set_header(
            "Content-Disposition", 'attachment; filename="warpbook.trace.json"'
        )
        # whoever asked may have gone
        with contextlib.suppress(StreamClosedError):
            while piece := await asyncio.to_thread(gather, pieces):
                self.write(piece)
                await self.flush()
