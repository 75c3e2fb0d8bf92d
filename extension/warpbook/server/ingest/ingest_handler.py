"""What all handlers of the ingest have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder
from tornado import web

from warpbook.guarded_server import let_in
from warpbook.protocol import PROTOCOL_VERSION
from warpbook.server.cells.receipts import Receipts
from warpbook.server.memory.post_mortem import PostMortems
from warpbook.server.past.history import Past
from warpbook.server.records.reports import Reports
from warpbook.server.records.timelines import Timelines
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.kernel_watch import KernelWatch
from warpbook.server.stream.selection import encode
from warpbook.server.web.credentials import Credentials
from warpbook.server.web.page_request import Readiness
from warpbook.server.web.parameters import BadBody, Parameters, read_json
from warpbook_monitors.archive.errors import ArchiveError

T = TypeVar("T")


@dataclass(frozen=True)
class IngestParts:
    """What the routes of the ingest work with."""

    broadcaster: Broadcaster
    reports: Reports
    post_mortems: PostMortems
    receipts: Receipts
    watch: KernelWatch
    past: Past
    timelines: Timelines
    readiness: Readiness
    credentials: Credentials
    #: requests that are not answered yet
    in_flight: set[web.RequestHandler] = field(default_factory=set)


@web.stream_request_body
class IngestHandler(Parameters):
    """Answers only to kernels of this server, once their headers are right.

    Cost: a body of at most `max_body_bytes`, after the headers were checked.
    """

    #: what the body may have
    max_body_bytes: ClassVar[int] = 0

    def initialize(self, parts: IngestParts) -> None:
        self.parts = parts
        self.body = bytearray()

    def prepare(self) -> None:
        """Look at the headers, before any of the body is read.

        Raises:
            HTTPError: 400, 403, 413 or 503.
        """
        scheme, _, credential = self.request.headers.get("Authorization", "").partition(
            " "
        )
        kernel_id = self.parts.credentials.kernel(credential)
        if scheme != "Bearer" or kernel_id is None:
            raise web.HTTPError(
                403, "The credential is that of no kernel which this server runs."
            )
        #: who asks
        self.kernel_id = kernel_id
        if self.parts.readiness.is_draining:
            raise web.HTTPError(503, self.parts.readiness.reason)
        length = self.request.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 13):
            raise web.HTTPError(400, "Content-Length is no number.")
        if int(length) > self.max_body_bytes:
            raise web.HTTPError(413, f"It may have {self.max_body_bytes} bytes.")
        connection: Any = self.request.connection
        connection.set_max_body_size(self.max_body_bytes)
        self.check_query()
        let_in(self.request)
        self.parts.in_flight.add(self)

    def data_received(self, chunk: bytes) -> None:
        self.body += chunk

    def on_finish(self) -> None:
        """The answer is on its way."""
        self.parts.in_flight.discard(self)

    def on_connection_close(self) -> None:
        """Nobody waits for the answer any more."""
        self.parts.in_flight.discard(self)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with the reason, in words."""
        if status_code == 503:
            self.set_header("Retry-After", "5")
        error = (kwargs.get("exc_info") or (None, None))[1]
        reason = error.log_message if isinstance(error, web.HTTPError) else None
        self.finish({"message": reason or self._reason})

    def read(self, decoder: Decoder[T], what: str) -> T | None:
        """Decode the body; None where it was refused.

        Refused is what is malformed, and what speaks another version of the protocol or
        for another kernel.
        """
        body = bytes(self.body)
        try:
            if self._is_refused(read_json(body, _HEAD)):
                return None
            return read_json(body, decoder)
        except BadBody as error:
            self.refuse(400, f"Not {what}: {error}")
            return None

    def _is_refused(self, head: _Head) -> bool:
        if head.protocol != PROTOCOL_VERSION:
            self.refuse(
                409,
                f"The server speaks protocol {PROTOCOL_VERSION}, the kernel "
                f"{head.protocol}: install the same warpbook in both environments.",
            )
        elif head.kernel_id not in (None, self.kernel_id):
            self.refuse(403, "A kernel may speak for itself only.")
        else:
            return False
        return True

    async def is_own(self, report_id: str) -> bool:
        """Whether no other kernel has handed in a report of this id; else refuse."""
        try:
            report = await self.parts.reports.find(report_id)
        except ArchiveError:
            # what is on disk can't be looked at, and is not replaced either
            return True
        if report is None or report.kernel_id == self.kernel_id:
            return True
        self.refuse(403, "This report is another kernel's.")
        return False

    def acknowledge(self, unkept: str, answer: bytes = b"") -> None:
        """Say that it is kept: 204, or 200 with an answer; 507 where it is not.

        Args:
            unkept: why it is not; empty where it is.
            answer: JSON, of what was made of the request; part of a 507, too.
        """
        self.set_header("Content-Type", "application/json")
        if unkept:
            self.set_status(507)
            self.finish(encode({"message": unkept, "answer": Raw(answer or b"null")}))
        elif answer:
            self.finish(answer)
        else:
            self.clear_header("Content-Type")
            self.set_status(204)

    def refuse(self, status: int, message: str) -> None:
        self.set_status(status)
        self.finish({"message": message})


class _Head(Struct):
    """What every version of a body has; what names no kernel is refused later."""

    protocol: int
    kernel_id: str | None = None


_HEAD = Decoder(_Head)
