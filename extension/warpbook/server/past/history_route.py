"""`GET api/v1/history/...`: a span's statistics, its figure, a long time in steps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Annotated, Literal

from jupyter_server.auth.decorator import authorized
from msgspec import Meta, Struct
from tornado import web
from tornado.iostream import StreamClosedError

from warpbook.protocol import Detail, DetailColumn, Device, SpanStatistics
from warpbook.server.past.history import Past
from warpbook.server.past.span_figures import span_view
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import Name, NameList, Span, Theme, UnixMs
from warpbook_monitors.history.export import to_chrome_trace, to_csv, to_jsonl
from warpbook_monitors.history.seconds import SECOND_MS
from warpbook_monitors.recordings.recording import MAX_TIME_MS
from warpbook_monitors.spreadsheet import MARK

#: of a detail: more than any chart has pixels
MAX_STEPS = 4000
_MOST_FIGURE_ROWS = 3000


class PastHandler(Handler):
    """A request about the past of some devices."""

    _past: Past


class SpanHandler(PastHandler):
    """`GET api/v1/history/span?from_ms=&to_ms=`.

    Cost: what is held of the span, in rows that fit a bound, on a thread.
    """

    query_type = Span

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give each device's statistics over a span."""
        await self._broadcaster.ready()
        span = self.query(Span)
        devices = dict(enumerate(self._broadcaster.devices))
        spans = await self._past.spans(span.from_ms, span.to_ms, devices)
        note = self._past.missing(span.from_ms, span.to_ms)
        views = tuple(map(span_view, devices.values(), spans))
        answer = SpanStatistics(span.from_ms, span.to_ms, spans, note, views)
        self.finish_json(encode(answer))


class HistoryFigure(Span, frozen=True, kw_only=True):
    """The query of a figure of the history."""

    device: Name
    theme: Theme = "light"


class HistoryFigureHandler(PastHandler):
    """`GET api/v1/history/figure?device=ID&from_ms=&to_ms=&theme=`.

    Cost: at most some 3,000 rows of the held part of the span, one figure at a time.
    """

    query_type = HistoryFigure

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Draw one device's history in a span of time."""
        await self._broadcaster.ready()
        query = self.query(HistoryFigure)
        from_ms, to_ms = self._past.clamped(query.from_ms, query.to_ms)
        position, device = self.device(query.device)
        replay = self._broadcaster.sampler.replay
        step_ms = (to_ms - from_ms) / _MOST_FIGURE_ROWS
        read = self._past.reader(from_ms, to_ms, {position: device}, step_ms=step_ms)

        def draw(theme: str) -> str:
            # bokeh must not be imported on the event loop
            from warpbook.figures.history import history_item

            label = replay.name if replay and device.origin == "replay" else None
            return history_item(device, read()[position], theme, label)

        await self.finish_figure(draw, query.theme)


class DetailQuery(Span, frozen=True, kw_only=True):
    """The query of a long time in steps."""

    device: Name
    metrics: NameList
    steps: Annotated[int, Meta(ge=1, le=MAX_STEPS)] = 600


class DetailHandler(PastHandler):
    """`GET api/v1/history/detail?device=&metrics=a,b&from_ms=&to_ms=&steps=`.

    Cost: what is held of the span, in rows that fit a bound, into at most 4,000 steps.
    """

    query_type = DetailQuery

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give some metrics of a device in at most as many steps as asked for."""
        await self._broadcaster.ready()
        query = self.query(DetailQuery)
        position, device = self.device(query.device)
        columns = _columns(device, query.metrics)
        from_ms, to_ms = query.from_ms, query.to_ms
        step_ms = (to_ms - from_ms) / query.steps
        row_ms = self._past.row_ms(from_ms, to_ms, len(columns), step_ms)
        if row_ms:
            # nothing finer is at hand, and a step holds whole rows
            step_ms = math.ceil(step_ms / row_ms) * row_ms
            from_ms = math.floor(from_ms / row_ms) * row_ms
        count = min(math.ceil((to_ms - from_ms) / step_ms), MAX_STEPS)
        # a reading stands for the time before it: the first may end in the first step
        read = self._past.reader(
            from_ms,
            to_ms + max(row_ms, SECOND_MS),
            {position: device},
            list(columns.values()),
            step_ms,
        )

        def tell() -> bytes:
            # numpy must not be imported on the event loop
            from warpbook_monitors.history.detail import in_steps, rounded

            chosen = range(len(columns))
            steps = in_steps(read()[position], chosen, from_ms, step_ms, count)
            tables = [rounded(table) for table in (steps.least, steps.mean, steps.most)]
            columns_read = {
                name: DetailColumn(*(tuple(table[at]) for table in tables))
                for at, name in enumerate(columns)
            }
            return encode(Detail(device.id, from_ms, step_ms, columns_read))

        self.finish_json(await asyncio.to_thread(tell))


def _columns(device: Device, names: str) -> dict[str, int]:
    """By name, the place of each metric that is asked for."""
    places = {metric.name: at for at, metric in enumerate(device.metrics)}
    chosen = dict.fromkeys(names.split(","))
    for name in chosen:
        if name not in places:
            raise web.HTTPError(400, f"{device.id} has no metric {name[:80]!r}.")
    return {name: places[name] for name in chosen}


#: by `format`: the ending of the file's name, and its type
_FORMATS = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "jsonl": ("jsonl", "application/jsonl"),
    "chrome": ("trace.json", "application/json"),
}
_PIECE_BYTES = 1 << 18


class Export(Struct, frozen=True):
    """What is exported: without times, all that is held."""

    format: Literal["csv", "jsonl", "chrome"]
    from_ms: UnixMs = 0.0
    to_ms: UnixMs = MAX_TIME_MS


class ExportHandler(PastHandler):
    """Sends the file in pieces, made off the event loop.

    Cost: five minutes of the stream in memory at a time, as fast as they are taken.
    """

    query_type = Export
    may_be_opened = True

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Export what the history holds of a span; without one, all of it."""
        query = self.query(Export)
        await self._broadcaster.ready()
        pieces = self._pieces(query)
        ending, kind = _FORMATS[query.format]
        self.set_header("Content-Type", kind)
        self.set_header(
            "Content-Disposition", f'attachment; filename="warpbook-history.{ending}"'
        )
        # whoever asked may have gone
        with contextlib.suppress(StreamClosedError):
            while piece := await asyncio.to_thread(gather, pieces):
                self.write(piece)
                await self.flush()

    def _pieces(self, export: Export) -> Iterator[bytes]:
        # unpacked piece by piece: an hour of eight GPUs is more than 100 MB of text
        messages = self._past.messages(export.from_ms, export.to_ms)
        if export.format == "csv":
            rows = to_csv(self._broadcaster.devices, messages)
            return itertools.chain([MARK.encode()], rows)
        if export.format == "chrome":
            return to_chrome_trace(self._broadcaster.devices, messages)
        return to_jsonl(self._broadcaster.hello(), messages)


def gather(pieces: Iterator[bytes]) -> bytes:
    """Take pieces until there is enough to send."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= _PIECE_BYTES:
            break
    return bytes(gathered)
