"""A request of a page, from its first check to its line in the log."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar
from urllib.parse import unquote

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado import web

from warpbook.server.web.cross_site import refuse_cross_site
from warpbook.server.web.logs import log_refusal, request_id
from warpbook.server.web.parameters import Parameters

#: where the application's readiness is among the settings of Jupyter's
READINESS = "warpbook_readiness"
_RETRY_AFTER_S = "5"
_ENCODED = re.compile(r"/[^/]*%[^/]*")


class Request(Parameters, APIHandler):
    """Checks who asks, from where, and what for; polling is not a person's activity.

    Cost: that of a lookup of the user.
    """

    auth_resource = "warpbook"
    _track_activity = False
    #: whether a person may open it from the address bar, as a download
    may_be_opened: ClassVar[bool] = False

    def initialize(self, **parts: object) -> None:
        """Take the parts that a route is given; each class declares those it uses."""
        vars(self).update({f"_{name}": part for name, part in parts.items()})

    @property
    def content_security_policy(self) -> str:
        """Answers are data: no page may frame them, and nothing in them runs."""
        return "default-src 'none'; frame-ancestors 'none'; sandbox"

    def set_default_headers(self) -> None:
        """Have no other site embed an answer, and no cache keep it."""
        super().set_default_headers()
        # an error's answer is begun anew, with the same id
        self.request_id = getattr(self, "request_id", "") or request_id(self)
        self.set_header("X-Request-Id", self.request_id)
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")

    async def prepare(self) -> None:  # type: ignore[override]
        """Check the request before anything is done for it.

        Raises:
            HTTPError: 400, 403 or 503.
        """
        await super().prepare()
        if self.current_user is not None:
            refuse_cross_site(self, self.may_be_opened)
            refuse_while_draining(self)
            self.check_query()

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        """Decode a part of the path; what is refused is not repeated in the log.

        Raises:
            HTTPError: 400.
        """
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise web.HTTPError(400, "The path is not UTF-8.") from None

    def finish_json(self, encoded: bytes) -> None:
        """Answer with JSON that is encoded already."""
        self.set_header("Content-Type", "application/json")
        self.finish(encoded)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer why not, and log that by the route."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        reason = getattr(error, "log_message", None) or self._reason
        if status_code == 503:
            self.set_header("Retry-After", _RETRY_AFTER_S)
        super().write_error(status_code, **kwargs)
        log_refusal(self, self._route(), reason)

    def _route(self) -> str:
        """The path without what a caller put into it."""
        # an argument was decoded, so the path is, too
        route = unquote(self.request.path)
        given = getattr(self, "path_args", None)
        if given is None:
            # refused before it was looked at; no route of ours has such a sign
            return _ENCODED.sub("/*", self.request.path)
        for argument in filter(None, given):
            route = re.sub(rf"/{re.escape(argument)}(?=/|$)", "/*", route)
        return route

    def _request_summary(self) -> str:
        """What Tornado logs of a request: no query, for a token may be in it."""
        return f"{self.request.method} {self._route()} ({self.request.remote_ip})"


def refuse_while_draining(handler: JupyterHandler) -> None:
    """Refuse new work while the server stops.

    Raises:
        HTTPError: 503.
    """
    readiness: Readiness | None = handler.settings.get(READINESS)
    if readiness is not None and readiness.is_draining:
        raise web.HTTPError(503, readiness.reason)


_log = logging.getLogger(__name__)

#: for each part; Jupyter's kernels come after them
STEP_S = 2.0
#: what was handed in is written meanwhile
ARCHIVE_S = 3.0
#: since the server was asked to stop
_LATEST_S = 9.0


class Readiness:
    """What the server's parts say of themselves."""

    def __init__(self) -> None:
        self._parts: dict[str, Callable[[], str]] = {}
        #: set once, when the server is asked to stop
        self.is_draining = False

    def add(self, name: str, problem: Callable[[], str]) -> None:
        """Have a part asked, without which the server still takes work.

        Args:
            name: of the part.
            problem: what is wrong with it, in words; empty while nothing is.
        """
        self._parts[name] = problem

    @property
    def reason(self) -> str:
        """Why the server takes no work, in words; empty while it does."""
        return "The server is stopping." if self.is_draining else ""

    def problems(self) -> dict[str, str]:
        """What is wrong though the server takes work, by part."""
        problems = {name: problem() for name, problem in self._parts.items()}
        return {name: words for name, words in problems.items() if words}


async def bounded_stop(
    part: str, stopping: Awaitable[object], most_s: float = STEP_S
) -> None:
    """Stop a part; one that hangs or fails holds no other up."""
    try:
        await asyncio.wait_for(stopping, most_s)
    except asyncio.TimeoutError:
        _log.error("Stopping the %s takes too long; it is given up.", part)
    except Exception:  # noqa: BLE001 - the others are to stop all the same
        _log.exception("Stopping the %s failed.", part)


def end_at_the_latest() -> None:
    """End the process by force if a hanging driver or disk keeps it from ending."""

    def end() -> None:
        time.sleep(_LATEST_S)
        _log.error("Something hangs; the server ends without it.")
        # the exit of the interpreter waits for every thread
        os._exit(0)

    threading.Thread(target=end, name="warpbook-end", daemon=True).start()
