"""What every handler does: bounds before a body is read, errors in words, headers."""

from __future__ import annotations

import logging
import traceback
from typing import Any, cast

import msgspec
from sqlalchemy.exc import DBAPIError
from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPServerRequest
from tornado.web import HTTPError, RequestHandler, stream_request_body

from warpbook.guarded_server import let_in
from warpbook.hub_protocol import ANSWER_MARK
from warpbook_hub.errors import (
    BadField,
    BadRoster,
    DatabaseBusy,
    DatabaseUnfit,
    HubError,
)
from warpbook_hub.service.service import Service

LOG = logging.getLogger("warpbook_hub")
#: no script, style or picture but our own, and no other page around ours
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: of a body that is refused
_MOST_THROWN_AWAY_BYTES = 8 << 20
_OF_DATABASE = (DatabaseBusy, DatabaseUnfit)
_HEADERS = {
    ANSWER_MARK: "1",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TooLarge(HubError):
    """A body has more bytes than its route takes."""

    http_status = 413


class PlainHandler(RequestHandler):
    """Answers in words, also to what it can't do, and has browsers keep nothing."""

    #: whether it has been found who asks
    is_known = False

    def set_default_headers(self) -> None:
        """Tell browsers to take nothing from elsewhere, and to keep nothing."""
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def finish_json(self, value: Any, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(value))

    def write_error(self, status_code: int, **details: Any) -> None:
        """Say what went wrong as JSON, in words and with what to do."""
        _, problem, _ = details.get("exc_info", (None, None, None))
        status, answer = problem_of(problem, status_code)
        self.finish_json(answer, status)

    def log_exception(self, kind: Any, problem: Any, trace: Any) -> None:
        """Note what is our fault; what is refused is in the log of requests.

        Of a request of nobody it is one line, so that strangers write no long log.
        """
        if isinstance(problem, _OF_DATABASE):
            LOG.warning("%s", problem)
        if isinstance(problem, (HubError, HTTPError)):
            return
        what = f"{self.request.method} {self.request.path[:200]!r} failed"
        if self.is_known:
            LOG.error("%s", what, exc_info=(kind, problem, trace))
            return
        place = traceback.extract_tb(trace)[-1]
        why = f"{kind.__name__} in {place.filename}:{place.lineno}"
        LOG.error("%s: %s", what, why)


@stream_request_body
class ServiceHandler(PlainHandler):
    """A handler that knows the service, and reads a body only of who may send it."""

    def initialize(self) -> None:
        """Take the time of arrival, which decides, and begin with an empty body."""
        self.arrived_ms = self.service.clock.now_ms()
        if self.request.method == "POST":
            self.service.heartbeat.unanswered[self] = self.arrived_ms
        self._body = bytearray()
        self._refusal: Exception | None = None
        self._counted = ""
        self._is_begun = False
        self._most_bytes = 0

    def count(self, username: str) -> None:
        """Have the request counted as a person's, until it is answered.

        Raises:
            TooManyRequests: they have too many at once.
        """
        self.service.requests.begin(username)
        self._counted = username

    def on_finish(self) -> None:
        """Let the person ask for something else."""
        self.service.heartbeat.unanswered.pop(self, None)
        if self._counted:
            self.service.requests.end(self._counted)
            self._counted = ""

    def on_connection_close(self) -> None:
        """Count no more who went before the body's end; what is begun is finished."""
        if not self._is_begun:
            self.on_finish()

    async def prepare(self) -> None:
        """Decide before the body is read; of who is refused it is thrown away.

        An answer before the body's end would close the connection, which the hub's
        proxy keeps for the requests of others.
        """
        try:
            await self.let_in()
        except (HubError, HTTPError) as refusal:
            self._refusal = refusal
            # a stranger's body, which may never end, holds nothing up
            self.service.heartbeat.unanswered.pop(self, None)
            self._bound_connection(_MOST_THROWN_AWAY_BYTES)
        else:
            # what is open to everybody has no body
            self.is_known = self._most_bytes > 0 or bool(self._counted)
            if self.is_known:
                let_in(self.request)

    async def let_in(self) -> None:
        """Find who asks and whether they may; raise what refuses them."""
        self.bound_body(0)

    def refuse(self) -> None:
        """Raise what `let_in` raised; each method begins with it.

        Raises:
            HubError: the request was refused.
        """
        self._is_begun = True
        if self._refusal is not None:
            raise self._refusal

    @property
    def service(self) -> Service:
        service: Service = self.settings["service"]
        return service

    @property
    def body(self) -> bytes:
        """Give the body, which is bounded."""
        return bytes(self._body)

    def bound_body(self, most_bytes: int) -> None:
        """Refuse a body that says that it is larger, before it is read.

        Raises:
            TooLarge: it does.
        """
        length = self.request.headers.get("Content-Length", "0")
        # Python makes no number of too many digits
        if length.isdecimal() and int(length[:12]) > most_bytes:
            raise TooLarge(f"The request has more than {most_bytes:,} bytes.")
        self._most_bytes = most_bytes
        # of a body that does not say its length
        self._bound_connection(most_bytes)

    def data_received(self, chunk: bytes) -> None:
        if self._refusal is None:
            self._body += chunk

    def _bound_connection(self, most_bytes: int) -> None:
        connection = cast(HTTP1Connection, self.request.connection)
        connection.set_max_body_size(most_bytes)


def problem_of(problem: Any, status: int) -> tuple[int, dict[str, Any]]:
    """Give a status and what is told for anything that was raised."""
    if isinstance(problem, _OF_DATABASE):
        # its words name the server and the account, which are not for learners
        words = "The course's database does not answer; the service's log says why."
        return problem.http_status, {"error": f"{words} Try again."}
    if isinstance(problem, HubError):
        answer: dict[str, Any] = {"error": str(problem)}
        if isinstance(problem, BadRoster):
            answer["problems"] = problem.problems
        if isinstance(problem, BadField):
            answer["field"] = problem.field
        submission = getattr(problem, "submission", None)
        if submission:
            answer["submission"] = submission
        return problem.http_status, answer
    if isinstance(problem, HTTPError) and status < 500:
        words = problem.log_message or {
            404: "There is no such page.",
            405: "This can't be done here.",
        }.get(status, problem.reason or "The request can't be answered.")
        return status, {"error": words}
    if isinstance(problem, DBAPIError):
        status = 503
    words = "Something failed here; the service's log says what. Try again."
    return status, {"error": words}


def log_request(handler: RequestHandler) -> None:
    """Note a request without what its query holds."""
    request: HTTPServerRequest = handler.request
    status = handler.get_status()
    if status >= 500:
        LOG.warning("%d %s %s", status, request.method, request.path)
    else:
        LOG.debug("%d %s %s", status, request.method, request.path)
