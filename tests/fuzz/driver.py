"""Sends hostile inputs to a real server whose address space is limited."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import requests
import websocket

from tests.extension.server.test_ingest import report
from tests.extension.server.test_timelines import packed
from tests.fuzz.inputs import rounds
from tests.fuzz.surface import Surface
from tests.server_process import TOKEN, ServerProcess, server
from warpbook.protocol import ENV_INGEST_SECRET, PROTOCOL_VERSION
from warpbook.server.cells import record_routes
from warpbook.server.cells.receipts import MAX_CELL_BYTES
from warpbook.server.past import history_route
from warpbook.server.reports import report_figures, report_routes, timeline_routes
from warpbook.server.web.parameters import NoQuery, Span
from warpbook_monitors.errors import RecordingError
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceError

ADDRESS_SPACE_BYTES = 6 * 2**30
#: of memory that a server may have more of after all, and a quiet time
MARGIN_BYTES = 150 * 2**20
TRACES = Path(__file__).parents[1] / "data" / "traces"

#: the routes of the page, each with what it declares
PAGE = {
    "capabilities": NoQuery,
    "state": NoQuery,
    "holders": NoQuery,
    "alerts": NoQuery,
    "health": NoQuery,
    "ready": NoQuery,
    "labs": NoQuery,
    "labs/vector-add/hints": NoQuery,
    "labs/vector-add/cards": NoQuery,
    "history/span": Span,
    "history/figure": history_route.HistoryFigure,
    "history/detail": history_route.DetailQuery,
    "history/export": history_route.Export,
    "receipt": record_routes.ReceiptQuery,
    "records": record_routes.RecordsQuery,
    "records/report/r-1": NoQuery,
    "reports/r-1/figure": report_figures.ReportFigure,
    "reports/r-1/difference": report_routes.Difference,
    "reports/r-1/timeline": timeline_routes.Window,
    "reports/r-1/timeline/statistics": timeline_routes.Part,
    "reports/r-1/timeline/search": timeline_routes.Search,
    "reports/r-1/timeline/export": NoQuery,
}
GOOD = {
    "from_ms": "0",
    "to_ms": "4.1e12",
    "device": "host",
    "metrics": "cpu_ratio",
    "format": "csv",
    "from_ns": "0",
    "to_ns": "1000000",
    "steps": "100",
    "at_ns": "0",
    "text": "gemm",
    "before": "r-1",
    "limit": "5",
    "theme": "dark",
    "kind": "timeline",
}
BAND = {
    "id": "m-1",
    "kernel_id": "k",
    "notebook": "a.ipynb",
    "cell_id": "c",
    "execution_count": 1,
    "title": "x",
    "started_ms": 1.0,
    "ended_ms": 2.0,
    "status": "ok",
}
SUBSCRIBE = {"type": "subscribe", "protocol": 1, "rate_hz": 5, "since_ms": 0.0}


class Fuzz:
    """One run against one server."""

    def __init__(self, running: ServerProcess, seed: int) -> None:
        """Take a server that has a kernel."""
        self._running = running
        self._seed = seed
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"token {TOKEN}"

    def __enter__(self) -> Fuzz:
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    def page(self, count: int) -> Surface:
        """Queries of every route, and bodies of those that take one."""
        surface = Surface("routes of the page")
        routes = list(PAGE.items())
        for number, hostile in enumerate(rounds(self._seed, count)):
            path, kind = routes[number % len(routes)]
            query = hostile.query(kind.__struct_encode_fields__, GOOD)
            if hostile.dice.random() < 0.1:
                path = path.replace("r-1", requests.utils.quote(hostile.text(), ""))
            url = f"{self._running.url}/warpbook/api/v1/{path}"
            self._ask(surface, "GET", url, params=query)
            if number % 10 == 0:
                cells = f"{self._running.url}/warpbook/api/v1/cells"
                self._ask(surface, "POST", cells, data=hostile.body([BAND]))
        return surface

    def ingest(self, count: int) -> Surface:
        """Bodies of every route that a kernel uses."""
        surface = Surface("ingest")
        url, secret = self._running.secrets
        kernel = self._running.kernel_id
        mine = {"protocol": PROTOCOL_VERSION, "kernel_id": kernel}
        memory = {**mine, "notebook": None, "cell_id": None}
        run = {**BAND, **mine, "ended_ms": 1.7e12, "started_ms": 0.0}
        bodies: list[tuple[str, Any]] = [
            ("/v1/reports", report("r-2", kernel_id=kernel)),
            ("/v1/cells", run),
            ("/v1/watch", {**mine, "on": True}),
            ("/v1/out-of-memory", {**memory, "failed": {"asked_bytes": 1}}),
            ("/v1/reports/r-1/timeline", None),
        ]
        for number, hostile in enumerate(rounds(self._seed + 1, count)):
            path, good = bodies[number % len(bodies)]
            body = hostile.bytes_of(packed()) if good is None else hostile.body(good)
            # a refused body closes its connection, which must not be used again
            headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}
            if hostile.dice.random() < 0.05:
                headers["Authorization"] = "Bearer \xff.0"
            # what is too large is refused before it is read, and whoever sends on
            # may not hear why
            is_known = headers["Authorization"].endswith(secret)
            is_cut_off = len(body) > MAX_CELL_BYTES or not is_known
            self._ask(
                surface, "POST", url + path, is_cut_off, data=body, headers=headers
            )
            if number % 10 == 0:
                query = hostile.query(("from_ms", "to_ms"), GOOD)
                span = f"{url}/v1/span"
                self._ask(surface, "GET", span, params=query, headers=headers)
        return surface

    def stream(self, count: int) -> Surface:
        """Messages of the stream, as text and as bytes; each connection takes nine."""
        surface = Surface("messages of the stream")
        url = f"{self._running.url}/warpbook/api/v1/stream?token={TOKEN}"
        for hostile in rounds(self._seed + 2, -(-count // 9)):
            with connected(url) as viewer:
                for _ in range(9):
                    surface.inputs += 1
                    body = hostile.body(SUBSCRIBE)[:4000]
                    if hostile.dice.random() < 0.5:
                        viewer.send_binary(body)
                    else:
                        viewer.send(body.decode("utf-8", "replace"))
                viewer.send("no message")
                self._await_answer(surface, viewer)
        return surface

    def _await_answer(self, surface: Surface, viewer: websocket.WebSocket) -> None:
        """Every connection still answers, or was closed with a reason."""
        try:
            while True:
                code, data = viewer.recv_data()
                if code == websocket.ABNF.OPCODE_CLOSE:
                    reason = int.from_bytes(data[:2], "big")
                    if reason not in (1009, 4001, 4002):
                        surface.failures.append(f"closed with {reason}")
                    return
                if b'"type":"error"' in data:
                    surface.refused += 1
                    if b"malformed" in data or b"no message" in data:
                        return
        except websocket.WebSocketException as error:
            surface.failures.append(f"{type(error).__name__}: {error}")

    def _ask(
        self,
        surface: Surface,
        method: str,
        url: str,
        is_cut_off: bool = False,
        **options: Any,
    ) -> None:
        surface.inputs += 1
        try:
            with self._session.request(
                method, url, timeout=60, stream=True, **options
            ) as answer:
                for _ in answer.iter_content(1 << 16):
                    pass
        except requests.ConnectionError as error:
            if not is_cut_off:
                surface.failures.append(f"{method} {url[-80:]}: {error!r}"[:300])
            surface.refused += 1
            return
        except (requests.RequestException, UnicodeError) as error:
            surface.failures.append(f"{method} {url[-80:]}: {error!r}"[:300])
            return
        if answer.status_code >= 500 and answer.status_code != 503:
            surface.failures.append(
                f"{method} {answer.url[-200:]}: {answer.status_code}"
            )
        surface.refused += answer.status_code >= 400


@contextlib.contextmanager
def connected(url: str) -> Iterator[websocket.WebSocket]:
    viewer = websocket.create_connection(url.replace("http", "ws", 1), timeout=60)
    try:
        yield viewer
    finally:
        # whatever the server has said meanwhile
        viewer.shutdown()


def files(seed: int, count: int, folder: Path) -> list[Surface]:
    """Recordings and traces, changed byte by byte, read as the commands read them."""
    recording = b"\n".join(gunzipped(SHIPPED).splitlines()[:20]) + b"\n"
    trace = gunzipped(TRACES / "tiny_kernels.json.gz")[:200_000]
    readers: list[tuple[str, bytes, Callable[[Path], object]]] = [
        ("recordings", recording, read_recording),
        ("traces", trace, lambda path: read_chrome_trace(str(path))),
    ]
    surfaces = []
    for number, (name, good, read) in enumerate(readers):
        surface = Surface(name)
        for hostile in rounds(seed + 3 + number, count):
            path = folder / name
            path.write_bytes(hostile.bytes_of(good))
            surface.inputs += 1
            try:
                read(path)
            except (RecordingError, TraceError):
                surface.refused += 1
            except Exception as error:  # noqa: BLE001 - it is what is looked for
                surface.failures.append(f"{name}: {error!r}"[:300])
        surfaces.append(surface)
    return surfaces


def gunzipped(path: Path) -> bytes:
    import gzip

    return gzip.decompress(path.read_bytes())


@contextlib.contextmanager
def limited_server(home: Path) -> Iterator[ServerProcess]:
    """A server with a kernel and a report, that can't take more than so much memory."""
    with server(home) as running:
        limits = (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES)
        resource.prlimit(running.process.pid, resource.RLIMIT_AS, limits)
        running.start_kernel()
        now_ms = time.time() * 1000
        body = report(
            "r-1", kernel_id=running.kernel_id, started_ms=now_ms, ended_ms=now_ms + 1
        )
        assert running.ingest("/v1/reports", body).status_code == 204
        assert running.ingest("/v1/reports/r-1/timeline", packed()).status_code == 204
        yield running


def memory_bytes(running: ServerProcess) -> int:
    return int(psutil.Process(running.process.pid).memory_info().rss)


def tracebacks(home: Path) -> list[str]:
    """What of the server's log tells of a fault of its own."""
    text = (home / "server.log").read_text(errors="replace")
    secret = re.findall(rf"{ENV_INGEST_SECRET}=\S+", text)
    return re.findall(r"^\s*Traceback.*", text, re.MULTILINE) + secret


def answers(running: ServerProcess) -> bool:
    state = running.get("warpbook/api/v1/state")
    return state.status_code == 200 and bool(json.loads(state.content)["devices"])
