"""From the kernel to the Jupyter server that started it, over loopback HTTP.

Kernel and server are often different environments, so each may have another
warpbook, or none. Nothing here waits long, and nothing raises but `LinkError`.
"""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec.json import Decoder

from warpbook.protocol import (
    ENV_INGEST_SECRET,
    ENV_INGEST_URL,
    MAX_REPORT_BYTES,
    PROTOCOL_VERSION,
    CellReport,
    CellRun,
    OutOfMemory,
    PostMortem,
    Receipt,
    SpanStatistics,
    StateNow,
)
from warpbook_monitors._version import __version__
from warpbook_monitors.budget import NotJson, decode_json

_T = TypeVar("_T")

#: a server that is well answers in milliseconds; on a machine that is busy, in seconds
_TIMEOUT_S = 5.0
#: the first state waits until the server has opened the GPUs
_STATE_TIMEOUT_S = 40.0
#: a receipt waits until the GPUs were read once more after the cell
_RECEIPT_TIMEOUT_S = 5.0
#: a driver that hangs is given up earlier
_HOLDERS_TIMEOUT_S = 10.0
#: all events are sent on a thread that nobody waits for
_TIMELINE_TIMEOUT_S = 60.0


class LinkError(Exception):
    """The server can't be used, and what to do about it."""


class NotKept(LinkError):
    """The server has taken it in and shows it, and could not put it on disk."""

    def __init__(
        self, body: bytes, size_bytes: int, again: Callable[[], object]
    ) -> None:
        """Take the server's answer, how large the request was, and what repeats it."""
        spoken = _spoken(body)
        super().__init__(f"It is shown, and not kept on disk: {spoken.message}")
        #: what the server made of it all the same, as JSON
        self.answer = bytes(spoken.answer)
        self.size_bytes = size_bytes
        self.again = again


class NoServer(LinkError):
    """This kernel was not started by a Jupyter server with warpbook."""


class _Spoken(msgspec.Struct):
    """What every version of warpbook answers."""

    protocol: int = 0
    version: str = "unknown"
    message: str = ""
    answer: msgspec.Raw = msgspec.Raw(b"null")


