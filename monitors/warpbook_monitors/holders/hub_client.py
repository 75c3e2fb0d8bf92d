"""An agent's requests to its hub."""

from __future__ import annotations

import http.client
import ipaddress
import os
import stat
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.holders.node_protocol import PREFIX, Intervals, Taken
from warpbook_monitors.plain_text import bounded

_WAIT_S = 15.0
_MOST_ANSWER_BYTES = 1 << 16
_MOST_TOKEN_BYTES = 1_000


class HubUnusable(MonitorError):
    """The hub's address or the token can't be used; the message says what to do."""


class HubAway(MonitorError):
    """The hub does not answer now; the same may be sent again."""


class HubRefused(MonitorError):
    """The hub does not take it, such as with a token that is void."""


class HubRefusedMessage(HubRefused):
    """The hub can't read the message; it will not do so later either."""


class _Problem(Struct):
    error: str


class NodeClient:
    """Sends intervals with the node's token."""

    def __init__(self, url: str, token_file: Path) -> None:
        """Take where the service is, and where its token.

        Raises:
            HubUnusable: no address of a hub, or one to which a token must not go.
        """
        _check(url)
        self._url = url.rstrip("/") + "/" + PREFIX + "intervals"
        self._token_file = token_file
        no_proxy = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(no_proxy, _NoRedirects)

    def send(self, message: Intervals) -> Taken:
        """Send a batch.

        Raises:
            HubUnusable: the token can't be read.
            HubAway: the hub does not answer.
            HubRefused: it does not want it.
        """
        # read anew each time: a token may be replaced
        token = read_token(self._token_file)
        request = urllib.request.Request(
            self._url,
            msgspec.json.encode(message),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=_WAIT_S) as response:
                return msgspec.json.decode(
                    response.read(_MOST_ANSWER_BYTES), type=Taken
                )
        except urllib.error.HTTPError as problem:
            words = _answer_of(problem) or (
                f"{problem}. Is {self._url} the address of the course service?"
            )
            if problem.code >= 500 or problem.code == 429:
                raise HubAway(words) from None
            if problem.code in (400, 413):
                raise HubRefusedMessage(words) from None
            raise HubRefused(words) from None
        except (
            *(OSError, http.client.HTTPException),
            *(msgspec.MsgspecError, ValueError),
        ) as problem:
            raise HubAway(f"The hub does not answer: {problem}") from None


def read_token(path: Path) -> str:
    """Read a token from a file that nobody else can read.

    Raises:
        HubUnusable: it can't be read, others can, or there is none in it.
    """
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise HubUnusable(f"{path}: others can read it. Do: chmod 600 {path}")
            token = file.readline(_MOST_TOKEN_BYTES).strip()
    except OSError as error:
        raise HubUnusable(f"{path}: {error.strerror}.") from None
    if not (token and token.isascii() and token.isalnum()):
        raise HubUnusable(
            f"{path}: there is no token. The hub's page Campus gives one."
        )
    return token


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        raise HubUnusable(
            f"{bounded(url)}: no address of a hub, such as "
            "https://hub.example.org/services/warpbook/."
        )
    if parts.scheme == "http" and not _is_this_machine(host):
        raise HubUnusable(
            f"{bounded(url)}: a token would be sent readable for all on the way. Use "
            "https, or a tunnel that ends on 127.0.0.1."
        )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to the hub, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _answer_of(problem: urllib.error.HTTPError) -> str:
    """Give the hub's own words; none where something else answered."""
    try:
        with problem:
            body = problem.read(_MOST_ANSWER_BYTES)
        return bounded(msgspec.json.decode(body, type=_Problem).error, 300)
    except (
        *(OSError, http.client.HTTPException),
        *(msgspec.MsgspecError, UnicodeDecodeError),
    ):
        return ""
