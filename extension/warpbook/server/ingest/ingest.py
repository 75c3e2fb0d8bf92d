"""Where kernels hand in cell reports: HTTP on loopback, behind a secret.

The address and the secret are in the environment of the kernels that this server
starts. A kernel started elsewhere has neither, and says so to its user.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.json import Decoder
from tornado import netutil, web

from warpbook.guarded_server import GuardedServer
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
from warpbook.server.cells.receipts import MAX_CELL_BYTES, NotYours, check_times
from warpbook.server.ingest.ingest_handler import IngestHandler, IngestParts
from warpbook.server.records.record_forms import check_report
from warpbook.server.records.timelines import NoTimeline
from warpbook.server.stream.kernel_watch import UnknownKernel
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import Span
from warpbook_monitors._version import __version__
from warpbook_profiler.model.timeline_answers import MAX_BODY_BYTES

_REPORT = Decoder(CellReport)
_OUT_OF_MEMORY = Decoder(OutOfMemory)
_CELL = Decoder(CellRun)

#: how often it is looked whether all is answered
_LOOK_S = 0.02
#: more than one for each kernel that a person may have
_MOST_CONNECTIONS = 256


class Ingest:
    """A small HTTP server beside Jupyter's own."""

    def __init__(self, parts: IngestParts) -> None:
        self._parts = parts
        self._url = ""
        shared = {"parts": parts}
        application = web.Application(
            [
                ("/v1/version", _VersionHandler, shared),
                ("/v1/reports", _ReportHandler, shared),
                ("/v1/reports/([A-Za-z0-9-]{1,64})/timeline", TimelineHandler, shared),
                ("/v1/state", _StateHandler, shared),
                ("/v1/span", _SpanHandler, shared),
                ("/v1/out-of-memory", _OutOfMemoryHandler, shared),
                ("/v1/cells", _CellHandler, shared),
                ("/v1/watch", _WatchHandler, shared),
            ],
            log_function=_log_nothing,
        )
        self._server = GuardedServer(application, most=_MOST_CONNECTIONS)

    def start(self) -> None:
        sockets = netutil.bind_sockets(0, "127.0.0.1")
        self._server.add_sockets(sockets)
        self._url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"

    def environment(self, kernel_id: str) -> dict[str, str]:
        """What a kernel needs to hand in its reports."""
        return {
            ENV_INGEST_URL: self._url,
            ENV_INGEST_SECRET: self._parts.credentials.of(kernel_id),
        }

    async def drain(self) -> None:
        """Listen no more, and wait until what is in flight is answered."""
        self._server.stop()
        while self._parts.in_flight:
            await asyncio.sleep(_LOOK_S)

    def stop(self) -> None:
        self._server.stop()


class _ReportHandler(IngestHandler):
    """Takes a report, and tells every open view.

    Cost: MAX_REPORT_BYTES, and one row on disk.
    """

    max_body_bytes = MAX_REPORT_BYTES

    async def post(self) -> None:
        report = self.read(_REPORT, "a cell report")
        if report is None:
            return
        try:
            if report.file is not None:
                raise ValueError("A kernel's report is of a cell and of no file.")
            check_report(report)
        except ValueError as error:
            self.refuse(400, f"Not a cell report: {error}")
            return
        reports, timelines = self.parts.reports, self.parts.timelines
        if not await self.is_own(report.id):
            return
        if report.timeline_events is not None:
            timelines.expect(report.id)
        try:
            encoded, unkept = await reports.take(report)
        except OverflowError:
            self.refuse(400, "Not a cell report: a time in it is no time.")
            return
        self.parts.broadcaster.viewers.send_everyone(encoded)
        self.acknowledge(unkept)


class _OutOfMemoryHandler(IngestHandler):
    """Answers with who held what, and tells every open view.

    Cost: one look at the processes, and one row on disk.
    """

    max_body_bytes = MAX_CELL_BYTES

    async def post(self) -> None:
        failure = self.read(_OUT_OF_MEMORY, "a failed allocation")
        if failure is not None:
            report, unkept = await self.parts.post_mortems.write(failure)
            self.acknowledge(unkept, encode(report))


class _CellHandler(IngestHandler):
    """Answers with the receipt of a cell that ran, and tells every open view.

    Cost: what is held of its span, in rows that fit a bound, on a thread.
    """

    max_body_bytes = MAX_CELL_BYTES

    async def post(self) -> None:
        run = self.read(_CELL, "a cell that ran")
        if run is None:
            return
        try:
            check_times(run)
        except ValueError as error:
            self.refuse(422, str(error))
            return
        try:
            receipt, unkept = await self.parts.receipts.take(run)
        except NotYours as error:
            self.refuse(403, str(error))
            return
        self.acknowledge(unkept, encode(receipt))


class _WatchHandler(IngestHandler):
    """Has the GPUs read while `%gpuwatch` is on in a kernel.

    Cost: the list of kernels is looked through once.
    """

    max_body_bytes = MAX_CELL_BYTES

    async def post(self) -> None:
        request = self.read(Decoder(_Watch), "a kernel to watch")
        if request is None:
            return
        try:
            if request.on:
                await self.parts.watch.turn_on(request.kernel_id)
            else:
                self.parts.watch.turn_off(request.kernel_id)
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
        self.finish(encode(await self.parts.broadcaster.state()))


class _SpanHandler(IngestHandler):
    """What each device did in a span: `GET /v1/span?from_ms=&to_ms=`.

    Cost: what is held of the span, in rows that fit a bound, on a thread.
    """

    query_type = Span

    async def get(self) -> None:
        from_ms, to_ms = self.query(Span).from_ms, self.query(Span).to_ms
        # no GPU is opened for it: what nobody read is not in the history either
        devices = dict(enumerate(self.parts.broadcaster.devices))
        spans = await self.parts.past.spans(from_ms, to_ms, devices)
        note = self.parts.past.missing(from_ms, to_ms)
        self.set_header("Content-Type", "application/json")
        self.finish(encode(SpanStatistics(from_ms, to_ms, spans, note)))


class _Watch(msgspec.Struct, forbid_unknown_fields=True):
    protocol: int
    kernel_id: str
    on: bool


def _log_nothing(handler: web.RequestHandler) -> None:
    """Kernels hand in reports often; the server's log is for its users."""


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
