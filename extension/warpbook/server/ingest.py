"""Where kernels hand in cell reports: HTTP on loopback, behind a secret.

The address and the secret are in the environment of the kernels that this server
starts. A kernel started elsewhere has neither, and says so to its user.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Any

import msgspec
from msgspec.json import Decoder
from tornado import httpserver, netutil, web

from warpbook._version import __version__
from warpbook.protocol import (
    ENV_INGEST_SECRET,
    ENV_INGEST_URL,
    MAX_REPORT_BYTES,
    PROTOCOL_VERSION,
    CellReport,
    CellRun,
    OutOfMemory,
    SpanStatistics,
)
from warpbook.server.broadcast import Broadcaster
from warpbook.server.history import Past
from warpbook.server.ingest_handler import IngestHandler
from warpbook.server.kernel_watch import KernelWatch, UnknownKernel
from warpbook.server.parameters import BadBody, Span, read_json
from warpbook.server.post_mortem import PostMortems
from warpbook.server.readiness import Readiness
from warpbook.server.receipts import MAX_CELL_BYTES, Receipts, check_times
from warpbook.server.reports import Reports
from warpbook.server.selection import encode
from warpbook.server.timeline_ingest import TimelineHandler
from warpbook.server.timelines import Timelines

#: how often it is looked whether all is answered
_LOOK_S = 0.02


class Ingest:
    """A small HTTP server beside Jupyter's own."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        reports: Reports,
        post_mortems: PostMortems,
        receipts: Receipts,
        watch: KernelWatch,
        past: Past,
        timelines: Timelines,
        readiness: Readiness,
    ) -> None:
        """Prepare it; nothing listens yet."""
        self._in_flight: set[IngestHandler] = set()
        self._secret = secrets.token_urlsafe(32)
        shared = {
            "secret": self._secret,
            "broadcaster": broadcaster,
            "reports": reports,
            "post_mortems": post_mortems,
            "receipts": receipts,
            "watch": watch,
        }
        application = web.Application(
            [
                ("/v1/version", _VersionHandler, shared),
                ("/v1/reports", _ReportHandler, {**shared, "timelines": timelines}),
                (
                    "/v1/reports/([A-Za-z0-9-]{1,64})/timeline",
                    TimelineHandler,
                    {**shared, "timelines": timelines},
                ),
                ("/v1/state", _StateHandler, shared),
                ("/v1/span", _SpanHandler, {**shared, "past": past}),
                ("/v1/out-of-memory", _OutOfMemoryHandler, shared),
                ("/v1/cells", _CellHandler, shared),
                ("/v1/watch", _WatchHandler, shared),
            ],
            log_function=_log_nothing,
            readiness=readiness,
            in_flight=self._in_flight,
        )
        # a little more than a report may be, so that a large one gets an answer
        self._server = httpserver.HTTPServer(
            application, max_body_size=4 * MAX_REPORT_BYTES
        )

    def start(self) -> None:
        """Listen, and tell the kernels to come where."""
        sockets = netutil.bind_sockets(0, "127.0.0.1")
        self._server.add_sockets(sockets)
        port = sockets[0].getsockname()[1]
        os.environ[ENV_INGEST_URL] = f"http://127.0.0.1:{port}"
        os.environ[ENV_INGEST_SECRET] = self._secret

    async def drain(self) -> None:
        """Listen no more, and wait until what is in flight is answered."""
        self._server.stop()
        while self._in_flight:
            await asyncio.sleep(_LOOK_S)

    def stop(self) -> None:
        """Listen no more."""
        self._server.stop()
        os.environ.pop(ENV_INGEST_URL, None)
        os.environ.pop(ENV_INGEST_SECRET, None)


class _ReportHandler(IngestHandler):
    """Takes a report, and tells every open view.

    Cost: MAX_REPORT_BYTES.
    """

    def initialize(  # type: ignore[override]
        self, timelines: Timelines, **shared: Any
    ) -> None:
        super().initialize(**shared)
        self._timelines = timelines

    async def post(self) -> None:
        body = self.request.body
        if len(body) > MAX_REPORT_BYTES:
            self.refuse(413, f"A report may have {MAX_REPORT_BYTES} bytes.")
            return
        try:
            if self.is_refused(body):
                return
            report = read_json(body, Decoder(CellReport))
            _check(report)
        except ValueError as error:
            self.refuse(400, f"Not a cell report: {error}")
            return
        if report.timeline_events is not None:
            self._timelines.expect(report.id)
        self._broadcaster.send_everyone(await self._reports.take(report))
        self.set_status(204)


