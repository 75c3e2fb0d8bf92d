"""The agent: this node's GPUs for Prometheus, without Jupyter.

The command `warpbook-agent`, and `warpbook agent`. It takes the extra `gpu` of
`warpbook-monitors`, and neither NumPy nor anything that reads traces.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from warpbook_monitors._version import __version__
from warpbook_monitors.budget import AGENT_CONNECTIONS, AGENT_SILENT_S
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.plain_text import printable
from warpbook_monitors.sampling.own_cost import Costs, OwnCostSource
from warpbook_monitors.sampling.sampler import Sampler

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

COMMAND = "warpbook-agent"
DESCRIPTION = (
    "Serve /metrics until Ctrl-C. The GPUs are read while somebody scrapes, and all "
    "the time with --holders."
)


class AgentError(MonitorError):
    """The agent can't serve; the message says what to do."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, default=9860, help="port to listen on (default: 9860)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1; 0.0.0.0 is every network)",
    )
    parser.add_argument(
        "--dcgm-aliases",
        action="store_true",
        help="also give the GPUs under dcgm-exporter's names",
    )
    parser.add_argument(
        "--holders",
        action="store_true",
        help=(
            "also serve who holds which GPU: account names, readable by everyone who "
            "scrapes"
        ),
    )
    parser.add_argument(
        "--every",
        type=float,
        default=15.0,
        metavar="SECONDS",
        help="seconds between two counts of the holders, 1 to 60 (default: 15)",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `warpbook-agent`; 0 is success, 1 a failure."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    add_options(parser)
    given = parser.parse_args(arguments)
    try:
        serve(given.host, given.port, given.dcgm_aliases, holders_every_s(given))
    except MonitorError as error:
        _say(str(error))
        return 1
    except ImportError as problem:
        _say(f"{problem}. Run: pip install 'warpbook-monitors[gpu]'")
        return 1
    return 0


def holders_every_s(given: argparse.Namespace) -> float | None:
    """Read the options about holders; None where they are not served.

    Raises:
        AgentError: the interval can't be used.
    """
    if not 1 <= given.every <= 60:
        raise AgentError("--every is 1 to 60 seconds.")
    return given.every if given.holders else None


def serve(
    host: str, port: int, dcgm_aliases: bool, holders_every_s: float | None = None
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP comes.

    Args:
        host: the address to listen on.
        port: the port.
        dcgm_aliases: also give the GPUs under dcgm-exporter's names.
        holders_every_s: serve who holds the GPUs, counted so often; GPUs are read all
            the time then.

    Raises:
        AgentError: nothing can listen there, or who looks at holders has ended.
        ImportError: the extra `gpu` is not installed.
    """
    from prometheus_client import CollectorRegistry, make_wsgi_app

    from warpbook_monitors.exposition.holder_shares import HolderCollector
    from warpbook_monitors.exposition.prometheus import SCRAPE_WATCH_S, SamplerCollector
    from warpbook_monitors.holders.watch import HolderWatch
    from warpbook_monitors.open_sources import live_sources

    costs = Costs()
    sampler = Sampler([*live_sources(), OwnCostSource(costs)], costs=costs)
    watch = _ScrapeWatch(sampler, SCRAPE_WATCH_S)
    registry = CollectorRegistry()
    registry.register(SamplerCollector(sampler, watch.scraped, dcgm_aliases))
    holders = None
    if holders_every_s is not None:
        collector = HolderCollector()
        registry.register(collector)
        holders = HolderWatch(sampler, holders_every_s, collector.take)
    try:
        server = make_server(
            host, port, _at_metrics(make_wsgi_app(registry)), _family(host), _Request
        )
    except (OSError, OverflowError) as error:
        raise AgentError(
            f"{host}:{port}: {error}. Choose another --port or --host."
        ) from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    sampler.open()
    for absence in sampler.absences:
        print(
            f"{absence.what}: {absence.message} {absence.remedy}".rstrip(), flush=True
        )
    print(f"Serving http://{host}:{port}/metrics; Ctrl-C ends it.", flush=True)
    if holders is not None:
        holders.start()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, frame: ended.set())
    while not ended.wait(1.0):
        watch.rest_if_unscraped()
        if holders is not None and not holders.is_running:
            raise AgentError(
                "It no longer counts the holders; see above. Start it again."
            )
    server.shutdown()
    thread.join()
    if holders is not None:
        holders.close()
    watch.close()
    sampler.close()


def _say(words: str) -> None:
    print(f"{COMMAND}: {printable(words)}", file=sys.stderr, flush=True)


class _Request(WSGIRequestHandler):
    """A request, which must come soon, and is not logged."""

    timeout = AGENT_SILENT_S

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """Serves a bounded number of connections: the oldest makes room for a new one."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._lock = threading.Lock()
        self._open: dict[Any, None] = {}
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= AGENT_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)


class _ServerOfIPv6(_Server):
    address_family = socket.AF_INET6


def _family(host: str) -> type[_Server]:
    """Choose the server by the kind of address; a name is IPv4's where it can be.

    Raises:
        OSError: there is no such host.
    """
    families = {address[0] for address in socket.getaddrinfo(host, None)}
    return _Server if socket.AF_INET in families else _ServerOfIPv6


def _at_metrics(metrics: WSGIApplication) -> WSGIApplication:
    """Serve the metrics at /metrics: by itself the library does at every path."""

    def serve(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return metrics(environ, start)
        status = "200 OK" if path == "/" else "404 Not Found"
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [b"warpbook agent: the metrics are at /metrics.\n"]

    return serve


class _ScrapeWatch:
    """Keeps the sampler running while scrapes come."""

    def __init__(self, sampler: Sampler, watch_s: float) -> None:
        self._sampler = sampler
        self._watch_s = watch_s
        self._watch = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._scraped_s: float | None = None

    def scraped(self) -> None:
        with self._lock:
            if self._scraped_s is None:
                self._watch.enter_context(self._sampler.watch("scrape"))
            self._scraped_s = time.monotonic()

    def rest_if_unscraped(self) -> None:
        with self._lock:
            scraped_s = self._scraped_s
            if scraped_s is not None and time.monotonic() - scraped_s > self._watch_s:
                self._watch.close()
                self._scraped_s = None

    def close(self) -> None:
        with self._lock:
            self._watch.close()
