"""Asks a course service: the one client of learners, graders, keeper and log-in.

What the service itself has answered is final; what a gateway before it says is not.
"""

from __future__ import annotations

import http.client
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from warpbook.hub_protocol import ANSWER_MARK, Problem
from warpbook_monitors.budget import NotJson, decode_json

#: of one answer
MOST_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 16
#: between two tries
_AGAIN_S, _MOST_AGAIN_S = 1.0, 8.0
#: somebody who waits is told so often that it goes on
_SAY_S = 60.0
#: the service says by these that a later try may be answered otherwise
_NOT_NOW = (408, 429)
Answered = TypeVar("Answered")


class HubProblem(Exception):
    """The hub does not do it; the message says why and what to do."""


class HubAway(HubProblem):
    """The service does not answer, or can't now: the same request may be sent again."""


class HubRefused(HubProblem):
    """The service will not do it, however often it is asked."""


class HubClient:
    """Sends requests to one part of a course service with somebody's token."""

    def __init__(
        self,
        url: str,
        token: str,
        part: str,
        wait_s: float = 15.0,
        uses_proxies: bool = False,
    ) -> None:
        """Take where it is.

        Args:
            url: of the course service.
            token: of who asks; it goes to the service and nowhere else.
            part: path of the API, such as `hub_protocol.GRADERS`.
            wait_s: time for an answer to begin, and then for it to end.
            uses_proxies: those of the environment; else the hub is near.
        """
        #: of the course service, with a slash at its end
        self.url = url.rstrip("/") + "/"
        self._part, self._token, self._wait_s = part, token, wait_s
        proxies: dict[str, str] | None = None if uses_proxies else {}
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler(proxies), _NoRedirects
        )

    def ask(
        self,
        path: str,
        kind: type[Answered],
        message: Struct | None = None,
        patience_s: float = 0.0,
        say: Callable[[str], None] | None = None,
    ) -> Answered:
        """Return the answer to a POST of a message, or to a GET without one.

        Args:
            path: below the part of the API.
            kind: of the answer.
            message: is sent again as it is, so it says by itself which request it is.
            patience_s: longest time of all tries.
            say: is given words when a further try follows, and each minute.

        Raises:
            HubAway: no answer of the service came, or it can't answer now.
            HubRefused: it says no, or is of another version.
        """
        body = None if message is None else msgspec.json.encode(message)
        begun_s, wait_s = time.monotonic(), _AGAIN_S
        said, said_s = "", begun_s
        while True:
            try:
                return self._once(path, kind, body)
            except HubAway as problem:
                now_s = time.monotonic()
                if now_s + wait_s > begun_s + patience_s:
                    raise
                if say and (str(problem) != said or now_s - said_s >= _SAY_S):
                    said, said_s = str(problem), now_s
                    left_min = math.ceil((begun_s + patience_s - now_s) / 60)
                    say(f"{said} It is tried again, for up to {left_min} min.")
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _MOST_AGAIN_S)

    def _once(self, path: str, kind: type[Answered], body: bytes | None) -> Answered:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
        }
        url = f"{self.url}{self._part}{path}"
        request = urllib.request.Request(url, body, headers)
        response: Any
        try:
            try:
                response = self._opener.open(request, timeout=self._wait_s)
            except urllib.error.HTTPError as refusal:
                response = refusal
            with response:
                status, is_own = response.status, ANSWER_MARK in response.headers
                answer = _read(response, self._wait_s) if is_own else b""
        except (OSError, http.client.HTTPException) as failure:
            reason = getattr(failure, "reason", failure)
            raise HubAway(f"{self.url} does not answer: {reason}.") from None
        if not is_own:
            raise HubAway(
                f"{self.url} answers {status}, and not as a course service: the hub "
                "may be starting, or its address is another."
            )
        if status >= 400:
            words = _words(answer) or f"{self.url} answers {status}."
            is_away = status >= 500 or status in _NOT_NOW
            raise HubAway(words) if is_away else HubRefused(words)
        try:
            return decode_json(answer, Decoder(kind))
        except NotJson:
            raise HubRefused(
                f"{self.url} is a course service of another version of warpbook."
            ) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Has a redirection be an answer, as the token goes nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _read(response: Any, wait_s: float) -> bytes:
    """Return a body, which is bounded in size and time.

    Raises:
        OSError: it is too large, or comes too slowly.
        http.client.HTTPException: it was cut off.
    """
    body, length = bytearray(), response.length
    end_s = time.monotonic() + wait_s
    while length is None or len(body) < length:
        chunk = response.read1(_CHUNK_BYTES)
        if not chunk:
            break
        body += chunk
        if len(body) > MOST_BYTES:
            raise OSError(f"its answer has more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > end_s:
            raise TimeoutError("its answer takes too long")
    if length is not None and len(body) < length:
        raise http.client.IncompleteRead(bytes(body), length - len(body))
    return bytes(body)


def _words(body: bytes) -> str:
    try:
        return decode_json(body, Decoder(Problem)).error
    except NotJson:
        return ""