class _OutOfMemoryHandler(IngestHandler):
    """Answers with who held what, and tells every open view.

    Cost: one look at the processes, and one row on disk.
    """

    async def post(self) -> None:
        try:
            if self.is_refused(self.request.body):
                return
            told = read_json(self.request.body, Decoder(OutOfMemory))
        except BadBody as error:
            self.refuse(400, f"Not a failed allocation: {error}")
            return
        self.set_header("Content-Type", "application/json")
        self.finish(encode(await self._post_mortems.write(told)))


class _CellHandler(IngestHandler):
    """Answers with the receipt of a cell that ran, and tells every open view.

    Cost: what is held of its span, in rows that fit a bound, on a thread.
    """

    async def post(self) -> None:
        body = self.request.body
        if len(body) > MAX_CELL_BYTES:
            self.refuse(413, f"A cell may have {MAX_CELL_BYTES} bytes.")
            return
        try:
            if self.is_refused(body):
                return
            run = read_json(body, Decoder(CellRun))
        except BadBody as error:
            self.refuse(400, f"Not a cell that ran: {error}")
            return
        try:
            check_times(run)
        except ValueError as error:
            self.refuse(422, str(error))
            return
        receipt = await self._receipts.take(run)
        self.set_header("Content-Type", "application/json")
        self.finish(encode(receipt))


class _WatchHandler(IngestHandler):
    """Has the GPUs read while `%gpuwatch` is on in a kernel.

    Cost: the list of kernels is looked through once.
    """

    async def post(self) -> None:
        body = self.request.body
        try:
            if self.is_refused(body):
                return
            asked = read_json(body, Decoder(_Watch))
        except BadBody as error:
            self.refuse(400, f"Not a kernel to watch: {error}")
            return
        try:
            if asked.on:
                await self._watch.turn_on(asked.kernel_id)
            else:
                self._watch.turn_off(asked.kernel_id)
        except UnknownKernel:
            self.refuse(
                422,
                "This server does not run that kernel, and could not tell when it "
                "ends. Start the kernel from this server.",
            )
            return
        self.set_status(204)


class _VersionHandler(IngestHandler):
    """Answers at once: it opens no GPU.

    Cost: nothing.
    """

    def get(self) -> None:
        self.finish({"protocol": PROTOCOL_VERSION, "version": __version__})


class _StateHandler(IngestHandler):
    """Answers with the newest frame.

    Cost: the sampler runs for five seconds, however many ask.
    """

    async def get(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(encode(await self._broadcaster.state()))


class _SpanHandler(IngestHandler):
    """What each device did in a span: `GET /v1/span?from_ms=&to_ms=`.

    Cost: what is held of the span, in rows that fit a bound, on a thread.
    """

    query_type = Span

    def initialize(  # type: ignore[override]
        self, past: Past, **shared: Any
    ) -> None:
        super().initialize(**shared)
        self._past = past

    async def get(self) -> None:
        from_ms, to_ms = self.query(Span).from_ms, self.query(Span).to_ms
        # no GPU is opened for it: what nobody read is not in the history either
        devices = dict(enumerate(self._broadcaster.devices))
        spans = await self._past.spans(from_ms, to_ms, devices)
        note = self._past.missing(from_ms, to_ms)
        self.set_header("Content-Type", "application/json")
        self.finish(encode(SpanStatistics(from_ms, to_ms, spans, note)))


class _Watch(msgspec.Struct, forbid_unknown_fields=True):
    protocol: int
    kernel_id: str
    on: bool


def _check(report: CellReport) -> None:
    """Refuse what the views could not draw."""
    names = len(report.profile.names)
    for lane in report.profile.lanes:
        if not len(lane.starts_ms) == len(lane.durations_ms) == len(lane.names):
            raise ValueError("A lane's columns differ in length.")
        if any(not 0 <= name < names for name in lane.names):
            raise ValueError("A lane names an event that there is not.")
    for curve in report.profile.memory_curves:
        columns = (curve.times_ms, curve.allocated_bytes, curve.reserved_bytes)
        if not len(columns[0]) == len(columns[1]) == len(columns[2]) > 0:
            raise ValueError("A memory curve's columns differ in length.")


def _log_nothing(handler: web.RequestHandler) -> None:
    """Kernels hand in reports often; the server's log is for its users."""