class ServerLink:
    """The server's ingest, as the environment of this kernel names it."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Remember where to look; nothing is sent yet."""
        self._environ = environ

    def post(self, report: CellReport) -> None:
        """Hand a report in.

        Raises:
            NoServer: there is nobody to hand it to.
            LinkError: the server did not take it.
        """
        self._hand_in("/v1/reports", _encode(report))

    def post_timeline(self, report_id: str, packed: bytes) -> None:
        """Hand in all events of a report, as `timeline_body` packs them.

        Raises:
            NoServer: there is nobody to hand it to.
            LinkError: the server did not take it.
        """
        path = f"/v1/reports/{report_id}/timeline"
        status, body = self._request(
            "POST", path, packed, _TIMELINE_TIMEOUT_S, "application/msgpack"
        )
        if status != 204:
            raise LinkError(_refused(status, body))

    def watch(self, kernel_id: str, on: bool) -> None:
        """Say whether this kernel's cells want receipts from now on.

        Raises:
            NoServer: there is nobody to tell.
            LinkError: the server can't give any.
        """
        request = {"protocol": PROTOCOL_VERSION, "kernel_id": kernel_id, "on": on}
        self._hand_in("/v1/watch", msgspec.json.encode(request))

    def receipt(self, run: CellRun) -> tuple[Receipt, NotKept | None]:
        """Ask what a cell took; and what is wrong where the receipt is not kept.

        Raises:
            NoServer: there is nobody to ask.
            LinkError: the server's answer can't be used.
        """
        return self._ask("/v1/cells", run, Receipt, _RECEIPT_TIMEOUT_S)

    def post_mortem(self, failure: OutOfMemory) -> tuple[PostMortem, NotKept | None]:
        """Tell that memory ran out, and ask who held what; and what is not kept.

        Raises:
            NoServer: there is nobody to ask.
            LinkError: the server's answer can't be used.
        """
        return self._ask("/v1/out-of-memory", failure, PostMortem, _HOLDERS_TIMEOUT_S)

    def state(self) -> StateNow:
        """Ask for the newest frame.

        Raises:
            NoServer: there is nobody to ask.
            LinkError: the server's answer can't be used.
        """
        self.check_version()
        status, body = self._request("GET", "/v1/state", timeout_s=_STATE_TIMEOUT_S)
        return _read(status, body, StateNow)

    def span(self, from_ms: float, to_ms: float) -> SpanStatistics:
        """Ask what each device did in a span of time.

        Raises:
            NoServer: there is nobody to ask.
            LinkError: the server's answer can't be used.
        """
        path = f"/v1/span?from_ms={from_ms}&to_ms={to_ms}"
        status, body = self._request("GET", path)
        return _read(status, body, SpanStatistics)

    def check_version(self) -> None:
        """See whether the server speaks this kernel's protocol.

        Raises:
            NoServer: there is nobody to ask.
            LinkError: it does not, or does not answer.
        """
        status, body = self._request("GET", "/v1/version")
        if status != 200:
            raise LinkError(_refused(status, body))
        if _spoken(body).protocol != PROTOCOL_VERSION:
            raise LinkError(_other_version(_spoken(body)))

    def _hand_in(self, path: str, body: bytes) -> None:
        status, answer = self._post(path, body, _TIMEOUT_S)
        if status != 204:
            raise LinkError(_refused(status, answer))

    def _ask(
        self, path: str, message: msgspec.Struct, kind: type[_T], timeout_s: float
    ) -> tuple[_T, NotKept | None]:
        try:
            status, answer = self._post(path, msgspec.json.encode(message), timeout_s)
        except NotKept as problem:
            return _read(200, problem.answer, kind), problem
        return _read(status, answer, kind), None

    def _post(self, path: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        status, answer = self._request("POST", path, body, timeout_s)
        if status == 409:
            self.check_version()
        return status, answer

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        timeout_s: float = _TIMEOUT_S,
        content: str = "application/json",
    ) -> tuple[int, bytes]:
        url = self._environ.get(ENV_INGEST_URL)
        if not url:
            raise NoServer(
                "No Jupyter server with warpbook started this kernel. In a notebook: "
                "install warpbook in the server's environment (pip install warpbook), "
                "restart the server, then this kernel."
            )
        headers = {
            "Authorization": f"Bearer {self._environ.get(ENV_INGEST_SECRET, '')}",
            "Content-Type": content,
        }
        try:
            address = urlsplit(url)
            connection = http.client.HTTPConnection(
                address.hostname or "127.0.0.1", address.port, timeout=timeout_s
            )
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                status, answer = response.status, response.read(4 * MAX_REPORT_BYTES)
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise LinkError(
                "The Jupyter server that started this kernel does not answer "
                f"({type(problem).__name__}: {problem}). If it was restarted, restart "
                "this kernel too."
            ) from None
        if status == _NOT_KEPT:
            again = partial(self._request, method, path, body, timeout_s, content)
            raise NotKept(answer, len(body or b""), again)
        return status, answer


def _other_version(server: _Spoken) -> str:
    if server.protocol > PROTOCOL_VERSION:
        where = f"in this kernel's environment ({sys.prefix})"
    else:
        where = "in the Jupyter server's environment, and restart the server"
    return (
        f"The Jupyter server has warpbook {server.version} (protocol "
        f"{server.protocol}), this kernel {__version__} (protocol "
        f"{PROTOCOL_VERSION}). Run pip install --upgrade warpbook {where}."
    )


#: understood, and refused for a reason that says itself what to do
_NOT_SERVED = 422
#: taken in, and not on disk
_NOT_KEPT = 507
_SAME = "Install the same warpbook for the server and for this kernel."


def _read(status: int, body: bytes, kind: type[_T]) -> _T:
    if status != 200:
        raise LinkError(_refused(status, body))
    try:
        return decode_json(body, Decoder(kind))
    except NotJson as problem:
        raise LinkError(
            f"The Jupyter server's answer can't be read ({problem}). {_SAME}"
        ) from None


def _spoken(body: bytes) -> _Spoken:
    try:
        return decode_json(body, Decoder(_Spoken))
    except NotJson:
        return _Spoken()


def _refused(status: int, body: bytes) -> str:
    message = _spoken(body).message or http.client.responses.get(status, "")
    if status == _NOT_SERVED:
        return f"The Jupyter server refused: {message}"
    return f"The Jupyter server refused ({status}: {message}). {_SAME}"


def _encode(report: CellReport) -> bytes:
    """Encode a report; one that is too large goes without its timeline."""
    encoded = msgspec.json.encode(report)
    if len(encoded) <= MAX_REPORT_BYTES:
        return encoded
    profile = report.profile
    drawn = sum(len(lane.names) for lane in profile.lanes)
    completeness = msgspec.structs.replace(
        profile.completeness, lanes_omitted=profile.completeness.lanes_omitted + drawn
    )
    smaller = msgspec.structs.replace(
        profile, lanes=(), names=(), completeness=completeness
    )
    return msgspec.json.encode(msgspec.structs.replace(report, profile=smaller))
