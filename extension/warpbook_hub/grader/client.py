"""A grader's requests to the hub, and what may come of them."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from warpbook_hub.grader_protocol import (
    MOST_MESSAGE_BYTES,
    PREFIX,
    Heartbeat,
    HeartbeatAnswer,
    Hello,
    JobResult,
    Problem,
    Receipt,
    Release,
    Released,
    Welcome,
    Work,
    WorkRequest,
)
from warpbook_monitors.budget import NotJson, decode_json

_WAIT_S = 15.0
Answered = TypeVar("Answered", bound=Struct)


class HubAway(Exception):
    """The hub does not answer now; the same request may be sent again."""


class HubRefused(Exception):
    """The hub will not do that, however often it is asked."""


class HubClient:
    """Asks the hub on behalf of one grader."""

    def __init__(self, url: str, token: str) -> None:
        """Take where the service is, and the grader's token."""
        self._url = url.rstrip("/") + PREFIX
        self._token = token
        # the hub is on this machine or beside it
        no_proxy = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(no_proxy, _NoRedirects)

    def hello(self, message: Hello) -> Welcome:
        """Begin."""
        return self._ask("hello", message, Welcome)

    def lease(self, request: WorkRequest) -> Work:
        """Ask for jobs."""
        return self._ask("lease", request, Work)

    def heartbeat(self, beat: Heartbeat) -> HeartbeatAnswer:
        """Say what is worked on."""
        return self._ask("heartbeat", beat, HeartbeatAnswer)

    def result(self, result: JobResult) -> Receipt:
        """Hand over a result."""
        return self._ask("result", result, Receipt)

    def release(self, given_back: Release) -> Released:
        """Give a job back."""
        return self._ask("release", given_back, Released)

    def _ask(self, what: str, message: Struct, answer: type[Answered]) -> Answered:
        """Ask once.

        Raises:
            HubAway: it does not answer, or can't now.
            HubRefused: it says no.
        """
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
            # of these a later try may be answered otherwise
            if problem.code >= 500 or problem.code in (404, 408, 429):
                raise HubAway(words) from None
            raise HubRefused(words) from None
        except (OSError, http.client.HTTPException, NotJson) as problem:
            raise HubAway(str(problem)) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to the hub, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _words(body: bytes) -> str:
    try:
        return decode_json(body, Decoder(Problem)).error
    except NotJson:
        return ""
