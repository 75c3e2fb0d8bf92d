"""What all handlers of the ingest have in common."""

from __future__ import annotations

import hmac
from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.json import Decoder
from tornado import web

from warpbook.protocol import PROTOCOL_VERSION
from warpbook.server.broadcast import Broadcaster
from warpbook.server.kernel_watch import KernelWatch
from warpbook.server.parameters import NoQuery, Parameters, read_json
from warpbook.server.post_mortem import PostMortems
from warpbook.server.readiness import Readiness
from warpbook.server.receipts import Receipts
from warpbook.server.reports import Reports


class IngestHandler(Parameters):
    """Answers only to those who know the secret.

    Cost: a body is bounded by its route.
    """

    query_type: ClassVar[type[Struct] | None] = NoQuery

    def initialize(
        self,
        secret: str,
        broadcaster: Broadcaster,
        reports: Reports,
        post_mortems: PostMortems,
        receipts: Receipts,
        watch: KernelWatch,
    ) -> None:
        """Take what the ingest shares."""
        self._secret = secret
        self._broadcaster = broadcaster
        self._reports = reports
        self._post_mortems = post_mortems
        self._receipts = receipts
        self._watch = watch

    def prepare(self) -> None:
        """Refuse whoever does not know the secret."""
        given = self.request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._secret}".encode()):
            raise web.HTTPError(403, reason="The secret of the ingest is wrong.")
        readiness: Readiness = self.settings["readiness"]
        if readiness.is_draining:
            raise web.HTTPError(503, readiness.reason)
        self.settings["in_flight"].add(self)
        self.check_query()

    def on_finish(self) -> None:
        """The answer is on its way."""
        self.settings["in_flight"].discard(self)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with the reason, in words."""
        if status_code == 503:
            self.set_header("Retry-After", "5")
        error = kwargs.get("exc_info", (None, None))[1]
        told = error.log_message if isinstance(error, web.HTTPError) else None
        self.finish({"message": told or self._reason})

    def is_refused(self, body: bytes) -> bool:
        """Refuse what speaks another version of the protocol.

        Raises:
            BadBody: it names no version.
        """
        protocol = read_json(body, Decoder(_Versioned)).protocol
        if protocol == PROTOCOL_VERSION:
            return False
        self.refuse(
            409,
            f"The server speaks protocol {PROTOCOL_VERSION}, the kernel {protocol}: "
            "install the same warpbook in both environments.",
        )
        return True

    def refuse(self, status: int, message: str) -> None:
        """Answer why not."""
        self.set_status(status)
        self.finish({"message": message})


class _Versioned(msgspec.Struct):
    """What every version of a report has."""

    protocol: int
