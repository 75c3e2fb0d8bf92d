"""An HTTP server that strangers can't fill.

Whoever connects, sends headers or a body is nobody until a handler has let them in.
Of such connections there is a bounded number, for a bounded time, and the oldest makes
room for a new one. So who has credentials, and `health`, get through.
"""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream

from warpbook_monitors.budget import CONNECTIONS, UPLOAD_S, spare_descriptors

_LOG = logging.getLogger("warpbook")
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: taken at a time, so that those that are here get their turn
_ACCEPTED_AT_ONCE = 128
_PAUSE_S = 1.0
_LOG_EVERY_S = 60.0


class GuardedServer(HTTPServer):
    """Bounds connections whose request is not complete, and all of them together."""

    def initialize(
        self, *args: Any, most: int = CONNECTIONS.most, **options: Any
    ) -> None:
        """Take what tornado's server takes.

        Args:
            args: of tornado's server.
            most: connections at a time.
            options: of tornado's server.
        """
        bounds: dict[str, Any] = {
            "max_header_size": CONNECTIONS.header_bytes,
            "idle_connection_timeout": CONNECTIONS.header_s,
            "max_body_size": CONNECTIONS.body_bytes,
            "body_timeout": CONNECTIONS.body_s,
        }
        super().initialize(*args, **{**bounds, **options})
        self._most = min(most, spare_descriptors())
        self._open: set[IOStream] = set()
        #: those whose request is not complete, the oldest first
        self._unfinished: dict[IOStream, None] = {}
        self._logged_s = -_LOG_EVERY_S

    @classmethod
    def be_the_default(cls) -> None:
        """Have servers that are made from now on be such ones: Jupyter's, the hub's.

        Its handlers read a body before they ask who sends it, and people upload.
        """
        HTTPServer.configure(cls, max_header_size=None, body_timeout=UPLOAD_S)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Take a connection, and make room for it."""
        is_full = (
            len(self._open) >= self._most or len(self._unfinished) >= self._most // 2
        )
        if is_full and not self._make_room():
            stream.close()
            return
        self._open.add(stream)
        self._unfinished[stream] = None
        super().handle_stream(stream, address)

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Count a request as unfinished from here on."""
        assert isinstance(server_conn, HTTP1ServerConnection)
        stream: Any = server_conn.stream
        self._unfinished[stream] = None
        stream.is_let_in = False
        delegate = super().start_request(server_conn, request_conn)
        return _Request(delegate, lambda: self._unfinished.pop(stream, None))

    def on_close(self, server_conn: object) -> None:
        assert isinstance(server_conn, HTTP1ServerConnection)
        self._open.discard(server_conn.stream)
        self._unfinished.pop(server_conn.stream, None)
        super().on_close(server_conn)

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Accept, also where there are no descriptors left for a time."""
        for listener in sockets:
            self._sockets[listener.fileno()] = listener
            self._handlers[listener.fileno()] = _listen(listener, self._accept)

    def _accept(self, listener: socket.socket) -> bool:
        """Accept who waits; tell whether more can be taken."""
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, address = listener.accept()
            except BlockingIOError:
                break
            except ConnectionAbortedError:
                continue
            except OSError as problem:
                if problem.errno not in _FULL:
                    raise
                self._note(problem)
                return self._make_room()
            self._handle_connection(connection, address)
        return True

    def _make_room(self) -> bool:
        """Close the oldest connection of who is nobody yet, if there is one.

        One on which somebody was let in before waits for the next request, maybe of a
        proxy that is about to send it: it goes last.
        """
        for may_be_known in (False, True):
            for stream in self._unfinished:
                is_let_in = getattr(stream, "is_let_in", False)
                was_let_in = getattr(stream, "was_let_in", False)
                if not is_let_in and (may_be_known or not was_let_in):
                    del self._unfinished[stream]
                    self._open.discard(stream)
                    stream.close()
                    return True
        return False

    def _note(self, problem: OSError) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            _LOG.warning(
                "connections wait: %s; %d are open, %d of them without a request",
                problem.strerror,
                len(self._open),
                len(self._unfinished),
            )


def let_in(request: HTTPServerRequest) -> None:
    """Give a body the time that a known sender has; call it in `prepare`."""
    connection: Any = request.connection
    connection.stream.is_let_in = connection.stream.was_let_in = True
    connection.set_body_timeout(CONNECTIONS.known_body_s)


class _Request(HTTPMessageDelegate):
    """Passes a request on, and tells when it is complete."""

    def __init__(
        self, delegate: HTTPMessageDelegate, complete: Callable[[], object]
    ) -> None:
        self._delegate = delegate
        self._complete = complete

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: Any
    ) -> Any:
        return self._delegate.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Any:
        return self._delegate.data_received(chunk)

    def finish(self) -> None:
        self._complete()
        self._delegate.finish()

    def on_connection_close(self) -> None:
        self._complete()
        self._delegate.on_connection_close()


def _listen(
    listener: socket.socket, accept: Callable[[socket.socket], bool]
) -> Callable[[], None]:
    """Have `accept` called for who waits, after a pause where it could take nobody.

    Returns:
        what ends it.
    """
    loop = IOLoop.current()
    is_ended = False

    def listen() -> None:
        if not is_ended:
            loop.add_handler(listener, ready, IOLoop.READ)

    def ready(*_: object) -> None:
        # else the loop would call again at once, and again
        if not accept(listener) and not is_ended:
            loop.remove_handler(listener)
            loop.call_later(_PAUSE_S, listen)

    def end() -> None:
        nonlocal is_ended
        is_ended = True
        loop.remove_handler(listener)

    listen()
    return end
