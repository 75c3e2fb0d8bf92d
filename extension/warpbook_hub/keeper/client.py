"""The keeper's requests to the course service; JupyterHub's spawner asks by it, too."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from warpbook_hub.grader_protocol import Problem
from warpbook_hub.lease_protocol import (
    MOST_MESSAGE_BYTES,
    PREFIX,
    Orders,
    OwnLease,
    Report,
    ServerRequest,
)
from warpbook_monitors.budget import NotJson, decode_json

_WAIT_S = 5.0
Answered = TypeVar("Answered", bound=Struct)


class HubAway(Exception):
    """The service does not answer now."""


class HubRefused(Exception):
    """The service will not do that; the message is its reason."""


class KeeperClient:
    """Asks the course service with the keeper's token."""

    def __init__(self, url: str, token: str) -> None:
        """Take where the service is."""
        self._url, self._token = url.rstrip("/") + "/" + PREFIX, token
        no_proxy = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(no_proxy, _NoRedirects)

    def report(self, report: Report) -> Orders:
        """Say what is so, and be told what is to be so.

        Raises:
            HubAway: it does not answer.
            HubRefused: the token is void.
        """
        return self._ask("report", report, Orders)

    def server(self, request: ServerRequest) -> OwnLease:
        """Ask for a GPU of a server that starts.

        Raises:
            HubAway: it does not answer.
            HubRefused: the person may have none.
        """
        return self._ask("server", request, OwnLease)

    def _ask(self, what: str, message: Struct, answer: type[Answered]) -> Answered:
        request = urllib.request.Request(
            self._url + what,
            msgspec.json.encode(message),
            {
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with self._opener.open(request, timeout=_WAIT_S) as response:
                body = response.read(MOST_MESSAGE_BYTES)
            return decode_json(body, Decoder(answer))
        except urllib.error.HTTPError as problem:
            with problem:
                words = _words(problem.read(1 << 16)) or str(problem)
            if problem.code >= 500 or problem.code == 429:
                raise HubAway(words) from None
            raise HubRefused(words) from None
        except (OSError, http.client.HTTPException, NotJson) as problem:
            raise HubAway(f"The course service does not answer: {problem}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to the service, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _words(body: bytes) -> str:
    try:
        return decode_json(body, Decoder(Problem)).error
    except NotJson:
        return ""
