"""A report's timeline for its view: windows, statistics, search, figure, export."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from msgspec import Struct
from tornado import web
from tornado.iostream import StreamClosedError

from warpbook.server.export import gather
from warpbook.server.rest import Handler
from warpbook.server.selection import encode
from warpbook.server.timelines import NoTimeline, Timelines

if TYPE_CHECKING:
    from warpbook_monitors.trace.timeline import Timeline

#: a window is asked for with a margin: three screens of pixels
MAX_STEPS = 12_000
_DEFAULT_STEPS = 2000
MAX_SEARCH_LENGTH = 200
#: whole nanoseconds, as exact as a browser's numbers
_TIME = re.compile(r"-?\d{1,16}")
_MAX_TIME_NS = 2**53


class TimelineHandler(Handler):
    """A request about one report's timeline."""

    def initialize(  # type: ignore[override]
        self, timelines: Timelines, **shared: Any
    ) -> None:
        """Take where timelines are kept."""
        super().initialize(**shared)
        self._timelines = timelines

    async def timeline(self, report_id: str) -> Timeline:
        """Find its timeline."""
        await self.kept_report(report_id)
        try:
            return await self._timelines.get(report_id)
        except NoTimeline as missing:
            raise web.HTTPError(404, str(missing)) from None

    async def answer(self, report_id: str, ask: Callable[[Timeline], Struct]) -> None:
        """Ask the timeline, off the event loop."""
        timeline = await self.timeline(report_id)
        self.finish_json(await asyncio.to_thread(lambda: encode(ask(timeline))))

    def moment_argument(self, name: str) -> int:
        """Read a time from the query, in ns from the run's start."""
        text = self.get_query_argument(name)
        if not _TIME.fullmatch(text) or abs(int(text)) > _MAX_TIME_NS:
            raise web.HTTPError(400, f"{name} is a whole number of nanoseconds.")
        return int(text)

    def part_arguments(self) -> tuple[int, int]:
        """Read a part of the run from the query."""
        from_ns, to_ns = self.moment_argument("from_ns"), self.moment_argument("to_ns")
        if from_ns >= to_ns:
            raise web.HTTPError(400, "from_ns must be before to_ns.")
        return from_ns, to_ns

    def text_argument(self, default: str | None = None) -> str:
        """Read from the query what is searched for."""
        text = (
            self.get_query_argument("text")
            if default is None
            else self.get_query_argument("text", default)
        )
        if len(text) > MAX_SEARCH_LENGTH:
            raise web.HTTPError(400, f"text may have {MAX_SEARCH_LENGTH} characters.")
        return text


class WindowHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline?from_ns=&to_ns=&steps=&text=`."""

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Show a part in bars; without one, all of it."""
        steps, text = self._steps(), self.text_argument("")
        if "from_ns" in self.request.arguments:
            from_ns, to_ns = self.part_arguments()
            await self.answer(
                report_id, lambda all_: all_.window(from_ns, to_ns, steps, text)
            )
        else:
            await self.answer(
                report_id,
                lambda all_: all_.window(
                    all_.first_ns, max(all_.last_ns, all_.first_ns + 1), steps, text
                ),
            )

    def _steps(self) -> int:
        text = self.get_query_argument("steps", str(_DEFAULT_STEPS))
        steps = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= steps <= MAX_STEPS:
            raise web.HTTPError(400, f"steps is a number from 1 to {MAX_STEPS}.")
        return steps


class StatisticsHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/statistics?from_ns=&to_ns=`."""

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Add a part up."""
        from_ns, to_ns = self.part_arguments()
        await self.answer(report_id, lambda all_: all_.statistics(from_ns, to_ns))


class SearchHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/search?text=&at_ns=&at_row=`."""

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Find names, and the matches next to a moment."""
        text, at_ns = self.text_argument(), self.moment_argument("at_ns")
        row = self.get_query_argument("at_row", "-1")
        if not re.fullmatch(r"-1|\d{1,4}", row, re.ASCII):
            raise web.HTTPError(400, "at_row is the number of a row, or -1.")
        await self.answer(report_id, lambda all_: all_.search(text, at_ns, int(row)))


class FigureHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/figure?theme=`."""

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Give the figure that the view fills with windows."""
        report = await self.kept_report(report_id)
        timeline = await self.timeline(report_id)

        def draw(theme: str) -> str:
            # bokeh must not be imported on the event loop
            from warpbook.figures.item import figure_item, link_time  # noqa: PLC0415
            from warpbook.figures.timeline import explorer  # noqa: PLC0415

            figure = explorer(tuple(timeline.rows), report.profile.wall_ms)
            link_time(figure, report.id)
            return figure_item(figure, theme)

        await self.finish_figure(draw)


class TraceHandler(TimelineHandler):
    """`GET api/v1/reports/<id>/timeline/export`: a Chrome trace."""

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Send all events in pieces, made off the event loop."""
        report = await self.kept_report(report_id)
        timeline = await self.timeline(report_id)
        from warpbook_monitors.trace.timeline_export import (  # noqa: PLC0415
            to_chrome_trace,
        )

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
